#include "jobs/removed_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "core/column_values.h"
#include "core/placed_values.h"
#include "core/row_block.h"
#include "exec/ordered_map.h"
#include "io/json.h"

namespace shardpack {

namespace {

constexpr std::int64_t kChunkTokens = std::int64_t{1} << 20;

/// RFC 4180: quoted only where it must be. Of the same characters as in the manifest.
std::string csv_field(const std::string& name) {
  std::string text = as_utf8(name);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

/// Removed tokens, and the sequences that are gone as wholes.
struct Chunk {
  std::vector<TokenRequest> requests;
  std::vector<RemovalCause> causes;  // of the requests
  std::vector<SequenceId> sequences;
};

struct Sums {
  Fingerprint fingerprint;
  std::array<std::int64_t, kRemovalCauses.size()> loss_tokens{};
};

/// What the removed tokens have of column number `places` and of those that go with it. `loss`: the loss_column().
void add_placed(const Chunk& chunk, const SequenceSource& source, const DatasetKeys& keys, std::size_t places, int loss,
                Sums& sums) {
  std::vector<TokenRun> runs;
  for (const TokenRequest& request : chunk.requests) runs.push_back({request.sequence, request.first_token, request.tokens});
  const PlacedReader reader(source, places, runs);
  const std::span<const std::int64_t> all(reader.places());
  for (std::size_t c = 0; c < source.columns().size(); ++c) {
    const Column& column = source.columns()[c];
    if (column.places != source.columns()[places].name) continue;
    const ByteBuffer values = reader.read(c);
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const std::int64_t first = reader.begin()[r], count = reader.begin()[r + 1] - first;
      const std::byte* const own = values.data() + first * info(column.type).bytes;
      sums.fingerprint += keys.columns[c].of_placed(
          runs[r].sequence, all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)), column.type, own);
      if (static_cast<int>(c) == loss)
        sums.loss_tokens[static_cast<std::size_t>(chunk.causes[r])] += count_loss_tokens(column, column.type, own, count);
    }
  }
}

Sums sums_of(const Chunk& chunk, const SequenceSource& source, const DatasetKeys& keys) {
  Sums sums;
  const std::int64_t tokens = chunk.requests.back().destination + chunk.requests.back().tokens;
  std::vector<std::uint32_t> ids(static_cast<std::size_t>(tokens));
  std::vector<TokenRequest> sorted = chunk.requests;
  source.read_block(sorted, IdType::u32, ids.data());
  for (const TokenRequest& request : chunk.requests) {
    const std::span<const std::uint32_t> all(ids);
    sums.fingerprint +=
        keys.ids.of(request.sequence, request.first_token,
                    all.subspan(static_cast<std::size_t>(request.destination), static_cast<std::size_t>(request.tokens)));
  }
  const std::span<const Column> columns = source.columns();
  const int loss = loss_column(columns);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const Column& column = columns[c];
    const int bytes = info(column.type).bytes;
    if (is_placed(column)) {
      if (holds_places(column)) add_placed(chunk, source, keys, c, loss, sums);
      continue;
    }
    if (column.kind != ColumnKind::token) {
      const ColumnValues values = source.read_values(c, chunk.sequences);
      for (std::size_t i = 0; i < chunk.sequences.size(); ++i) {
        sums.fingerprint += fingerprint_of_sequence(column, values, i, keys.columns[c], chunk.sequences[i]);
      }
      continue;
    }
    ByteBuffer values(static_cast<std::size_t>(tokens * bytes));
    source.read_tokens(c, sorted, values.data());
    for (std::size_t i = 0; i < chunk.requests.size(); ++i) {
      const TokenRequest& request = chunk.requests[i];
      const std::byte* const first = values.data() + request.destination * bytes;
      sums.fingerprint += keys.columns[c].of(request.sequence, request.first_token, column.type, first, request.tokens);
      if (static_cast<int>(c) == loss) {
        sums.loss_tokens[static_cast<std::size_t>(chunk.causes[i])] +=
            count_loss_tokens(column, column.type, first, request.tokens);
      }
    }
  }
  return sums;
}

}  // namespace

RemovedLog::RemovedLog(const SequenceSource& source, const DatasetKeys* keys, bool single_segments, std::string folder,
                       const RunContext& context, std::string name)
    : source_(source),
      keys_(keys),
      single_segments_(single_segments),
      folder_(std::move(folder)),
      name_(std::move(name)),
      context_(context) {}

void RemovedLog::add(const std::vector<RemovedRange>& ranges) {
  if (ranges.empty()) return;
  if (!file_) {
    file_ = std::make_unique<File>(folder_ + "/" + name_, File::Mode::create);
    if (name_ == kFileName) append(kHeader);
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
  if (keys_ != nullptr) sum(ranges);
}

void RemovedLog::sum(const std::vector<RemovedRange>& ranges) {
  // Chunks of about kChunkTokens: many short ranges together, a long one in parts.
  std::size_t at = 0;
  std::int64_t done = 0;  // tokens of ranges[at] already handed out
  const auto produce = [&]() -> std::optional<Chunk> {
    Chunk chunk;
    std::int64_t tokens = 0;
    while (at < ranges.size() && tokens < kChunkTokens) {
      const RemovedRange& range = ranges[at];
      const std::int64_t take = std::min(range.tokens - done, kChunkTokens - tokens);
      chunk.requests.push_back({range.sequence, range.first_token + done, take, tokens});
      chunk.causes.push_back(range.cause);
      if (range.cause != RemovalCause::truncated && done == 0 &&
          counts_whole_sequence(range.first_token, range.tokens, single_segments_)) {
        chunk.sequences.push_back(range.sequence);
      }
      tokens += take;
      done += take;
      if (done == range.tokens) {
        ++at;
        done = 0;
      }
    }
    if (chunk.requests.empty()) return std::nullopt;
    return chunk;
  };
  ordered_map(
      context_.pool, default_in_flight(context_.pool), context_.stop, produce,
      [&](Chunk&& chunk) { return sums_of(chunk, source_, *keys_); },
      [&](Sums&& sums) {
        totals_.fingerprint += sums.fingerprint;
        for (std::size_t cause = 0; cause < totals_.loss_tokens.size(); ++cause)
          totals_.loss_tokens[cause] += sums.loss_tokens[cause];
      });
}

void RemovedLog::append(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  file_->write_at(bytes_, bytes);
  hash_.update(bytes);
  bytes_ += static_cast<std::int64_t>(bytes.size());
}

RemovedTotals RemovedLog::finish() {
  if (!file_) return totals_;
  file_->sync();
  file_->close();
  totals_.file = ManifestFile{.name = name_, .bytes = bytes_, .hash = hash_.hex()};
  return totals_;
}

}  // namespace shardpack
