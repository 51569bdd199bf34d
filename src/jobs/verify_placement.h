// Where every token of a partition's records went: the rows and removed.csv together hold each record from its first token to
// its last, no token twice and none left out.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "jobs/verify_issues.h"
#include "shardpack/item.h"
#include "shardpack/manifest.h"
#include "shardpack/sequence_index.h"

namespace shardpack {

/// First record ordinal of each source file, and one past the last: the numbering of all that is checked here.
std::vector<SequenceId> first_sequences(const std::vector<ManifestSource>& sources);

/// What the placements of all partitions add up to.
struct PlacementTotals {
  std::int64_t sequences = 0;             ///< records with a segment in the rows
  std::int64_t without_tokens = 0;        ///< records that nothing mentions: empty or null
  RemovedCounts removed{};                ///< from removed.csv; empty, null and padding stay 0
  std::vector<std::int64_t> file_tokens;  ///< placed or removed, by source file
};

/// The records of a partition. What is kept and done follows from the pieces and ranges that there are, not from how many records
/// the manifest claims: 4 bytes a record on pages where something is, and 24 for each piece that does not begin at a record's
/// first token and for each removed range.
class Placement {
 public:
  explicit Placement(const SequenceRanges& sequences);

  /// A segment of a row, and a line of removed.csv; the sequence lies in the partition.
  void place(SequenceId sequence, std::int64_t first_token, Length tokens);
  void remove(const RemovedRange& range);

  /// Check every record and add to `totals`. \param index  of the sources read again, for the records' lengths and, where
  /// sequences without any loss were dropped one by one, for their loss; may be null
  void finish(const std::vector<ManifestSource>& sources, const SequenceIndex* index, Length row_tokens, PlacementTotals& totals,
              IssueList& issues);

 private:
  static constexpr std::int8_t kPlaced = -1;
  struct Range {
    SequenceId sequence;
    std::int64_t first_token, tokens;
    std::int8_t cause;  // RemovalCause, or kPlaced
  };

  static constexpr std::int64_t kPageRecords = 512;
  using Page = std::array<std::uint32_t, kPageRecords>;  // by record: tokens of its piece from token 0 on, 0 = none

  std::uint32_t& leading(SequenceId sequence);

  const SequenceRanges& sequences_;
  std::vector<std::unique_ptr<Page>> pages_;  // null: no record of the page has a piece or a removed range
  std::vector<Range> others_;
};

}  // namespace shardpack
