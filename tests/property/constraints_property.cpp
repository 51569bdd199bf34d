// Small instances under every constraint: rows keep the rules, hold what the rules leave, and their number lies between the bound
// and nothing better: the optimum is known by trying everything.
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "jobs/planning.h"
#include "shardpack/packer.h"
#include "support/catch.h"
#include "support/memory_source.h"

using namespace shardpack;

namespace {

struct Instance {
  std::vector<std::int64_t> lengths;
  PlanningOptions options;
};

Instance any_instance() {
  Instance instance;
  LengthPolicy& policy = instance.options.policy;
  policy.segment_multiple = *rc::gen::element<Length>(1, 1, 2, 3);
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
  }
  std::vector<std::string_view> names;
  for (const PackerInfo& packer : packers()) {
    if (packer.name != "concat") names.push_back(packer.name);
  }
  instance.options.packer = *rc::gen::elementOf(names);
  instance.options.packing = {.row_tokens = policy.row_tokens, .max_segments = most};
  instance.options.assign = {.seed = *rc::gen::arbitrary<std::uint64_t>(),
                             .partition = 0,
                             .order = *rc::gen::element(RowOrder::shuffled, RowOrder::by_strategy, RowOrder::input)};
  return instance;
}

/// Slots of the units that belong into rows, worked out from the rules as the manual has them.
std::vector<std::int64_t> expected_units(const Instance& instance) {
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
    if (!short_one && slots <= policy.row_tokens) units.push_back(slots);
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

}  // namespace

TEST_CASE("kept-together sequences in slots under a limit: whole units, every one once, rows between bound and optimum") {
  CHECK(rc::check([] {
    const Instance instance = any_instance();
    const PlanningOptions& options = instance.options;
    const std::int32_t together = options.policy.keep_together, most = options.packing.max_segments;
    RC_PRE(most == 0 || most >= together);
    const SequenceIndex index = memory_index(instance.lengths);
    const PolicyResult policy = apply_policy(index, 0, index.sequences(), options.policy);
    const PackingPlan plan = plan_items(policy.items, options, {});
    const OrderedRows rows = assign_items(policy.items, plan, options);

    // The units that the rules leave, each once and whole.
    const std::vector<std::int64_t> expected = expected_units(instance);
    std::vector<std::int64_t> found;
    std::set<SequenceId> seen;
    const std::int32_t limit = most > 0 ? most : plan.max_segments;  // nnlshp has one of its own
    for (std::int64_t r = 0; r < rows.rows.rows(); ++r) {
      const auto row = rows.rows.row(r);
      RC_ASSERT(row.size() % static_cast<std::size_t>(together) == 0);
      RC_ASSERT(limit == 0 || static_cast<std::int32_t>(row.size()) <= limit);
      std::int64_t slots = 0;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const Item& item = rows.items[static_cast<std::size_t>(row[i])];
        const Item& first = rows.items[static_cast<std::size_t>(row[i - i % static_cast<std::size_t>(together)])];
        RC_ASSERT(item.segments == 1);
        RC_ASSERT(item.tokens == instance.lengths[static_cast<std::size_t>(item.sequence)]);
        RC_ASSERT(first.sequence % together == 0);
        RC_ASSERT(item.sequence == first.sequence + static_cast<SequenceId>(i) % together);
        RC_ASSERT(seen.insert(item.sequence).second);
        if (i % static_cast<std::size_t>(together) == 0) found.push_back(0);
        found.back() += item.slots;
        slots += item.slots;
      }
      RC_ASSERT(slots <= options.policy.row_tokens);
    }
    std::vector<std::int64_t> sorted = expected;
    std::ranges::sort(sorted);
    std::ranges::sort(found);
    RC_ASSERT(found == sorted);
    RC_ASSERT(policy.sequences == static_cast<std::int64_t>(expected.size()) * together);

    // The plan says the same.
    RC_ASSERT(check_exact_cover(plan, planned_items(policy.items, options.policy)).empty());
    RC_ASSERT(check_certificate(plan, planned_items(policy.items, options.policy)).empty());
    RC_ASSERT(plan.rows() == rows.rows.rows());
    RC_ASSERT(stats(plan).segments == static_cast<std::int64_t>(rows.rows.items.size()));

    std::vector<std::pair<std::int64_t, std::int64_t>> open;
    const std::int64_t row_units = limit == 0 ? std::numeric_limits<std::int64_t>::max() : limit / together;
    const std::int64_t best = optimum(expected, 0, options.policy.row_tokens, row_units, open);
    RC_ASSERT(plan.bound.rows <= best);
    RC_ASSERT(best <= plan.rows());
    if (options.packer == "optimal") RC_ASSERT(plan.rows() <= best + 1);
  }));
}
