// What filling rows anew must reach, and must leave alone.
#include "core/refill.h"

#include <stop_token>
#include <vector>

#include "base/rng.h"
#include "shardpack/packer.h"
#include "support/catch.h"
#include "support/web_text.h"

using namespace shardpack;

namespace {
PackerOptions options(Length row_tokens, std::int32_t max_segments) {
  PackerOptions result;
  result.row_tokens = row_tokens;
  result.max_segments = max_segments;
  return result;
}

bool same(const PackingPlan& a, const PackingPlan& b) {
  return a.lengths == b.lengths && a.begin == b.begin && a.count == b.count;
}
}  // namespace

TEST_CASE("refill: a million sequences of web text are at most one row over the bound, whatever the seed") {
  for (std::uint32_t stream = 0; stream < 4; ++stream) {
    const LengthHistogram items = web_text(stream, 1'000'000);
    INFO("stream " << stream << ", best fit alone " << plan_packs(items, "lpfhp", options(2048, 0)).gap() << " over");
    CHECK(plan_packs(items, "auto", options(2048, 0)).gap() <= 1);
  }
}

TEST_CASE("auto: under a limit of segments too, where best fit is a fifth over the bound and the problem is too large to solve") {
  const LengthHistogram items = web_text(0, 1'000'000);
  PackerOptions of_eight = options(2048, 8);
  of_eight.effort = PlanEffort::fast;
  const std::int64_t best_fit = plan_packs(items, "lpfhp", of_eight).rows();
  const PackingPlan plan = plan_packs(items, "auto", of_eight);
  CHECK(best_fit > plan.bound.rows * 6 / 5);
  CHECK(plan.rows() < plan.bound.rows * 51 / 50);
}

TEST_CASE("refill: three items that fill a row exactly are found where best fit is 16 % off") {
  LengthHistogram items;  // Falkenauer's triplets, of which the optimum is known
  const RandomStream random(7, RandomPurpose::sample);
  const std::int64_t rows = 20'000;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const auto first = static_cast<std::int64_t>(380 + random.bounded(2 * row, 111));
    const auto second =
        static_cast<std::int64_t>(250 + random.bounded(2 * row + 1, static_cast<std::uint64_t>(500 - first / 2 - 249)));
    for (const std::int64_t length : {first, second, 1000 - first - second}) items.add(length);
  }
  for (const std::int32_t max_segments : {0, 3}) {
    PackingPlan plan = plan_packs(items, "lpfhp", options(1000, max_segments));
    CHECK(plan.rows() > rows * 115 / 100);
    CHECK(refill(plan, rows, {}));
    CHECK(plan.rows() <= rows * 102 / 100);
    CHECK(check_exact_cover(plan, items).empty());
  }
}

TEST_CASE("refill: a plan that is good enough, or cannot be made better, stays as it is") {
  const std::vector<LengthCount> counts{{4, 5}, {7, 5}};  // 5 rows of 11, each with a free slot
  const PackingPlan before = plan_packs(LengthHistogram(counts), "lpfhp", options(12, 0));
  PackingPlan plan = before;
  CHECK_FALSE(refill(plan, before.rows(), {}));
  CHECK(same(plan, before));
  CHECK_FALSE(refill(plan, 0, {}));
  CHECK(same(plan, before));

  PackingPlan nothing = plan_packs(LengthHistogram(), "lpfhp", options(12, 0));
  CHECK_FALSE(refill(nothing, 0, {}));
  CHECK(nothing.rows() == 0);
}

TEST_CASE("refill: rows are few or a million million") {
  for (const std::int64_t times : {std::int64_t{1}, std::int64_t{1'000'000'000'000}}) {
    PackingPlan plan;
    plan.row_tokens = 10;
    plan.add(std::vector<Length>{6, 3}, 2 * times);  // one slot free in each; 6 4, 6 4, 3 3 3 1 is full, but for one slot
    plan.add(std::vector<Length>{4, 4, 1}, times);
    plan.add(std::vector<Length>{3}, times);
    const LengthHistogram items = covered_items(plan);
    CHECK(refill(plan, 0, {}));
    CHECK(plan.rows() == 3 * times);
    CHECK(check_exact_cover(plan, items).empty());
  }
}

TEST_CASE("refill: rows of a million slots cost a bounded number of steps") {
  LengthHistogram items;
  for (std::int64_t length = 3; length <= 1'048'576; length += 1001) items.add(length, 20);
  items.add(2, 1'000'000'000);
  for (const std::int32_t max_segments : {0, 5}) {
    PackingPlan plan = plan_packs(items, "none", options(1'048'576, max_segments));
    const std::int64_t before = plan.rows();
    refill(plan, 0, {});
    CHECK(plan.rows() <= before);
    CHECK(check_exact_cover(plan, items).empty());
  }
}

TEST_CASE("refill: a stop is heard") {
  std::stop_source source;
  source.request_stop();
  PackingPlan plan = plan_packs(LengthHistogram(std::vector<LengthCount>{{3, 10}, {5, 10}}), "none", options(10, 0));
  CHECK_THROWS_AS(refill(plan, 0, source.get_token()), Error);
}
