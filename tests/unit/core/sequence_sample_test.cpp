#include "core/sequence_sample.h"

#include <algorithm>
#include <array>

#include "support/catch.h"

using namespace shardpack;

TEST_CASE("every sequence comes once when all are wanted, in an order that only the seed decides") {
  LengthHistogram lengths(std::array<LengthCount, 4>{{{0, 5}, {1, 300}, {7, 20}, {90, 1}}});
  const std::vector<std::int64_t> order = sample_in_order(lengths, 1000, 3);
  std::vector<std::int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int64_t> expected(300, 1);
  expected.insert(expected.end(), 20, 7);
  expected.push_back(90);
  CHECK(sorted == expected);
  CHECK(order != sorted);
  CHECK(order == sample_in_order(lengths, 1000, 3));
  CHECK(order == sample_in_order(lengths, 321, 3));
  CHECK(order != sample_in_order(lengths, 1000, 4));
}

TEST_CASE("a sample has the quantiles of the whole, however large that is") {
  LengthHistogram lengths;
  for (std::int64_t length = 1; length <= 100; ++length) lengths.add(length, 10'000'000'000);
  std::vector<std::int64_t> sample = sample_in_order(lengths, 1000, 0);
  CHECK_FALSE(std::is_sorted(sample.begin(), sample.end()));
  std::sort(sample.begin(), sample.end());
  REQUIRE(sample.size() == 1000);
  for (std::size_t i = 0; i < sample.size(); ++i) CHECK(sample[i] == static_cast<std::int64_t>(i / 10 + 1));
}

TEST_CASE("nothing to sample") {
  CHECK(sample_in_order({}, 10, 0).empty());
  LengthHistogram empty_ones;
  empty_ones.add(0, 7);
  CHECK(sample_in_order(empty_ones, 10, 0).empty());
}
