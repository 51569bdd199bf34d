#include "shardpack/length_histogram.h"

#include <limits>
#include <map>
#include <vector>

#include "shardpack/error.h"
#include "support/catch.h"

using namespace shardpack;

namespace {
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLong = LengthHistogram::kDenseLengths;  // from here on lengths are never kept in an array

template <class Function>
ErrorCode code_of(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("nothing was thrown");
  return ErrorCode::internal;
}
}  // namespace

TEST_CASE("an empty histogram has no lengths") {
  const LengthHistogram histogram;
  CHECK(histogram.counts().empty());
  CHECK(histogram.sequences() == 0);
  CHECK(histogram.min_length() == 0);
  CHECK(histogram.max_length() == 0);
  CHECK(histogram.mean_length() == 0);
  CHECK(histogram.quantile(0.5) == 0);
  CHECK(histogram.count(7) == 0);
}

TEST_CASE("counts come out ascending, short and long lengths alike, without zeros") {
  LengthHistogram histogram;
  histogram.add(kLong + 5, 2);
  histogram.add(7);
  histogram.add(0, 3);
  histogram.add(kLong - 1);
  histogram.add(7, 4);
  histogram.add(9, 0);
  CHECK(histogram.counts() == std::vector<LengthCount>{{0, 3}, {7, 5}, {kLong - 1, 1}, {kLong + 5, 2}});
  CHECK(histogram.sequences() == 11);
  CHECK(histogram.tokens() == 35 + kLong - 1 + 2 * (kLong + 5));
  CHECK(histogram.empty() == 3);
  CHECK(histogram.min_length() == 7);
  CHECK(histogram.max_length() == kLong + 5);
  CHECK(histogram.count(9) == 0);
  CHECK(histogram.count(-1) == 0);
  CHECK(histogram.count(kLong + 5) == 2);
}

TEST_CASE("a histogram of long lengths alone knows its minimum") {
  LengthHistogram histogram;
  histogram.add(kLong + 5);
  histogram.add(kLong + 3);
  CHECK(histogram.min_length() == kLong + 3);
  CHECK(histogram.max_length() == kLong + 5);
}

TEST_CASE("merging is commutative") {
  const std::vector<LengthCount> a_counts{{0, 1}, {3, 2}, {kLong, 1}}, b_counts{{3, 5}, {4, 1}, {kLong + 1, 9}};
  LengthHistogram a(a_counts), b(b_counts);
  LengthHistogram ab = a, ba = b;
  ab.merge(b);
  ba.merge(a);
  CHECK(ab == ba);
  CHECK(ab.counts() == std::vector<LengthCount>{{0, 1}, {3, 7}, {4, 1}, {kLong, 1}, {kLong + 1, 9}});
  CHECK(ab.sequences() == a.sequences() + b.sequences());
  CHECK(ab.tokens() == a.tokens() + b.tokens());
  CHECK_FALSE(ab == a);
}

TEST_CASE("quantiles take the smallest length that enough non-empty sequences reach") {
  LengthHistogram histogram;
  histogram.add(0, 1000);  // empty sequences do not count
  for (int length = 1; length <= 100; ++length) histogram.add(length);
  CHECK(histogram.quantile(0) == 1);
  CHECK(histogram.quantile(0.01) == 1);
  CHECK(histogram.quantile(0.07) == 7);  // the double 0.07 * 100 is above 7
  CHECK(histogram.quantile(0.071) == 8);
  CHECK(histogram.quantile(0.5) == 50);
  CHECK(histogram.quantile(0.99) == 99);
  CHECK(histogram.quantile(1) == 100);
  CHECK(histogram.mean_length() == 50.5);
}

TEST_CASE("negative lengths and counts are bad data, totals over 63 bits a limit, and a refused addition changes nothing") {
  LengthHistogram histogram;
  histogram.add(2, 5);
  CHECK(code_of([&] { histogram.add(-1); }) == ErrorCode::bad_data);
  CHECK(code_of([&] { histogram.add(1, -1); }) == ErrorCode::bad_data);
  CHECK(code_of([&] { histogram.add(1, kMax); }) == ErrorCode::limit);      // sequences
  CHECK(code_of([&] { histogram.add(kMax / 2, 3); }) == ErrorCode::limit);  // tokens of this length
  CHECK(code_of([&] { histogram.add(kMax - 9); }) == ErrorCode::limit);     // tokens in all
  CHECK(histogram.counts() == std::vector<LengthCount>{{2, 5}});
  CHECK(histogram.sequences() == 5);
  CHECK(histogram.tokens() == 10);
}

TEST_CASE("lengths far apart are kept as well as those that lie close") {
  LengthHistogram far, close;
  std::map<std::int64_t, std::int64_t> expected_far, expected_close;
  for (std::int64_t i = 0; i < 3000; ++i) {
    const std::int64_t length = i * 7919 % 1'500'000, near = i * 37 % 900;
    far.add(length, i % 3 + 1);
    expected_far[length] += i % 3 + 1;
    close.add(near);
    ++expected_close[near];
    CHECK(far.min_length() == (i == 0 ? 0 : expected_far.upper_bound(0)->first));
    CHECK(far.max_length() == expected_far.rbegin()->first);
    CHECK(far.count(length) == expected_far[length]);
    CHECK(close.max_length() == expected_close.rbegin()->first);
  }
  const auto pairs = [](const LengthHistogram& histogram) {
    std::map<std::int64_t, std::int64_t> counts;
    for (const LengthCount& entry : histogram.counts()) counts[entry.length] = entry.count;
    return counts;
  };
  CHECK(pairs(far) == expected_far);
  CHECK(pairs(close) == expected_close);
  CHECK(far.empty() == 1);
}
