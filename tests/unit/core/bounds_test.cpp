#include "shardpack/bounds.h"

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "shardpack/error.h"
#include "support/catch.h"

using namespace shardpack;

namespace {
LengthHistogram of(const std::vector<LengthCount>& counts) { return LengthHistogram(counts); }

void check_bound(const std::vector<LengthCount>& counts, Length row_tokens, std::int32_t max_segments, std::int64_t rows,
                 BoundKind kind) {
  const LowerBound bound = lower_bound(of(counts), row_tokens, max_segments);
  CHECK(bound.rows == rows);
  CHECK(name(bound.kind) == name(kind));
}

/// The definition, item by item: every threshold from 0 to L/2.
std::int64_t martello_toth_by_definition(const LengthHistogram& items, std::int64_t row_tokens) {
  std::int64_t best = 0;
  for (std::int64_t threshold = 0; threshold <= row_tokens / 2; ++threshold) {
    std::int64_t alone = 0, large = 0, large_slots = 0, small_slots = 0;
    for (const LengthCount& entry : items.counts()) {
      for (std::int64_t i = 0; i < entry.count; ++i) {
        if (entry.length > row_tokens - threshold) {
          ++alone;
        } else if (2 * entry.length > row_tokens) {
          ++large;
          large_slots += entry.length;
        } else if (entry.length >= threshold) {
          small_slots += entry.length;
        }
      }
    }
    const std::int64_t over = small_slots - (large * row_tokens - large_slots);
    best = std::max(best, alone + large + (over <= 0 ? 0 : (over + row_tokens - 1) / row_tokens));
  }
  return best;
}
}  // namespace

TEST_CASE("no items need no rows") {
  check_bound({}, 10, 0, 0, BoundKind::l1);
  check_bound({{0, 5}}, 10, 1, 0, BoundKind::l1);
}

TEST_CASE("the best bound is named, the earlier one on a tie") {
  check_bound({{5, 4}}, 10, 0, 2, BoundKind::l1);
  check_bound({{5, 4}}, 10, 2, 2, BoundKind::l1);                     // L1 = cardinality = 2
  check_bound({{6, 4}}, 10, 0, 4, BoundKind::l2);                     // no two share a row
  check_bound({{6, 4}}, 10, 1, 4, BoundKind::l2);                     // L2 = cardinality = 4
  check_bound({{1, 9}}, 10, 4, 3, BoundKind::cardinality);            // ceil(9 / 4)
  check_bound({{0, 100}, {1, 8}}, 10, 4, 2, BoundKind::cardinality);  // empty ones do not count
}

TEST_CASE("L2 takes the threshold into account") {
  // 3 items of 8 leave 2 slots each, which no 3 can enter: 3 + ceil(4 * 3 / 10) rows, where L1 is ceil(36 / 10).
  check_bound({{3, 4}, {8, 3}}, 10, 0, 5, BoundKind::l2);
  // An item of exactly half a row is a small one.
  check_bound({{5, 1}, {6, 3}}, 10, 0, 4, BoundKind::l2);
  // Two items over half an odd row never share it: 6 + 6 > 11.
  check_bound({{6, 5}}, 11, 0, 5, BoundKind::l2);
}

TEST_CASE("L2 equals its definition on random histograms") {
  const RandomStream random(11, RandomPurpose::sample);
  std::uint64_t draw = 0;
  for (int round = 0; round < 300; ++round) {
    const auto row_tokens = static_cast<Length>(1 + random.bounded(draw++, 40));
    LengthHistogram items;
    const std::uint64_t kinds = random.bounded(draw++, 8);
    for (std::uint64_t i = 0; i < kinds; ++i) {
      const auto length = static_cast<std::int64_t>(1 + random.bounded(draw++, static_cast<std::uint64_t>(row_tokens)));
      items.add(length, static_cast<std::int64_t>(random.bounded(draw++, 12)));
    }
    CHECK(lower_bound(items, row_tokens, 0).rows == martello_toth_by_definition(items, row_tokens));
  }
}

TEST_CASE("bounds of totals near 2^63 do not wrap") {
  const std::int64_t many = std::int64_t{1} << 42;
  check_bound({{1, many}, {1'000'000, many}}, 1'048'576, 0, many, BoundKind::l2);
  check_bound({{600'000, many * 3}}, 1'048'576, 0, many * 3, BoundKind::l2);  // its rows have 3 * 2^62 slots
}

TEST_CASE("an item that fits no row is a mistake of the caller") { CHECK_THROWS_AS(lower_bound(of({{11, 1}}), 10, 0), Error); }
