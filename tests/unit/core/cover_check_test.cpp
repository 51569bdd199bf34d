#include <limits>
#include <string>
#include <vector>

#include "shardpack/packing_plan.h"
#include "support/catch.h"

using namespace shardpack;

namespace {
const std::vector<LengthCount> kCounts{{0, 9}, {2, 4}, {3, 2}, {5, 3}};

LengthHistogram items() { return LengthHistogram(kCounts); }

/// An exact cover of items() in rows of 10 with at most 3 segments.
PackingPlan good_plan() {
  PackingPlan plan;
  plan.row_tokens = 10;
  plan.max_segments = 3;
  plan.add(std::vector<Length>{5, 5}, 1);
  plan.add(std::vector<Length>{5, 3, 2}, 1);
  plan.add(std::vector<Length>{3, 2, 2}, 1);
  plan.add(std::vector<Length>{2}, 1);
  return plan;
}

/// The findings on `plan`, one "kind: message" a line.
std::string findings(const PackingPlan& plan) {
  std::string lines;
  for (const Issue& issue : check_exact_cover(plan, items())) lines += issue.kind + ": " + issue.message + "\n";
  return lines;
}
}  // namespace

TEST_CASE("an exact cover has no findings, and empty sequences need no place") { CHECK(findings(good_plan()) == ""); }

TEST_CASE("no items are covered by no strategies") {
  PackingPlan plan;
  plan.row_tokens = 10;
  CHECK(check_exact_cover(plan, {}).empty());
}

TEST_CASE("every break of the cover is found and told with both numbers") {
  PackingPlan plan = good_plan();

  SECTION("an item too few and a place too many") {
    plan.count[0] = 2;
    CHECK(findings(plan) == "cover: length 5: 5 places planned for 3 items\n");
  }
  SECTION("a length that no strategy places") {
    plan.lengths[3] = 2;  // {5, 2, 2}
    CHECK(findings(plan) ==
          "cover: length 2: 5 places planned for 4 items\n"
          "cover: length 3: 1 places planned for 2 items\n");
  }
  SECTION("a length that no item has") {
    plan.lengths.back() = 1;
    CHECK(findings(plan) ==
          "cover: length 2: 3 places planned for 4 items\n"
          "cover: length 1: 1 places planned for 0 items\n");
  }
  SECTION("a row over its length") {
    plan.row_tokens = 9;
    CHECK(findings(plan) ==
          "strategy: strategy 0: 10 slots in a row of 9\n"
          "strategy: strategy 1: 10 slots in a row of 9\n");
  }
  SECTION("a row over its segments") {
    plan.max_segments = 2;
    CHECK(findings(plan) ==
          "strategy: strategy 1: 3 segments in a row, at most 2 allowed\n"
          "strategy: strategy 2: 3 segments in a row, at most 2 allowed\n");
  }
  SECTION("lengths that do not descend") {
    std::swap(plan.lengths[2], plan.lengths[4]);
    CHECK(findings(plan) == "strategy: strategy 1: its lengths do not descend\n");
  }
  SECTION("a count that is no count") {
    plan.count[3] = 0;
    CHECK(findings(plan) ==
          "strategy: strategy 3: used in 0 rows, expected at least 1\n"
          "cover: length 2: 3 places planned for 4 items\n");
  }
  SECTION("a negative count cannot make up for a surplus") {
    plan.add(std::vector<Length>{5}, 1);
    plan.add(std::vector<Length>{5}, -1);
    CHECK(findings(plan) == "strategy: strategy 5: used in -1 rows, expected at least 1\n");
  }
  SECTION("an empty strategy") {
    plan.add({}, 1);
    CHECK(findings(plan) == "strategy: strategy 4: places nothing\n");
  }
  SECTION("lengths outside the row") {
    plan.add(std::vector<Length>{11}, 1);
    plan.add(std::vector<Length>{0}, 1);
    plan.add(std::vector<Length>{-3}, 1);
    CHECK(findings(plan) ==
          "strategy: strategy 4: a length of 11, expected 1 to 10\n"
          "strategy: strategy 5: a length of 0, expected 1 to 10\n"
          "strategy: strategy 6: a length of -3, expected 1 to 10\n");
  }
}

TEST_CASE("a plan whose parts do not fit together is one finding") {
  const std::string expected = "plan: its row length, segment limit, strategies and counts do not fit together\n";
  PackingPlan plan = good_plan();
  SECTION("no row length") { plan.row_tokens = 0; }
  SECTION("a negative segment limit") { plan.max_segments = -1; }
  SECTION("a count too many") { plan.count.push_back(1); }
  SECTION("no begins") { plan.begin.clear(); }
  SECTION("a begin past the end") { plan.begin.back() += 1; }
  SECTION("begins that fall") { std::swap(plan.begin[1], plan.begin[2]); }
  SECTION("a first begin that is not 0") { plan.begin.front() = 1; }
  CHECK(findings(plan) == expected);
}

TEST_CASE("an item longer than the row is not covered") {
  PackingPlan plan;
  plan.row_tokens = 10;
  const std::vector<LengthCount> counts{{11, 1}};
  const std::vector<Issue> issues = check_exact_cover(plan, LengthHistogram(counts));
  REQUIRE(issues.size() == 1);
  CHECK(issues[0].message == "length 11: 0 places planned for 1 item");
}

TEST_CASE("places are summed without wrapping, and long lengths are counted like short ones") {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr Length kLong = 1'500'000;  // beyond the dense part of the counters
  PackingPlan plan;
  plan.row_tokens = 2'000'000;
  plan.add(std::vector<Length>{kLong, 2}, 1);
  plan.add(std::vector<Length>{2}, kMax);
  plan.add(std::vector<Length>{2}, kMax);
  plan.add(std::vector<Length>{2}, 2);  // 2 * (2^63 - 1) + 3 = 1 mod 2^64
  const std::vector<LengthCount> counts{{2, 1}, {kLong, 2}};
  const std::vector<Issue> issues = check_exact_cover(plan, LengthHistogram(counts));
  REQUIRE(issues.size() == 2);
  CHECK(issues[0].message == "length 2: over 9,223,372,036,854,775,807 places planned for 1 item");
  CHECK(issues[1].message == "length 1,500,000: 1 places planned for 2 items");

  plan.count = {2, 1, 1, 1};
  const std::vector<LengthCount> covered{{2, 5}, {kLong, 2}};
  CHECK(check_exact_cover(plan, LengthHistogram(covered)).empty());
}

TEST_CASE("many findings are counted, not listed") {
  PackingPlan plan;
  plan.row_tokens = 1000;
  LengthHistogram histogram;
  for (int length = 1; length <= 500; ++length) histogram.add(length);
  const std::vector<Issue> issues = check_exact_cover(plan, histogram);
  REQUIRE(issues.size() == 21);
  CHECK(issues.back().message == "and 480 more findings of these kinds");
}
