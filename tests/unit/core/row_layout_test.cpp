// Segment and position ids against a definition written slot by slot.
#include <cstdint>
#include <span>
#include <vector>

#include "shardpack/error.h"
#include "shardpack/packed_row.h"
#include "support/catch.h"
#include "support/packed_sample.h"

using namespace shardpack;

namespace {

RowSegment segment(Length tokens, Length slots, std::uint8_t added = 0) {
  RowSegment result;
  result.tokens = tokens;
  result.slots = slots;
  result.added = added;
  return result;
}

template <class Id>
std::vector<Id> segment_ids(const std::vector<RowSegment>& segments, std::size_t slots) {
  std::vector<Id> ids(slots, static_cast<Id>(-1));
  fill_segment_ids(std::span(segments), std::span(ids));
  return ids;
}
template <class Id>
std::vector<Id> position_ids(const std::vector<RowSegment>& segments, std::size_t slots, std::uint32_t start = 0) {
  std::vector<Id> ids(slots, static_cast<Id>(-1));
  fill_position_ids(std::span(segments), start, std::span(ids));
  return ids;
}

}  // namespace

TEST_CASE("segments are numbered from 1 and positions begin anew in each; padding is 0 in both") {
  const std::vector<RowSegment> row{segment(2, 4), segment(1, 4, kAddedBos | kAddedEos), segment(2, 2)};
  using Ids = std::vector<std::uint16_t>;
  CHECK(segment_ids<std::uint16_t>(row, 12) == Ids{1, 1, 0, 0, 2, 2, 2, 0, 3, 3, 0, 0});
  CHECK(position_ids<std::uint16_t>(row, 12) == Ids{0, 1, 0, 0, 0, 1, 2, 0, 0, 1, 0, 0});
  CHECK(position_ids<std::uint16_t>(row, 12, 2) == Ids{2, 3, 0, 0, 2, 3, 4, 0, 2, 3, 0, 0});
}

TEST_CASE("a row without segments is all padding") {
  CHECK(segment_ids<std::uint32_t>({}, 3) == std::vector<std::uint32_t>{0, 0, 0});
  CHECK(position_ids<std::uint32_t>({}, 3, 5) == std::vector<std::uint32_t>{0, 0, 0});
}

TEST_CASE("32-bit ids count on where 16 bits end") {
  const Length long_row = 70'000;
  const auto positions = position_ids<std::uint32_t>({segment(long_row, long_row)}, long_row);
  CHECK(positions[65'535] == 65'535);
  CHECK(positions[65'536] == 65'536);
  CHECK(positions.back() == 69'999);
  CHECK(position_ids<std::uint32_t>({segment(2, 2)}, 2, 0xFFFFFFFE) == std::vector<std::uint32_t>{0xFFFFFFFE, 0xFFFFFFFF});
  CHECK(position_ids<std::uint16_t>({segment(2, 2)}, 2, 65'534) == std::vector<std::uint16_t>{65'534, 65'535});

  const std::vector<RowSegment> many(70'000, segment(1, 1));
  const auto segments = segment_ids<std::uint32_t>(many, 70'000);
  CHECK(segments[65'535] == 65'536);
  CHECK(segments.back() == 70'000);
}

TEST_CASE("a segment that does not fit its slots or its row is a bug, not a write beyond the end") {
  CHECK_THROWS_AS(segment_ids<std::uint16_t>({segment(3, 2)}, 8), Error);
  CHECK_THROWS_AS(position_ids<std::uint16_t>({segment(4, 4), segment(5, 5)}, 8), Error);
  CHECK_THROWS_AS(position_ids<std::uint16_t>({segment(-1, 1)}, 8), Error);
}

TEST_CASE("any row is what the definition says, slot by slot") {
  for (const Length multiple : {1, 4, 16}) {
    const SampleOptions options{.row_tokens = 96, .segment_multiple = multiple, .seed = 5};
    for (const std::vector<RowSegment>& row : sample_rows(200, options)) {
      std::vector<std::uint16_t> segments, positions;
      std::uint16_t number = 0;
      for (const RowSegment& each : row) {
        ++number;
        for (Length slot = 0; slot < each.slots; ++slot) {
          const bool token = slot < each.length();
          segments.push_back(token ? number : std::uint16_t{0});
          positions.push_back(token ? static_cast<std::uint16_t>(slot + 7) : std::uint16_t{0});
        }
      }
      segments.resize(96);
      positions.resize(96);
      REQUIRE(segment_ids<std::uint16_t>(row, 96) == segments);
      REQUIRE(position_ids<std::uint16_t>(row, 96, 7) == positions);
    }
  }
}
