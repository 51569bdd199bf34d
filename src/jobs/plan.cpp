// plan: strategies, counts and bound, from a histogram alone or from shards. No token is read again.
#include "jobs/planning.h"
#include "shardpack/error.h"
#include "shardpack/jobs.h"

namespace shardpack {

namespace {

/// The figures of one more group.
void add_policy(const HistogramPolicyResult& group, HistogramPolicyResult& sum) {
  sum.items.merge(group.items);
  sum.counts += group.counts;
  sum.sequences += group.sequences;
  sum.added_eos += group.added_eos;
  sum.added_bos += group.added_bos;
}

PlanResult plan_histogram(const LengthHistogram& sequences, const std::vector<GroupLengths>& groups, const PlanOptions& options,
                          const std::stop_token& stop) {
  if (find_packer(options.packer).input_order) {
    throw Error(ErrorCode::usage,
                "packer '" + options.packer + "' keeps the input's order, which a histogram does not have; give the shards");
  }
  check_overlong(sequences, options.policy);
  const auto plan_of = [&](const LengthHistogram& items) {
    PackingPlan plan = plan_packs(items, options.packer, options.packing, stop);
    plan.policy = options.policy;
    return plan;
  };
  PlanResult result;
  if (groups.empty()) {
    result.policy = apply_policy(sequences, options.policy);
    result.plan = plan_of(result.policy.items);
  }
  for (const GroupLengths& group : groups) {
    HistogramPolicyResult policy = apply_policy(group.lengths, options.policy);
    add_policy(policy, result.policy);
    if (policy.sequences == 0) continue;
    PackingPlan plan = plan_of(policy.items);
    result.groups.push_back({group.key, std::move(plan), std::move(policy.items)});
  }
  if (!groups.empty()) result.plan = result.groups.empty() ? plan_of({}) : merge_plans(result.groups);
  result.items = result.policy.items;
  return result;
}

PlanResult plan_shards(const SequenceIndex& index, const PlanningOptions& planning, const std::stop_token& stop) {
  check_overlong(index, planning.policy);
  const PolicyResult policy = apply_policy(index, 0, index.sequences(), planning.policy);
  PartitionPlan plans = plan_partition(policy.items, index, planning, stop);
  PlanResult result;
  result.plan = std::move(plans.plan);
  result.groups = std::move(plans.groups);
  result.policy = {.items = {},
                   .counts = policy.counts,
                   .sequences = policy.sequences,
                   .added_eos = policy.added_eos,
                   .added_bos = policy.added_bos};
  result.items = covered_items(result.plan);  // concat cuts items of its own
  result.policy.items = result.items;
  return result;
}

}  // namespace

PlanResult plan(const std::vector<std::string>& inputs, const ReadOptions& read, const PlanOptions& options,
                const RunContext& context) {
  const PlanningOptions planning{.policy = effective_policy(options.policy, options.packer, options.packing.max_segments),
                                 .packer = options.packer,
                                 .packing = options.packing,
                                 .assign = {}};
  const LengthSource lengths = read_lengths(inputs, read, options.policy, context);
  if (lengths.histogram) {
    PlanResult result = plan_histogram(*lengths.histogram, lengths.groups, options, context.stop);
    result.sequences = lengths.histogram->sequences();
    result.tokens = lengths.histogram->tokens();
    return result;
  }
  const SequenceIndex& index = lengths.shards.source->index();
  PlanResult result = plan_shards(index, planning, context.stop);
  result.sequences = index.sequences();
  result.tokens = index.tokens();
  return result;
}

}  // namespace shardpack
