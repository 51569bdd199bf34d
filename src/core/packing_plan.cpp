#include "shardpack/packing_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/checked.h"

namespace shardpack {

void PackingPlan::add(std::span<const Length> strategy_lengths, std::int64_t rows) {
  lengths.insert(lengths.end(), strategy_lengths.begin(), strategy_lengths.end());
  begin.push_back(static_cast<std::int64_t>(lengths.size()));
  count.push_back(rows);
}

void PackingPlan::canonicalize() {
  const auto before = [this](std::int64_t a, std::int64_t b) {
    const std::span<const Length> x = strategy(a), y = strategy(b);
    return std::lexicographical_compare(y.begin(), y.end(), x.begin(), x.end());
  };
  std::vector<std::int64_t> order(count.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::sort(order.begin(), order.end(), before);

  PackingPlan sorted;
  sorted.lengths.reserve(lengths.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    std::int64_t rows = 0;
    for (; last < order.size() && !before(order[first], order[last]); ++last) {
      rows = checked_add(rows, count[static_cast<std::size_t>(order[last])], "the number of rows");
    }
    if (rows != 0) sorted.add(strategy(order[first]), rows);
    first = last;
  }
  lengths = std::move(sorted.lengths);
  begin = std::move(sorted.begin);
  count = std::move(sorted.count);
}

std::int64_t PackingPlan::rows() const {
  std::int64_t sum = 0;
  for (const std::int64_t rows_of_strategy : count) sum = checked_add(sum, rows_of_strategy, "the number of rows");
  return sum;
}

PackingPlan merge_plans(const std::vector<GroupPlan>& groups) {
  PackingPlan merged;
  if (groups.empty()) return merged;
  const PackingPlan& first = groups.front().plan;
  merged.packer = first.packer;
  merged.row_tokens = first.row_tokens;
  merged.max_segments = first.max_segments;
  merged.policy = first.policy;
  merged.bound.kind = first.bound.kind;
  for (const GroupPlan& group : groups) {
    const PackingPlan& plan = group.plan;
    for (std::int64_t s = 0; s < plan.strategies(); ++s) merged.add(plan.strategy(s), plan.count[static_cast<std::size_t>(s)]);
    merged.bound.rows = checked_add(merged.bound.rows, plan.bound.rows, "the bound");
  }
  merged.canonicalize();
  return merged;
}

PlanStats stats(const PackingPlan& plan) {
  PlanStats result;
  for (std::int64_t s = 0; s < plan.strategies(); ++s) {
    const std::span<const Length> strategy = plan.strategy(s);
    const std::int64_t rows = plan.count[static_cast<std::size_t>(s)];
    const auto items = static_cast<std::int64_t>(strategy.size());
    const std::int64_t slots = std::accumulate(strategy.begin(), strategy.end(), std::int64_t{0});
    result.rows = checked_add(result.rows, rows, "the number of rows");
    result.items = checked_add(result.items, checked_mul(rows, items, "the number of items"), "the number of items");
    result.slots_used = checked_add(result.slots_used, checked_mul(rows, slots, "the number of slots"), "the number of slots");
    result.max_segments_in_row = std::max(result.max_segments_in_row, items * plan.policy.keep_together);
  }
  result.segments = checked_mul(result.items, plan.policy.keep_together, "the number of segments");
  const std::int64_t all_slots = checked_mul(result.rows, plan.row_tokens, "the number of slots");
  result.padding = all_slots - result.slots_used;
  result.efficiency = all_slots == 0 ? 1 : static_cast<double>(result.slots_used) / static_cast<double>(all_slots);
  result.packing_factor = result.rows == 0 ? 0 : static_cast<double>(result.items) / static_cast<double>(result.rows);
  return result;
}

}  // namespace shardpack
