#include "jobs/planning.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {
OrderedRows in_input_order(std::vector<Item> items, const PlanningOptions& options) {
  const Length row_tokens = options.policy.row_tokens;
  const std::int32_t max_segments = options.packing.max_segments, together = options.policy.keep_together;
  if (options.packer == "concat") return pack_concat(items, row_tokens, max_segments, options.policy.segment_multiple);
  if (together == 1) return pack_sequential(std::move(items), row_tokens, max_segments);
  const OrderedRows units = pack_sequential(units_of(items, together), row_tokens, max_segments / together);
  return {std::move(items), spread_units(units.rows, together)};
}
}  // namespace

LengthPolicy effective_policy(LengthPolicy policy, std::string_view packer, std::int32_t max_segments) {
  if (packer == "concat") {
    if (policy.split_min_tokens > 0) {
      throw Error(ErrorCode::usage, "--split-min-tokens does not apply to concat, which cuts at row ends and drops no piece");
    }
    if (policy.keep_together > 1) {
      throw Error(ErrorCode::usage,
                  "concat cuts sequences at row ends, so --keep-together does not go with it; sequential keeps the order");
    }
    policy.overlong = Overlong::split;
  }
  check_policy(policy);
  if (max_segments > 0 && max_segments < policy.keep_together) {
    throw Error(ErrorCode::usage, fmt::format("-K {} is fewer segments than --keep-together {} keeps in one row; raise -K",
                                              max_segments, policy.keep_together));
  }
  return policy;
}

LengthHistogram planned_items(const std::vector<Item>& items, const LengthPolicy& policy) {
  return policy.keep_together == 1 ? histogram(items) : histogram(units_of(items, policy.keep_together));
}

PackingPlan plan_items(const std::vector<Item>& items, const PlanningOptions& options, std::stop_token stop) {
  if (find_packer(options.packer).input_order) {
    const OrderedRows rows = in_input_order(items, options);
    PackingPlan plan = derive_plan(rows, options.packer, options.policy, options.packing.max_segments);
    ensure(check_exact_cover(plan, planned_items(rows.items, options.policy)).empty(),
           "rows in input order do not cover the items");
    return plan;
  }
  // A packer counts items; a limit of segments allows as many as fit it whole.
  const std::int32_t together = options.policy.keep_together;
  PackerOptions packing = options.packing;
  packing.max_segments /= together;
  PackingPlan plan = plan_packs(planned_items(items, options.policy), options.packer, packing, std::move(stop));
  plan.policy = options.policy;
  plan.max_segments = options.packing.max_segments > 0 ? options.packing.max_segments : plan.max_segments * together;
  return plan;
}

OrderedRows assign_items(std::vector<Item> items, const PackingPlan& plan, const PlanningOptions& options) {
  if (find_packer(options.packer).input_order) {
    OrderedRows rows = in_input_order(std::move(items), options);
    if (options.assign.order != RowOrder::input) rows.rows = order_rows(rows.rows, rows.items, options.assign);
    return rows;
  }
  const std::int32_t together = options.policy.keep_together;
  Assignment rows = together == 1 ? assign(items, plan, options.assign)
                                  : spread_units(assign(units_of(items, together), plan, options.assign), together);
  return {std::move(items), std::move(rows)};
}

}  // namespace shardpack
