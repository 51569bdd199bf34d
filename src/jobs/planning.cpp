#include "jobs/planning.h"

#include "base/checked.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {
OrderedRows in_input_order(std::vector<Item> items, const PlanningOptions& options) {
  const Length row_tokens = options.policy.row_tokens;
  const std::int32_t max_segments = options.packing.max_segments;
  if (options.packer == "concat") return pack_concat(items, row_tokens, max_segments, options.policy.segment_multiple);
  return pack_sequential(std::move(items), row_tokens, max_segments);
}
}  // namespace

LengthPolicy effective_policy(LengthPolicy policy, std::string_view packer) {
  if (packer == "concat") {
    if (policy.split_min_tokens > 0) {
      throw Error(ErrorCode::usage, "--split-min-tokens does not apply to concat, which cuts at row ends and drops no piece");
    }
    policy.overlong = Overlong::split;
  }
  check_policy(policy);
  return policy;
}

PackingPlan plan_items(const std::vector<Item>& items, const PlanningOptions& options, std::stop_token stop) {
  PackingPlan plan;
  if (find_packer(options.packer).input_order) {
    const OrderedRows rows = in_input_order(items, options);
    plan = derive_plan(rows, options.packer, options.policy.row_tokens, options.packing.max_segments);
    ensure(check_exact_cover(plan, histogram(rows.items)).empty(), "rows in input order do not cover the items");
  } else {
    plan = plan_packs(histogram(items), options.packer, options.packing, std::move(stop));
  }
  plan.policy = options.policy;
  return plan;
}

OrderedRows assign_items(std::vector<Item> items, const PackingPlan& plan, const PlanningOptions& options) {
  if (find_packer(options.packer).input_order) {
    OrderedRows rows = in_input_order(std::move(items), options);
    if (options.assign.order != RowOrder::input) rows.rows = order_rows(rows.rows, rows.items, options.assign);
    return rows;
  }
  Assignment rows = assign(items, plan, options.assign);
  return {std::move(items), std::move(rows)};
}

}  // namespace shardpack
