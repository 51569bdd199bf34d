#include "core/cover_repair.h"

#include <string>
#include <utility>
#include <vector>

#include "support/catch.h"

using namespace shardpack;

namespace {
using Strategies = std::vector<std::pair<std::vector<Length>, std::int64_t>>;

PackingPlan mended(Length row_tokens, std::int32_t max_segments, const Strategies& strategies,
                   const std::vector<LengthCount>& items) {
  PackingPlan plan;
  plan.row_tokens = row_tokens;
  plan.max_segments = max_segments;
  for (const auto& [lengths, rows] : strategies) plan.add(lengths, rows);
  cover_repair(plan, LengthHistogram(items));
  CHECK(check_exact_cover(plan, LengthHistogram(items)).empty());
  return plan;
}

std::string text(const PackingPlan& plan) {
  std::string result;
  for (std::int64_t s = 0; s < plan.strategies(); ++s) {
    if (s > 0) result += "; ";
    result += std::to_string(plan.count[static_cast<std::size_t>(s)]) + "x";
    for (const Length length : plan.strategy(s)) result += " " + std::to_string(length);
  }
  return result;
}
}  // namespace

TEST_CASE("an exact plan stays as it is") {
  CHECK(text(mended(10, 0, {{{7, 3}, 5}, {{4, 4}, 2}}, {{3, 5}, {4, 4}, {7, 5}})) == "5x 7 3; 2x 4 4");
}

TEST_CASE("surplus places become padding, and rows left empty go") {
  CHECK(text(mended(10, 0, {{{7, 3}, 5}}, {{3, 2}, {7, 5}})) == "2x 7 3; 3x 7");
  CHECK(text(mended(10, 0, {{{7}, 5}}, {{7, 2}})) == "2x 7");
  CHECK(text(mended(10, 0, {{{7, 3}, 5}}, {})).empty());
}

TEST_CASE("surplus is taken where it leaves a row emptiest") {
  CHECK(text(mended(10, 0, {{{7, 3}, 1}, {{3}, 1}, {{4, 3}, 1}}, {{3, 1}, {4, 1}, {7, 1}})) == "1x 7 3; 1x 4");
  // three of the five 3s: all copies of a row before those of the next, and only as many as there are too many
  CHECK(text(mended(10, 0, {{{3, 3}, 2}, {{7, 3}, 1}}, {{3, 2}, {7, 1}})) == "1x 7 3; 1x 3");
}

TEST_CASE("items without a place go by best fit into the mended rows, then into new ones") {
  CHECK(text(mended(10, 0, {{{7}, 2}, {{6}, 1}}, {{3, 2}, {4, 1}, {6, 1}, {7, 2}})) == "2x 7 3; 1x 6 4");
  CHECK(text(mended(10, 0, {{{3}, 1}}, {{3, 1}, {5, 1}, {7, 2}})) == "1x 7 3; 1x 7; 1x 5");  // the first 7 beside the 3
  CHECK(text(mended(10, 0, {}, {{5, 5}})) == "2x 5 5; 1x 5");
}

TEST_CASE("the segment limit holds for mended rows too") {
  CHECK(text(mended(10, 2, {{{4, 2}, 1}}, {{2, 1}, {3, 1}, {4, 1}})) == "1x 4 2; 1x 3");
  CHECK(text(mended(10, 2, {{{4}, 1}}, {{3, 2}, {4, 1}})) == "1x 4 3; 1x 3");
  CHECK(text(mended(10, 1, {{{4}, 1}}, {{3, 1}, {4, 1}})) == "1x 4; 1x 3");
}

TEST_CASE("a strategy that is split keeps its parts apart") {
  // ten rows of 4 4, of which 3 get one 2, while the same length is in other rows already
  CHECK(text(mended(10, 0, {{{4, 4}, 10}, {{6, 2}, 1}}, {{2, 4}, {4, 20}, {6, 1}})) == "1x 6 2 2; 2x 4 4 2; 8x 4 4");
  CHECK(text(mended(10, 0, {{{2, 2}, 3}}, {{2, 10}})) == "1x 2 2 2 2 2; 1x 2 2 2; 1x 2 2");
}

TEST_CASE("counts of a million million") {
  const std::int64_t many = 1'000'000'000'000;
  const PackingPlan plan = mended(10, 0, {{{6, 4}, many + 7}}, {{4, many}, {6, many + 9}});
  CHECK(plan.rows() == many + 9);
}
