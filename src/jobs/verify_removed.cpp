#include "jobs/verify_removed.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/units.h"
#include "jobs/verify_placement.h"
#include "jobs/verify_shard.h"

namespace shardpack {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
const std::vector<std::string> kHeader{"source", "record", "first_token", "tokens", "cause"};

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 0) return std::nullopt;
  return value;
}

}  // namespace

RemovedReader::RemovedReader(std::optional<File> file, const std::vector<ManifestSource>& sources, IssueList& issues)
    : file_(std::move(file)), sources_(sources), first_sequence_(first_sequences(sources)), issues_(issues) {
  for (std::size_t f = 0; f < sources.size(); ++f) files_by_name_.emplace(sources[f].name, f);
  std::vector<std::string> header;
  if (file_ && (!next_line(header) || header != kHeader)) fault(fmt::format("expected the header {}", fmt::join(kHeader, ",")));
}

void RemovedReader::read_until(const SequenceRanges& sequences, const std::function<void(const RemovedRange&)>& visit) {
  last_ = -1;
  while (!broken_) {
    std::vector<std::string> fields = std::exchange(pending_, {});
    if (fields.empty() && !next_line(fields)) return;
    const std::optional<RemovedRange> range = parse(fields, sequences);
    if (!range) {
      if (!broken_) pending_ = std::move(fields);
      return;
    }
    visit(*range);
  }
}

/// \return nothing for a line of another partition, or after a fault
std::optional<RemovedRange> RemovedReader::parse(const std::vector<std::string>& fields, const SequenceRanges& sequences) {
  if (fields.size() != kHeader.size()) {
    fault(fmt::format("{} fields, expected {}", fields.size(), kHeader.size()));
    return std::nullopt;
  }
  const auto record = whole_number(fields[1]), first_token = whole_number(fields[2]), tokens = whole_number(fields[3]);
  const auto cause = std::find(kRemovalCauses.begin(), kRemovalCauses.end(), fields[4]);
  const auto [from, to] = files_by_name_.equal_range(fields[0]);
  if (!record || !first_token || !tokens || cause == kRemovalCauses.end() || from == to) {
    fault(fmt::format("'{}' is not source,record,first_token,tokens,cause of this dataset", fmt::join(fields, ",")));
    return std::nullopt;
  }
  // A file that was given twice has its name twice: the lines are in order, so the first one that is not behind is meant.
  for (auto candidate = from; candidate != to; ++candidate) {
    const ManifestSource& source = sources_[candidate->second];
    const SequenceId sequence = first_sequence_[candidate->second] + *record;
    const bool is_there = *record < source.sequences && *tokens <= source.tokens && *first_token <= source.tokens - *tokens;
    const bool only_one = std::next(from) == to;
    if (!is_there) {
      fault(fmt::format("record {}, tokens {} + {}: {} has no such tokens", *record, *first_token, *tokens, source.name));
      return std::nullopt;
    }
    if (sequences.contains(sequence) && (only_one || sequence >= last_)) {
      last_ = sequence;
      return RemovedRange{sequence, *first_token, *tokens, static_cast<RemovalCause>(cause - kRemovalCauses.begin())};
    }
  }
  return std::nullopt;
}

void RemovedReader::finish(const std::string& expected_hash) {
  if (!file_) return;
  if (!broken_ && !pending_.empty()) fault("the line is not in the order of the partitions");
  char ignored;
  while (next_character(ignored)) at_ = buffer_.size();
  if (hash_.hex() != expected_hash) issues_.add("checksum", kFileName, std::string(kDamagedBytes));
}

bool RemovedReader::next_line(std::vector<std::string>& fields) {
  fields.clear();
  char c;
  if (!next_character(c)) return false;
  ++line_;
  std::string field;
  bool quoted = false;
  while (true) {
    if (quoted) {
      // A quote ends the field, or two of them are one.
      if (c != '"' || (next_character(c) && c == '"')) {
        field += c;
      } else {
        quoted = false;
        continue;  // c is what follows the closing quote
      }
    } else if (c == '"' && field.empty()) {
      quoted = true;
    } else if (c == ',') {
      fields.push_back(std::exchange(field, {}));
    } else if (c == '\n') {
      fields.push_back(std::move(field));
      return true;
    } else {
      field += c;
    }
    if (!next_character(c)) {
      fault("the last line has no end");
      return false;
    }
  }
}

bool RemovedReader::next_character(char& character) {
  if (!file_) return false;
  if (at_ == buffer_.size()) {
    buffer_.resize(kBufferBytes);
    const std::size_t bytes = file_->read_some_at(offset_, std::as_writable_bytes(std::span(buffer_)));
    buffer_.resize(bytes);
    offset_ += static_cast<std::int64_t>(bytes);
    at_ = 0;
    hash_.update(buffer_);
    if (bytes == 0) return false;
  }
  character = buffer_[at_++];
  return true;
}

void RemovedReader::fault(const std::string& message) {
  if (!broken_) issues_.add("removed", kFileName, fmt::format("line {}: {}", with_commas(line_), message));
  broken_ = true;
}

}  // namespace shardpack
