#include "jobs/early_plans.h"

#include <utility>

#include "jobs/index_views.h"
#include "jobs/memory_need.h"
#include "jobs/step_meter.h"

namespace shardpack {

namespace {

Plans make_plans(const SequenceIndex& index, const PackOptions& options, const PlanningOptions& planning,
                 const std::vector<GivenPlan>& given, const RunContext& context, std::optional<PolicyResult>* kept = nullptr) {
  check_overlong(index, planning.policy);
  Plans plans;
  plans.partitions = cut_partitions(index, {.tokens = options.partition_tokens,
                                            .order = options.partition_order,
                                            .seed = options.seed,
                                            .keep_together = options.policy.keep_together});
  check_memory(index, plans.partitions, planning, context);
  if (!given.empty()) check_plan_count(given, options.plan, plans.partitions.size());
  plans.totals = plan_partitions(plans.partitions, index, planning, given, context, kept);
  if (given.empty()) plans.rows_of_one_plan = rows_of_one_plan(plans.partitions, planning, context.stop);
  return plans;
}

}  // namespace

std::function<bool(const SequenceIndex&, const std::stop_token&)> EarlyPlans::maker() {
  if (context_.memory_limit > 0) return {};
  return [this](const SequenceIndex& index, const std::stop_token& stop) {
    NoProgress silent;  // the progress tells of the reading
    const RunContext beside{.pool = context_.pool,
                            .stop = stop,
                            .progress = silent,
                            .diagnostics = context_.diagnostics,
                            .memory_bytes = context_.memory_bytes,
                            .memory_limit = context_.memory_limit,
                            .temp_dir = context_.temp_dir};
    try {
      std::optional<PolicyResult> kept;
      Plans plans = make_plans(index, options_, planning_, given_, beside, &kept);
      if (!options_.dry_run && !options_.part && !plans.partitions.empty()) {
        const Partition& first = plans.partitions.front();
        if (!kept) kept = apply_policy(index, first.sequences, planning_.policy);
        plans.first = prepare_partition(std::move(*kept), index, first, planning_, StepMeter(options_).wanted());
      }
      plans_ = std::move(plans);
    } catch (...) {
      failure_ = std::current_exception();
    }
    return plans_.has_value();
  };
}

Plans EarlyPlans::take(const SequenceIndex& index) {
  if (failure_) std::rethrow_exception(failure_);
  return plans_ ? *std::exchange(plans_, std::nullopt) : make_plans(index, options_, planning_, given_, context_);
}

}  // namespace shardpack
