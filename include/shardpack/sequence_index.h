// Where every sequence of the inputs lies and how long it is: 8 bytes a record in memory, and no token.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shardpack/group_key.h"
#include "shardpack/types.h"

namespace shardpack {

/// One source file with its boundaries.
struct SourceFile {
  std::string name;                        ///< relative to the inputs' common root: what manifests and error messages show
  std::string format;                      ///< name in the format table
  std::int64_t bytes = 0;                  ///< of the data file and its sidecars together
  std::string hash;                        ///< XXH3-128 of the data file followed by its sidecars, 32 hex digits
  std::string ids_dtype;                   ///< NumPy's name ("<u2") of how ids lie in the data file; "": they had to be decoded
  std::vector<std::int64_t> record_begin;  ///< tokens; records + 1 entries, the first 0, ascending
  std::int64_t null_records = 0;           ///< records without ids, kept as length 0 (--null-row drop)

  std::int64_t records() const { return static_cast<std::int64_t>(record_begin.size()) - 1; }
  std::int64_t tokens() const { return record_begin.back(); }
};

/// Tokens of the longest of the records that these boundaries, which ascend, are of; 0 where there are none.
std::int64_t longest_record(const std::vector<std::int64_t>& record_begin);

/// Place of a sequence.
struct SequencePlace {
  std::int32_t file = 0;         ///< index into SequenceIndex::files()
  std::int64_t record = 0;       ///< record number in that file, from 0
  std::int64_t first_token = 0;  ///< token offset in that file's token table
  std::int64_t tokens = 0;
};

/// The side of a sequence from which tokens are counted up to one that takes part in the loss.
enum class LossSide : std::uint8_t { none, start, end };

/// All records of all source files in order; the record ordinal is the SequenceId. Immutable once built, so thread-safe.
/// 8 bytes a record; 1 more with `ends`, 4 more with groups, 4 more with loss places.
class SequenceIndex {
 public:
  /// Bits of `ends`: does the sequence's first token equal the BOS id, its last the EOS id?
  static constexpr std::uint8_t kBeginsWithBos = 1, kEndsWithEos = 2;

  SequenceIndex() = default;
  /// `ends` has one entry a record, or none when the policy does not ask.
  explicit SequenceIndex(std::vector<SourceFile> files, std::vector<std::uint8_t> ends = {});

  const std::vector<SourceFile>& files() const { return files_; }
  std::int64_t sequences() const { return first_sequence_.back(); }
  std::int64_t tokens() const { return tokens_; }
  std::int64_t longest_sequence() const;  ///< tokens; 0 of none. O(sequences)
  SequenceId first_sequence(std::int32_t file) const { return first_sequence_[static_cast<std::size_t>(file)]; }

  /// O(log files).
  SequencePlace place(SequenceId sequence) const;
  /// The file of a sequence alone, without a look at its boundaries. O(log files).
  std::int32_t file_of(SequenceId sequence) const;

  /// What a pass over the tokens finds later: `ends` as above, and a hash for each file.
  void set_ends(std::vector<std::uint8_t> ends);
  void set_hash(std::int32_t file, std::string hash) { files_[static_cast<std::size_t>(file)].hash = std::move(hash); }

  /// Values of the group column, ascending, and the place of each sequence's own among them; -1 for a record that has none.
  void set_groups(std::vector<GroupKey> keys, std::vector<std::int32_t> groups);
  bool grouped() const { return !groups_.empty(); }
  const std::vector<GroupKey>& group_keys() const { return group_keys_; }
  std::int32_t group(SequenceId sequence) const { return groups_[static_cast<std::size_t>(sequence)]; }

  /// For each sequence the tokens that lie, seen from one side, before the first one that takes part in the loss.
  static constexpr std::uint32_t kNoLoss = 0xffffffff;  ///< none does
  void set_loss_places(std::vector<std::uint32_t> places);
  bool has_loss_places() const { return !loss_places_.empty(); }
  std::uint32_t loss_place(SequenceId sequence) const { return loss_places_[static_cast<std::size_t>(sequence)]; }

  bool has_ends() const { return !ends_.empty(); }
  std::uint8_t ends(SequenceId sequence) const { return ends_.empty() ? 0 : ends_[static_cast<std::size_t>(sequence)]; }

 private:
  std::vector<SourceFile> files_;
  std::vector<std::uint8_t> ends_;
  std::vector<GroupKey> group_keys_;
  std::vector<std::int32_t> groups_;           // none without a group column
  std::vector<std::uint32_t> loss_places_;     // none unless asked for
  std::vector<SequenceId> first_sequence_{0};  // files + 1
  std::int64_t tokens_ = 0;
};

}  // namespace shardpack
