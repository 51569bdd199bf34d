#include "jobs/partitions.h"

#include <algorithm>

#include "exec/ordered_map.h"

namespace shardpack {

std::vector<Partition> cut_partitions(const SequenceIndex& index, std::int64_t partition_tokens, std::int32_t keep_together) {
  std::vector<Partition> partitions;
  Partition open;
  std::int64_t tokens = 0;
  for (const SourceFile& file : index.files()) {
    const auto together = static_cast<std::size_t>(keep_together);
    for (std::size_t record = 0; record + together < file.record_begin.size(); record += together) {
      const std::int64_t length = file.record_begin[record + together] - file.record_begin[record];
      const std::int64_t sequences = open.last + keep_together - open.first;
      if (open.last > open.first && (tokens + length > partition_tokens || sequences > kPartitionSequences)) {
        partitions.push_back(open);
        open.first = open.last;
        tokens = 0;
      }
      open.last += keep_together;
      tokens += length;
    }
  }
  if (open.last > open.first) partitions.push_back(open);
  return partitions;
}

PlanningTotals plan_partitions(std::vector<Partition>& partitions, const SequenceIndex& index, PlanningOptions options,
                               const std::vector<GivenPlan>& given, const RunContext& context) {
  PlanningTotals totals;
  context.progress.begin_stage("planning", static_cast<std::int64_t>(partitions.size()), "partitions");
  for (std::size_t p = 0; p < partitions.size(); ++p) {
    throw_if_stopped(context.stop);
    Partition& partition = partitions[p];
    options.assign.partition = static_cast<std::int32_t>(p);
    const PolicyResult policy = apply_policy(index, partition.first, partition.last, options.policy);
    static_cast<PartitionPlan&>(partition) = given.empty() ? plan_partition(policy.items, index, options, context.stop)
                                                           : plan_for(given[p], planned_items(policy.items, options.policy),
                                                                      planned_groups(policy.items, index, options.policy));

    for (std::size_t cause = 0; cause < totals.removed.size(); ++cause) {
      totals.removed[cause].sequences += policy.counts[cause].sequences;
      totals.removed[cause].tokens += policy.counts[cause].tokens;
    }
    std::int64_t tokens = 0;
    for (const Item& item : policy.items) {
      totals.lengths.add(item.length());
      totals.gaps_in_segments |= item.slots + unslotted_tokens(options.policy.slot_rule) != item.length();
      tokens += item.length();
    }
    const PlanStats plan = stats(partition.plan);
    totals.sequences += policy.sequences;
    totals.segments += plan.segments;
    totals.tokens += tokens;
    totals.added_eos += policy.added_eos;
    totals.added_bos += policy.added_bos;
    totals.strategies += partition.plan.strategies();
    totals.rows += plan.rows;
    totals.bound += partition.plan.bound.rows;
    totals.max_segments_in_row = std::max(totals.max_segments_in_row, plan.max_segments_in_row);
    totals.largest_partition_tokens = std::max(totals.largest_partition_tokens, tokens);
    context.progress.advance(1);
  }
  context.progress.end_stage();
  return totals;
}

}  // namespace shardpack
