#include "jobs/removed_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "exec/ordered_map.h"
#include "io/json.h"

namespace shardpack {

namespace {

constexpr std::int64_t kChunkTokens = std::int64_t{1} << 20;
constexpr char kFileName[] = "removed.csv";

/// RFC 4180: quoted only where it must be. Of the same characters as in the manifest.
std::string csv_field(const std::string& name) {
  std::string text = as_utf8(name);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

}  // namespace

RemovedLog::RemovedLog(const SequenceSource& source, const FingerprintKeys& keys, std::string folder, const RunContext& context)
    : source_(source), keys_(keys), folder_(std::move(folder)), context_(context) {}

void RemovedLog::add(const std::vector<RemovedRange>& ranges) {
  if (ranges.empty()) return;
  if (!file_) {
    file_ = std::make_unique<File>(folder_ + "/" + kFileName, File::Mode::create_exclusive);
    append("source,record,first_token,tokens,cause\n");
  }
  std::string lines;
  for (const RemovedRange& range : ranges) {
    const SequencePlace place = source_.index().place(range.sequence);
    const SourceFile& file = source_.index().files()[static_cast<std::size_t>(place.file)];
    fmt::format_to(std::back_inserter(lines), "{},{},{},{},{}\n", csv_field(file.name), place.record, range.first_token,
                   range.tokens, kRemovalCauses[static_cast<std::size_t>(range.cause)]);
    if (lines.size() > (std::size_t{1} << 20)) {
      append(lines);
      lines.clear();
    }
  }
  append(lines);
  fingerprint(ranges);
}

void RemovedLog::fingerprint(const std::vector<RemovedRange>& ranges) {
  // Chunks of about kChunkTokens: many short ranges together, a long one in parts.
  std::size_t at = 0;
  std::int64_t done = 0;  // tokens of ranges[at] already handed out
  const auto produce = [&]() -> std::optional<std::vector<TokenRequest>> {
    std::vector<TokenRequest> chunk;
    std::int64_t tokens = 0;
    while (at < ranges.size() && tokens < kChunkTokens) {
      const std::int64_t take = std::min(ranges[at].tokens - done, kChunkTokens - tokens);
      chunk.push_back({ranges[at].sequence, ranges[at].first_token + done, take, tokens});
      tokens += take;
      done += take;
      if (done == ranges[at].tokens) {
        ++at;
        done = 0;
      }
    }
    if (chunk.empty()) return std::nullopt;
    return chunk;
  };
  const auto transform = [&](std::vector<TokenRequest>&& chunk) {
    std::vector<std::uint32_t> ids(static_cast<std::size_t>(chunk.back().destination + chunk.back().tokens));
    source_.read_block(chunk, IdType::u32, ids.data());
    Fingerprint sum;
    for (const TokenRequest& request : chunk) {
      sum += keys_.of(request.sequence, request.first_token,
                      std::span<const std::uint32_t>(ids).subspan(static_cast<std::size_t>(request.destination),
                                                                  static_cast<std::size_t>(request.tokens)));
    }
    return sum;
  };
  ordered_map(context_.pool, default_in_flight(context_.pool), context_.stop, produce, transform,
              [&](Fingerprint&& sum) { fingerprint_ += sum; });
}

void RemovedLog::append(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  file_->write_at(bytes_, bytes);
  hash_.update(bytes);
  bytes_ += static_cast<std::int64_t>(bytes.size());
}

std::vector<ManifestFile> RemovedLog::finish() {
  if (!file_) return {};
  file_->sync();
  file_->close();
  return {{.name = kFileName, .bytes = bytes_, .hash = hash_.hex()}};
}

}  // namespace shardpack
