#include "jobs/planning.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "io/histogram_file.h"
#include "shardpack/error.h"

namespace shardpack {

LengthSource read_lengths(const std::vector<std::string>& inputs, const ReadOptions& read, const LengthPolicy& policy,
                          const RunContext& context) {
  LengthSource source;
  if (inputs.size() == 1 && read.format.empty() && !read.eos_id) source.histogram = read_histogram(inputs[0]);
  if (!source.histogram) {
    const bool ends = policy.append_eos || policy.prepend_bos;
    source.shards = open_source(inputs, read, {.random_access = false, .ends = ends}, context);
  }
  return source;
}

bool cuts_at_row_ends(std::string_view packer) { return packer == "concat"; }

LengthPolicy effective_policy(LengthPolicy policy, std::string_view packer, std::int32_t max_segments) {
  if (cuts_at_row_ends(packer)) {
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

OrderedRows rows_in_input_order(std::vector<Item> items, const PlanningOptions& options) {
  const Length row_tokens = options.policy.row_tokens;
  const std::int32_t max_segments = options.packing.max_segments, together = options.policy.keep_together;
  if (cuts_at_row_ends(options.packer)) return pack_concat(items, row_tokens, max_segments, options.policy.segment_multiple);
  if (together == 1) return pack_sequential(std::move(items), row_tokens, max_segments);
  const OrderedRows units = pack_sequential(units_of(items, together), row_tokens, max_segments / together);
  return {std::move(items), spread_units(units.rows, together)};
}

PackingPlan plan_of_rows(const OrderedRows& rows, const PlanningOptions& options) {
  PackingPlan plan = derive_plan(rows, options.packer, options.policy, options.packing.max_segments);
  ensure(check_exact_cover(plan, planned_items(rows.items, options.policy)).empty(),
         "rows in input order do not cover the items");
  return plan;
}

PackingPlan plan_counts(const LengthHistogram& planned, const PlanningOptions& options, std::stop_token stop) {
  // A packer counts items; a limit of segments allows as many as fit it whole.
  const std::int32_t together = options.policy.keep_together;
  PackerOptions packing = options.packing;
  packing.max_segments /= together;
  PackingPlan plan = plan_packs(planned, options.packer, packing, std::move(stop));
  plan.policy = options.policy;
  plan.max_segments = options.packing.max_segments > 0 ? options.packing.max_segments : plan.max_segments * together;
  return plan;
}

PackingPlan plan_items(const std::vector<Item>& items, const PlanningOptions& options, std::stop_token stop) {
  if (find_packer(options.packer).input_order) return plan_of_rows(rows_in_input_order(items, options), options);
  return plan_counts(planned_items(items, options.policy), options, std::move(stop));
}

OrderedRows assign_items(std::vector<Item> items, const PackingPlan& plan, const PlanningOptions& options) {
  if (find_packer(options.packer).input_order) {
    OrderedRows rows = rows_in_input_order(std::move(items), options);
    if (options.assign.order != RowOrder::input) rows.rows = order_rows(rows.rows, rows.items, options.assign);
    return rows;
  }
  const std::int32_t together = options.policy.keep_together;
  Assignment rows = together == 1 ? assign(items, plan, options.assign)
                                  : spread_units(assign(units_of(items, together), plan, options.assign), together);
  return {std::move(items), std::move(rows)};
}

}  // namespace shardpack
