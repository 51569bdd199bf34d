#include "jobs/planning.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "io/histogram_file.h"
#include "shardpack/error.h"
#include "shardpack/row_balance.h"

namespace shardpack {

LengthSource read_lengths(const std::vector<std::string>& inputs, const ReadOptions& read, const LengthPolicy& policy,
                          const RunContext& context) {
  LengthSource source;
  std::optional<HistogramFile> file;
  if (inputs.size() == 1 && read.format.empty() && !read.eos_id) file = read_histogram_file(inputs[0]);
  if (file && file->groups.empty() && !read.group_column.empty()) {
    throw Error(ErrorCode::usage, "a plain histogram does not tell groups; give the shards, or a third column 'group'",
                inputs[0]);
  }
  if (file && read.limit > 0) {
    throw Error(ErrorCode::usage, "a histogram has no first sequences: --limit takes the shards", inputs[0]);
  }
  if (file) {
    source.histogram = std::move(file->lengths);
    source.groups = std::move(file->groups);
  } else {
    const bool ends = policy.append_eos || policy.prepend_bos;
    source.shards = open_source(
        inputs, read, {.random_access = false, .columns = policy.drop_unlabeled, .loss_places = loss_side(policy), .ends = ends},
        context);
  }
  return source;
}

namespace {

/// The items of a group, as indices into the partition's.
struct GroupMembers {
  std::int32_t group = 0;
  std::vector<std::int32_t> items;  // in input order; those of a unit follow each other
};

/// Of every group that has items, ascending.
std::vector<GroupMembers> members_by_group(const std::vector<Item>& items, const SequenceIndex& index) {
  std::vector<GroupMembers> groups(index.group_keys().size());
  for (std::size_t g = 0; g < groups.size(); ++g) groups[g].group = static_cast<std::int32_t>(g);
  for (std::size_t i = 0; i < items.size(); ++i) {
    groups[static_cast<std::size_t>(index.group(items[i].sequence))].items.push_back(static_cast<std::int32_t>(i));
  }
  std::erase_if(groups, [](const GroupMembers& group) { return group.items.empty(); });
  return groups;
}

std::vector<Item> items_of(const GroupMembers& group, const std::vector<Item>& items) {
  std::vector<Item> result;
  result.reserve(group.items.size());
  for (const std::int32_t i : group.items) result.push_back(items[static_cast<std::size_t>(i)]);
  return result;
}

/// Number items by their place in the sources again, after they were made group by group.
void sort_items(OrderedRows& rows) {
  std::vector<std::int32_t> order(rows.items.size()), place(rows.items.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::int32_t i) {
    const Item& item = rows.items[static_cast<std::size_t>(i)];
    return std::pair(item.sequence, item.first_token);
  });
  std::vector<Item> sorted;
  sorted.reserve(order.size());
  for (std::size_t at = 0; at < order.size(); ++at) {
    sorted.push_back(rows.items[static_cast<std::size_t>(order[at])]);
    place[static_cast<std::size_t>(order[at])] = static_cast<std::int32_t>(at);
  }
  rows.items = std::move(sorted);
  for (std::int32_t& item : rows.rows.items) item = place[static_cast<std::size_t>(item)];
}

}  // namespace

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
    if (options.assign.ordered && options.assign.order != RowOrder::input)
      rows.rows = order_rows(rows.rows, rows.items, options.assign);
    return rows;
  }
  const std::int32_t together = options.policy.keep_together;
  Assignment rows = together == 1 ? assign(items, plan, options.assign)
                                  : spread_units(assign(units_of(items, together), plan, options.assign), together);
  return {std::move(items), std::move(rows)};
}

std::vector<GroupLengths> planned_groups(const std::vector<Item>& items, const SequenceIndex& index, const LengthPolicy& policy) {
  std::vector<GroupLengths> result;
  if (!index.grouped()) return result;
  for (const GroupMembers& group : members_by_group(items, index)) {
    result.push_back({index.group_keys()[static_cast<std::size_t>(group.group)], planned_items(items_of(group, items), policy)});
  }
  return result;
}

PartitionPlan plan_partition(const std::vector<Item>& items, const SequenceIndex& index, const PlanningOptions& options,
                             const std::stop_token& stop) {
  // A partition in which nothing is left has no group, and a plan without rows.
  if (!index.grouped() || items.empty()) return {.plan = plan_items(items, options, stop), .groups = {}};
  PartitionPlan result;
  for (const GroupMembers& group : members_by_group(items, index)) {
    PackingPlan plan = plan_items(items_of(group, items), options, stop);
    LengthHistogram placed = covered_items(plan);
    result.groups.push_back({index.group_keys()[static_cast<std::size_t>(group.group)], std::move(plan), std::move(placed)});
  }
  result.plan = merge_plans(result.groups);
  return result;
}

namespace {

/// The rows of every group's plan, one group after the other, their items numbered as the partition's are.
OrderedRows assign_groups(std::vector<Item> items, const SequenceIndex& index, const PartitionPlan& plans,
                          PlanningOptions options) {
  const bool own_items = cuts_at_row_ends(options.packer);
  OrderedRows all;
  const std::vector<GroupMembers> groups = members_by_group(items, index);
  ensure(groups.size() == plans.groups.size(), "every group has a plan");
  for (std::size_t g = 0; g < groups.size(); ++g) {
    OrderedRows rows = assign_items(items_of(groups[g], items), plans.groups[g].plan, options);
    for (const std::int32_t item : rows.rows.items) {
      all.rows.items.push_back(own_items ? static_cast<std::int32_t>(all.items.size()) + item
                                         : groups[g].items[static_cast<std::size_t>(item)]);
    }
    const std::int64_t before = all.rows.begin.back();
    for (std::size_t r = 1; r < rows.rows.begin.size(); ++r) all.rows.begin.push_back(before + rows.rows.begin[r]);
    if (own_items) all.items.insert(all.items.end(), rows.items.begin(), rows.items.end());
    options.assign.first_item += static_cast<std::int64_t>(groups[g].items.size()) / options.policy.keep_together;
  }
  if (own_items) {
    sort_items(all);
  } else {
    all.items = std::move(items);
  }
  return all;
}

/// How long ranks would wait for each other if rows were written in the order that is asked for.
double imbalance_in_order(const OrderedRows& rows, const AssignOptions& options) {
  const std::vector<std::int64_t> costs = row_costs(rows.rows, rows.items);
  RankWaits waits(options.shape, options.first_row);
  for (const std::int32_t r : order_of_rows(rows.rows, rows.items, options)) waits.add(costs[static_cast<std::size_t>(r)]);
  return waits.imbalance();
}

/// Exchange items between rows, unless ranks would wait longer for it. A few very dear rows that lose the company of others in
/// their micro-step can bring that about: then as many rows as one has are left as they are.
void balance_rows(OrderedRows& rows, const SequenceIndex& index, const PlanningOptions& options) {
  std::vector<std::int32_t> groups;
  if (index.grouped()) {
    for (std::int64_t r = 0; r < rows.rows.rows(); ++r) {
      groups.push_back(index.group(rows.items[static_cast<std::size_t>(rows.rows.row(r).front())].sequence));
    }
  }
  const Assignment planned = rows.rows;
  const double before = imbalance_in_order(rows, options.assign);
  // No row gets more segments than the deepest has, whatever -K allows: the width of rows is settled by the plans.
  ExchangeOptions exchange{.keep_together = options.policy.keep_together};
  for (const std::int64_t untouched : {std::int64_t{0}, options.assign.shape.micro_step_rows()}) {
    exchange.untouched = untouched;
    exchange_items(rows, exchange, groups);
    if (imbalance_in_order(rows, options.assign) <= before) return;
    rows.rows = planned;
  }
}

}  // namespace

OrderedRows assign_partition(std::vector<Item> items, const SequenceIndex& index, const PartitionPlan& plans,
                             const PlanningOptions& options, PartitionCosts* costs) {
  const bool grouped = !plans.groups.empty();
  // An order of costs, or of all groups together, is made when all rows are there.
  const bool order_later = grouped || options.balance_attention || costs != nullptr || options.assign.order == RowOrder::balanced;
  PlanningOptions first = options;
  first.assign.ordered = !order_later || options.assign.order == RowOrder::input;
  OrderedRows rows =
      grouped ? assign_groups(std::move(items), index, plans, first) : assign_items(std::move(items), plans.plan, first);
  if (!order_later) return rows;
  if (costs != nullptr) costs->planned = row_costs(rows.rows, rows.items);
  if (options.balance_attention) balance_rows(rows, index, options);
  if (costs != nullptr) costs->written = row_costs(rows.rows, rows.items);
  rows.rows = order_rows(rows.rows, rows.items, options.assign);
  return rows;
}

namespace {

/// The plan of `rows`, with the bound of `like` where that is a bound of the same items.
PackingPlan derive_like(const OrderedRows& rows, const PackingPlan& like) {
  PackingPlan plan = derive_plan(rows, like.packer, like.policy, like.max_segments);
  if (covered_items(plan) == covered_items(like)) {
    plan.bound = like.bound;
    plan.certificate = like.certificate;
  }
  return plan;
}

}  // namespace

PartitionPlan derive_plans(OrderedRows& rows, const SequenceIndex& index, const PartitionPlan& like) {
  if (like.groups.empty()) return {.plan = derive_like(rows, like.plan), .groups = {}};
  std::vector<Assignment> by_group(index.group_keys().size());
  for (std::int64_t r = 0; r < rows.rows.rows(); ++r) {
    const std::span<const std::int32_t> row = rows.rows.row(r);
    Assignment& group =
        by_group[static_cast<std::size_t>(index.group(rows.items[static_cast<std::size_t>(row.front())].sequence))];
    group.items.insert(group.items.end(), row.begin(), row.end());
    group.begin.push_back(static_cast<std::int64_t>(group.items.size()));
  }
  PartitionPlan result;
  OrderedRows part{std::move(rows.items), {}};
  for (const GroupPlan& group : like.groups) {
    const auto at =
        static_cast<std::size_t>(std::ranges::lower_bound(index.group_keys(), group.key) - index.group_keys().begin());
    part.rows = std::move(by_group[at]);
    if (part.rows.rows() == 0) continue;
    PackingPlan plan = derive_like(part, group.plan);
    LengthHistogram placed = covered_items(plan);
    result.groups.push_back({group.key, std::move(plan), std::move(placed)});
  }
  rows.items = std::move(part.items);
  result.plan = result.groups.empty() ? derive_like(rows, like.plan) : merge_plans(result.groups);
  return result;
}

}  // namespace shardpack
