// The one pass over a packed dataset: every byte of every listed file is read once and hashed, and every row is checked on the
// way. Blocks are read and checked by the workers; what they find is put together in order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/trainer_rows.h"
#include "io/packed_dataset.h"
#include "jobs/verify_issues.h"
#include "jobs/verify_placement.h"
#include "jobs/verify_rows.h"
#include "shardpack/jobs.h"
#include "shardpack/sequence_source.h"

namespace shardpack {

/// What the pass found, to be compared with the manifest.
struct DatasetFacts {
  RowFacts planned, tail;  ///< tail: repeated and fill rows
  std::int64_t tail_sequences = 0;
  PlacementTotals placement;
  std::int64_t plan_rows = 0, plan_bound = 0;  ///< of all plans
  std::optional<Fingerprint> rebuilt;          ///< rows that hold no tokens: of these and removed.csv, read in the sources
  std::set<std::string> packers, bound_kinds;
  std::int64_t bytes = 0;
  /// Every row of every shard and every plan could be read: only then do sums say anything that is not said already.
  bool complete = true;
};

/// \param output  how rows became a trainer's (rules_of)
/// \param whole  files that are there with their size (check_folder)
/// \param source  the sources read again; null when they were not
DatasetFacts check_shards(const PackedDataset& dataset, const OutputRules& output,
                          const std::set<std::string, std::less<>>& whole, const SequenceSource* source,
                          const RunContext& context, IssueList& issues);

}  // namespace shardpack
