// plan: strategies, counts and bound, from a histogram alone or from shards. No token is read again.
#include "jobs/planning.h"
#include "shardpack/error.h"
#include "shardpack/jobs.h"

namespace shardpack {

namespace {

PlanResult plan_histogram(const LengthHistogram& sequences, const PlanOptions& options, std::stop_token stop) {
  if (find_packer(options.packer).input_order) {
    throw Error(ErrorCode::usage,
                "packer '" + options.packer + "' keeps the input's order, which a histogram does not have; give the shards");
  }
  check_overlong(sequences, options.policy);
  PlanResult result;
  result.policy = apply_policy(sequences, options.policy);
  result.items = result.policy.items;
  result.plan = plan_packs(result.items, options.packer, options.packing, std::move(stop));
  result.plan.policy = options.policy;
  return result;
}

PlanResult plan_shards(const SequenceIndex& index, const PlanningOptions& planning, std::stop_token stop) {
  check_overlong(index, planning.policy);
  const PolicyResult policy = apply_policy(index, 0, index.sequences(), planning.policy);
  PlanResult result;
  result.plan = plan_items(policy.items, planning, std::move(stop));
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
    PlanResult result = plan_histogram(*lengths.histogram, options, context.stop);
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
