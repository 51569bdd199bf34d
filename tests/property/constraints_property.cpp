// Small instances under every constraint: rows keep the rules, hold what the rules leave, and their number lies between the bound
// and nothing better: the optimum is known by trying everything.
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "jobs/planning.h"
#include "shardpack/packer.h"
#include "shardpack/row_balance.h"
#include "support/catch.h"
#include "support/memory_source.h"

using namespace shardpack;

namespace {

struct Instance {
  std::vector<std::int64_t> lengths;
  std::vector<std::int32_t> groups;  // of each sequence
  PlanningOptions options;
};

Instance any_instance() {
  Instance instance;
  LengthPolicy& policy = instance.options.policy;
  policy.segment_multiple = *rc::gen::element<Length>(1, 1, 2, 3, 1 << 17);  // the last: a few rows are several windows
  policy.row_tokens = policy.segment_multiple * *rc::gen::inRange<Length>(3, 12);
  policy.keep_together = *rc::gen::inRange<std::int32_t>(1, 4);
  policy.overlong = Overlong::drop;
  policy.min_tokens = *rc::gen::element<Length>(0, 0, 0, 2);
  policy.append_eos = *rc::gen::arbitrary<bool>();
  const std::int32_t most = *rc::gen::element<std::int32_t>(0, 0, 3, 4, 5, 7);
  const std::size_t units = *rc::gen::inRange<std::size_t>(0, 8);
  const std::int64_t longest = std::max<std::int64_t>(2, policy.row_tokens * 3 / 2 / policy.keep_together);
  for (std::size_t i = 0; i < units * static_cast<std::size_t>(policy.keep_together); ++i) {
    instance.lengths.push_back(*rc::gen::inRange<std::int64_t>(1, longest + 1));
    const bool first = i % static_cast<std::size_t>(policy.keep_together) == 0;
    instance.groups.push_back(first ? *rc::gen::inRange<std::int32_t>(0, 3) : instance.groups.back());
  }
  std::vector<std::string_view> names;
  for (const PackerInfo& packer : packers()) {
    if (packer.name != "concat") names.push_back(packer.name);
  }
  instance.options.packer = *rc::gen::elementOf(names);
  instance.options.packing = {.row_tokens = policy.row_tokens, .max_segments = most};
  instance.options.assign = {.seed = *rc::gen::arbitrary<std::uint64_t>(),
                             .partition = 0,
                             .order = *rc::gen::element(RowOrder::shuffled, RowOrder::windowed, RowOrder::by_strategy,
                                                        RowOrder::input, RowOrder::balanced),
                             .first_item = 0,
                             .row_tokens = policy.row_tokens,
                             .shape = {*rc::gen::inRange<std::int64_t>(1, 4), *rc::gen::inRange<std::int64_t>(1, 3),
                                       *rc::gen::inRange<std::int64_t>(1, 3)},
                             .first_row = *rc::gen::inRange<std::int64_t>(0, 9)};
  instance.options.balance_attention = *rc::gen::arbitrary<bool>() && !find_packer(instance.options.packer).input_order;
  return instance;
}

/// Slots of the units of a group that belong into rows, worked out from the rules as the manual has them.
std::vector<std::int64_t> expected_units(const Instance& instance, std::int32_t group) {
  const LengthPolicy& policy = instance.options.policy;
  std::vector<std::int64_t> units;
  for (std::size_t i = 0; i < instance.lengths.size(); i += static_cast<std::size_t>(policy.keep_together)) {
    std::int64_t slots = 0;
    bool short_one = false;
    for (std::size_t k = i; k < i + static_cast<std::size_t>(policy.keep_together); ++k) {
      const std::int64_t length = instance.lengths[k] + (policy.append_eos ? 1 : 0);
      slots += (length + policy.segment_multiple - 1) / policy.segment_multiple * policy.segment_multiple;
      short_one |= instance.lengths[k] < policy.min_tokens;
    }
    if (instance.groups[i] == group && !short_one && slots <= policy.row_tokens) units.push_back(slots);
  }
  return units;
}

/// Fewest rows for units[next..], by putting each into every row there is, and into a new one.
std::int64_t optimum(const std::vector<std::int64_t>& units, std::size_t next, std::int64_t row_slots, std::int64_t row_units,
                     std::vector<std::pair<std::int64_t, std::int64_t>>& rows) {
  if (next == units.size()) return static_cast<std::int64_t>(rows.size());
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (std::size_t r = 0; r <= rows.size(); ++r) {
    if (r == rows.size()) {
      rows.emplace_back(0, 0);
      rows.back() = {units[next], 1};
      best = std::min(best, optimum(units, next + 1, row_slots, row_units, rows));
      rows.pop_back();
      break;
    }
    if (rows[r].first + units[next] > row_slots || rows[r].second == row_units) continue;
    rows[r].first += units[next];
    ++rows[r].second;
    best = std::min(best, optimum(units, next + 1, row_slots, row_units, rows));
    rows[r].first -= units[next];
    --rows[r].second;
  }
  return best;
}

/// Rows against everything that was asked of them. \return the units found, by group
std::map<std::int32_t, std::vector<std::int64_t>> units_in(const OrderedRows& rows, const Instance& instance,
                                                           std::int32_t limit) {
  const auto together = static_cast<std::size_t>(instance.options.policy.keep_together);
  std::map<std::int32_t, std::vector<std::int64_t>> found;
  std::set<SequenceId> seen;
  for (std::int64_t r = 0; r < rows.rows.rows(); ++r) {
    const auto row = rows.rows.row(r);
    RC_ASSERT(!row.empty());
    RC_ASSERT(row.size() % together == 0);
    RC_ASSERT(limit == 0 || static_cast<std::int32_t>(row.size()) <= limit);
    const auto item_at = [&](std::size_t i) { return rows.items[static_cast<std::size_t>(row[i])]; };
    const std::int32_t group = instance.groups[static_cast<std::size_t>(item_at(0).sequence)];
    std::int64_t slots = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const Item item = item_at(i), first = item_at(i - i % together);
      RC_ASSERT(item.segments == 1);
      RC_ASSERT(item.tokens == instance.lengths[static_cast<std::size_t>(item.sequence)]);
      RC_ASSERT(instance.groups[static_cast<std::size_t>(item.sequence)] == group);
      RC_ASSERT(first.sequence % static_cast<SequenceId>(together) == 0);
      RC_ASSERT(item.sequence == first.sequence + static_cast<SequenceId>(i % together));
      RC_ASSERT(seen.insert(item.sequence).second);
      if (i % together == 0) found[group].push_back(0);
      found[group].back() += item.slots;
      slots += item.slots;
    }
    RC_ASSERT(slots <= instance.options.policy.row_tokens);
  }
  return found;
}

/// The plan of one group lies between its bound and nothing better.
void check_group(const PackingPlan& plan, const Instance& instance, const std::vector<std::int64_t>& units, std::int32_t limit) {
  LengthHistogram placed;
  for (const std::int64_t slots : units) placed.add(slots);
  RC_ASSERT(check_exact_cover(plan, placed).empty());
  RC_ASSERT(check_certificate(plan, placed).empty());
  std::vector<std::pair<std::int64_t, std::int64_t>> open;
  const std::int64_t row_units =
      limit == 0 ? std::numeric_limits<std::int64_t>::max() : limit / instance.options.policy.keep_together;
  const std::int64_t best = optimum(units, 0, instance.options.policy.row_tokens, row_units, open);
  RC_ASSERT(plan.bound.rows <= best);
  RC_ASSERT(best <= plan.rows());
  if (instance.options.packer == "optimal") RC_ASSERT(plan.rows() <= best + 1);
}

/// An exchange makes rows of the same number, bound and total cost that are no further apart, and ranks wait no longer.
/// \return the plans of the rows
PartitionPlan check_balance(OrderedRows& rows, const PartitionCosts& costs, const PartitionPlan& planned,
                            const SequenceIndex& index, const PlanningOptions& options) {
  PlanningOptions plain = options;
  plain.balance_attention = false;
  std::vector<Item> items = rows.items;
  const OrderedRows before = assign_partition(std::move(items), index, planned, plain);
  const auto waits = [&](const OrderedRows& of) {
    RankWaits waits(options.assign.shape, options.assign.first_row);
    for (const std::int64_t cost : row_costs(of.rows, of.items)) waits.add(cost);
    return waits.imbalance();
  };
  RC_ASSERT(waits(rows) <= waits(before));
  std::vector<std::int64_t> dearest = costs.planned, then = costs.written;
  std::ranges::sort(dearest, std::greater<>());
  std::ranges::sort(then, std::greater<>());
  std::int64_t of_planned = 0, of_written = 0;
  for (std::size_t r = 0; r < dearest.size(); ++r) {
    of_planned += dearest[r];
    of_written += then[r];
    RC_ASSERT(of_written <= of_planned);
  }
  RC_ASSERT(of_written == of_planned);
  PartitionPlan derived = derive_plans(rows, index, planned);
  RC_ASSERT(derived.plan.rows() == planned.plan.rows());
  RC_ASSERT(derived.plan.bound.rows == planned.plan.bound.rows);
  RC_ASSERT(derived.plan.max_segments == planned.plan.max_segments);
  RC_ASSERT(stats(derived.plan).max_segments_in_row <=
            std::max<std::int64_t>(stats(planned.plan).max_segments_in_row, planned.plan.max_segments));
  return derived;
}

}  // namespace

TEST_CASE("units in slots under a limit, of groups or not: every one whole and once, rows between bound and optimum") {
  CHECK(rc::check([] {
    Instance instance = any_instance();
    const bool grouped = *rc::gen::arbitrary<bool>();
    if (!grouped) std::ranges::fill(instance.groups, 0);
    const PlanningOptions& options = instance.options;
    RC_PRE(options.packing.max_segments == 0 || options.packing.max_segments >= options.policy.keep_together);
    SequenceIndex index = memory_index(instance.lengths);
    if (grouped) index.set_groups({false, std::int64_t{7}, std::string("web")}, instance.groups);
    const PolicyResult policy = apply_policy(index, 0, index.sequences(), options.policy);
    const PartitionPlan planned = plan_partition(policy.items, index, options, {});
    PartitionCosts costs;
    OrderedRows rows = assign_partition(policy.items, index, planned, options, &costs);
    const PartitionPlan plans = options.balance_attention ? check_balance(rows, costs, planned, index, options) : planned;

    const std::int32_t limit = plans.plan.max_segments;  // nnlshp has one of its own
    RC_ASSERT(options.packing.max_segments == 0 || limit == options.packing.max_segments);
    std::map<std::int32_t, std::vector<std::int64_t>> found = units_in(rows, instance, limit);
    std::int64_t units = 0, bound = 0;
    std::size_t next_group = 0;
    for (std::int32_t group = 0; group < 3; ++group) {
      std::vector<std::int64_t> expected = expected_units(instance, group);
      std::ranges::sort(expected);
      std::ranges::sort(found[group]);
      RC_ASSERT(found[group] == expected);
      units += std::ssize(expected);
      if (expected.empty()) continue;
      const PackingPlan& plan = grouped ? plans.groups.at(next_group).plan : plans.plan;
      if (grouped) RC_ASSERT(plans.groups[next_group++].key == index.group_keys()[static_cast<std::size_t>(group)]);
      check_group(plan, instance, expected, limit);
      bound += plan.bound.rows;
    }
    RC_ASSERT(next_group == plans.groups.size());
    RC_ASSERT(policy.sequences == units * options.policy.keep_together);
    RC_ASSERT(plans.plan.rows() == rows.rows.rows());
    RC_ASSERT(plans.plan.bound.rows == bound);
    RC_ASSERT(stats(plans.plan).segments == static_cast<std::int64_t>(rows.rows.items.size()));

    // The plans are what the rows amount to, and equal options give equal rows.
    const PartitionPlan derived = derive_plans(rows, index, plans);
    RC_ASSERT(derived.plan.lengths == plans.plan.lengths);
    RC_ASSERT(derived.plan.count == plans.plan.count);
    RC_ASSERT(derived.groups.size() == plans.groups.size());
    RC_ASSERT(assign_partition(policy.items, index, planned, options).rows.items == rows.rows.items);
  }));
}
