#include "shardpack/packing_plan.h"

#include <limits>
#include <utility>
#include <vector>

#include "support/catch.h"

using namespace shardpack;

namespace {
PackingPlan plan_of(Length row_tokens, const std::vector<std::pair<std::vector<Length>, std::int64_t>>& strategies) {
  PackingPlan plan;
  plan.row_tokens = row_tokens;
  for (const auto& [lengths, rows] : strategies) plan.add(lengths, rows);
  return plan;
}
}  // namespace

TEST_CASE("canonical plans are descending, without repeats and zeros, whatever the order of adding") {
  PackingPlan plan = plan_of(10, {{{5, 3}, 1}, {{5, 5}, 2}, {{5}, 7}, {{5, 3}, 4}, {{9, 1}, 0}, {{5, 3, 1}, 1}});
  const PackingPlan expected = plan_of(10, {{{5, 5}, 2}, {{5, 3, 1}, 1}, {{5, 3}, 5}, {{5}, 7}});
  plan.canonicalize();
  CHECK(plan.lengths == expected.lengths);
  CHECK(plan.begin == expected.begin);
  CHECK(plan.count == expected.count);
  plan.canonicalize();
  CHECK(plan.lengths == expected.lengths);
  CHECK(plan.count == expected.count);
  CHECK(plan.rows() == 15);
  CHECK(plan.strategies() == 4);
}

TEST_CASE("statistics of a plan") {
  PackingPlan plan = plan_of(10, {{{5, 4}, 3}, {{2, 2, 2}, 1}});
  plan.bound = {3, BoundKind::l1};
  const PlanStats figures = stats(plan);
  CHECK(figures.rows == 4);
  CHECK(figures.items == 9);
  CHECK(figures.slots_used == 33);
  CHECK(figures.padding == 7);
  CHECK(figures.efficiency == 0.825);
  CHECK(figures.packing_factor == 2.25);
  CHECK(figures.max_segments_in_row == 3);
  CHECK(plan.gap() == 1);
}

TEST_CASE("an empty plan has no rows and no padding") {
  PackingPlan plan;
  plan.row_tokens = 10;
  plan.canonicalize();
  CHECK(plan.begin == std::vector<std::int64_t>{0});
  CHECK(plan.rows() == 0);
  const PlanStats figures = stats(plan);
  CHECK(figures.efficiency == 1);
  CHECK(figures.packing_factor == 0);
  CHECK(figures.padding == 0);
}

TEST_CASE("totals of a plan never wrap") {
  const std::int64_t many = std::numeric_limits<std::int64_t>::max() / 2 + 1;
  CHECK_THROWS_AS(plan_of(10, {{{5}, many}, {{4}, many}}).rows(), Error);
  CHECK_THROWS_AS(stats(plan_of(10, {{{5, 5}, many}})), Error);
  PackingPlan plan = plan_of(10, {{{5}, many}, {{5}, many}});
  CHECK_THROWS_AS(plan.canonicalize(), Error);
}
