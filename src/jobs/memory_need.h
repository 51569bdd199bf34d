// What a pack holds in memory beside its blocks in flight, so that a budget that cannot be kept is refused before the long part.
#pragma once

#include <cstdint>
#include <vector>

#include "jobs/partitions.h"
#include "jobs/rewrite.h"
#include "shardpack/run_context.h"
#include "shardpack/sequence_index.h"

namespace shardpack {

/// Boundaries, ends, groups and loss places of all sequences.
std::int64_t index_bytes(const SequenceIndex& index);

/// Of the largest partition, while it is planned and its rows are drawn: `items` of it, in `rows` rows.
std::int64_t partition_bytes(std::int64_t items, std::int64_t rows, const PlanningOptions& planning, bool grouped);

/// \throws Error{limit} when --memory holds less than the index and the largest partition, naming the number that would do
void check_memory(const SequenceIndex& index, const std::vector<Partition>& partitions, const PlanningOptions& planning,
                  const RunContext& context);

/// The context for writing, its budget for blocks in flight what the plans, now that they are there, leave of --memory.
/// \throws Error{limit}, as above, when that is too little for one block
RunContext with_memory_left(const SequenceIndex& index, const std::vector<Partition>& partitions, const PlanningOptions& planning,
                            const RewriteSettings& settings, const RunContext& context);

}  // namespace shardpack
