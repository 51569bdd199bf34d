#include "shardpack/sequence_index.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"

namespace shardpack {

std::int64_t longest_record(const std::vector<std::int64_t>& record_begin) {
  std::int64_t longest = 0;
  for (std::size_t i = 1; i < record_begin.size(); ++i) longest = std::max(longest, record_begin[i] - record_begin[i - 1]);
  return longest;
}

SequenceIndex::SequenceIndex(std::vector<SourceFile> files, std::vector<std::uint8_t> ends) : files_(std::move(files)) {
  first_sequence_.reserve(files_.size() + 1);
  for (const SourceFile& file : files_) {
    ensure(!file.record_begin.empty() && file.record_begin.front() == 0, "record_begin starts at 0");
    first_sequence_.push_back(checked_add(first_sequence_.back(), file.records(), "the number of sequences"));
    tokens_ = checked_add(tokens_, file.tokens(), "the number of tokens");
  }
  set_ends(std::move(ends));
}

std::int64_t SequenceIndex::longest_sequence() const {
  std::int64_t longest = 0;
  for (const SourceFile& file : files_) longest = std::max(longest, longest_record(file.record_begin));
  return longest;
}

void SequenceIndex::set_ends(std::vector<std::uint8_t> ends) {
  ensure(ends.empty() || static_cast<std::int64_t>(ends.size()) == sequences(), "ends has one entry a record");
  ends_ = std::move(ends);
}

void SequenceIndex::set_groups(std::vector<GroupKey> keys, std::vector<std::int32_t> groups) {
  ensure(static_cast<std::int64_t>(groups.size()) == sequences(), "every record has a group");
  group_keys_ = std::move(keys);
  groups_ = std::move(groups);
}

void SequenceIndex::set_loss_places(std::vector<std::uint32_t> places) {
  ensure(static_cast<std::int64_t>(places.size()) == sequences(), "every record has a loss place");
  loss_places_ = std::move(places);
}

std::int32_t SequenceIndex::file_of(SequenceId sequence) const {
  ensure(0 <= sequence && sequence < sequences(), "the sequence exists");
  // The first file that begins after the sequence; the one before it holds it, files without records passed over.
  const auto after = std::upper_bound(first_sequence_.begin(), first_sequence_.end(), sequence);
  return static_cast<std::int32_t>(after - first_sequence_.begin() - 1);
}

SequencePlace SequenceIndex::place(SequenceId sequence) const {
  const std::int32_t file = file_of(sequence);
  const std::int64_t record = sequence - first_sequence(file);
  const std::vector<std::int64_t>& begin = files_[static_cast<std::size_t>(file)].record_begin;
  const std::int64_t first_token = begin[static_cast<std::size_t>(record)];
  return {file, record, first_token, begin[static_cast<std::size_t>(record) + 1] - first_token};
}

}  // namespace shardpack
