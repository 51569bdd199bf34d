// Partitions: sets of sequences that are planned, assigned and written on their own. Cut by the data alone.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

#include "jobs/given_plans.h"
#include "jobs/planning.h"
#include "shardpack/packing_plan.h"
#include "shardpack/sequence_index.h"
#include "shardpack/sequence_ranges.h"

namespace shardpack {

inline constexpr std::int64_t kPartitionSequences = 4'000'000;

struct Partition : PartitionPlan {
  SequenceRanges sequences;
  std::int64_t dropped_rows = 0;  ///< its last rows that --tail drop leaves out

  std::int64_t kept_rows() const { return plan.rows() - dropped_rows; }
};

/// With PartitionOrder::shuffled so many blocks fill a partition: enough for a sample of the whole dataset, and each long enough
/// to be read in one go.
inline constexpr std::int64_t kBlocksAPartition = 64;

/// Up to cut.tokens source tokens and kPartitionSequences records each; a longer sequence (or unit of `keep_together` of them,
/// which are never parted) has a partition of its own. Every record lies in exactly one. input: consecutive sequences. shuffled:
/// the sources are cut into blocks, a seeded permutation of the blocks is dealt to one partition after the other.
std::vector<Partition> cut_partitions(const SequenceIndex& index, const PartitionCut& cut);

/// What planning all partitions found.
struct PlanningTotals {
  RemovedCounts removed{};
  std::int64_t sequences = 0, segments = 0, tokens = 0;  ///< in the rows; tokens with what is added
  std::int64_t added_eos = 0, added_bos = 0;
  std::int64_t strategies = 0, rows = 0, bound = 0, max_segments_in_row = 0;
  std::int64_t shuffle_window_tokens = 0;  ///< rows are shuffled within so many: of the largest partition, or of its windows
  bool gaps_in_segments = false;           ///< some item takes more slots than it has tokens
  LengthHistogram lengths;                 ///< of the items in tokens, for predictions
};

/// Plan every partition. Items are made and dropped again: only plans stay.
/// \param given  plans to use instead, one for each partition; empty = make them
/// \param kept   set to the items and removals of the first partition, if all of them together are no more than one may have
PlanningTotals plan_partitions(std::vector<Partition>& partitions, const SequenceIndex& index, PlanningOptions options,
                               const std::vector<GivenPlan>& given, const RunContext& context,
                               std::optional<PolicyResult>* kept = nullptr);

/// Rows that one plan over all partitions would have. Nothing for one partition, and where
/// rows follow the input: then only a second pass would tell.
std::optional<std::int64_t> rows_of_one_plan(const std::vector<Partition>& partitions, const PlanningOptions& options,
                                             const std::stop_token& stop);

}  // namespace shardpack
