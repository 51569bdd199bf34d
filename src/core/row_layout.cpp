// Segment and position ids of a row, from its segments' lengths. The inner loops are plain fills and counts over contiguous
// memory, so that the compiler vectorizes them: they run once for every token that is written.
#include <algorithm>

#include "base/checked.h"
#include "shardpack/packed_row.h"

namespace shardpack {

namespace {

/// Call fill(segment index, first slot, end slot) for each segment's tokens, and set every other slot to 0.
template <class Id, class Fill>
void fill_row(std::span<const RowSegment> segments, std::span<Id> out, Fill fill) {
  std::int64_t slot = 0;
  std::int64_t segment_index = 0;
  for (const RowSegment& segment : segments) {
    const std::int64_t end_of_tokens = slot + segment.length();
    const std::int64_t end_of_slots = slot + segment.slots;
    ensure(slot <= end_of_tokens && end_of_tokens <= end_of_slots && end_of_slots <= static_cast<std::int64_t>(out.size()),
           "a segment reaches beyond its slots or its row");
    fill(segment_index++, out.data() + slot, out.data() + end_of_tokens);
    std::fill(out.data() + end_of_tokens, out.data() + end_of_slots, Id{0});
    slot = end_of_slots;
  }
  std::fill(out.data() + slot, out.data() + out.size(), Id{0});
}

}  // namespace

template <class Id>
void fill_segment_ids(std::span<const RowSegment> segments, std::span<Id> out) {
  fill_row(segments, out, [](std::int64_t segment, Id* begin, Id* end) { std::fill(begin, end, static_cast<Id>(segment + 1)); });
}

template <class Id>
void fill_position_ids(std::span<const RowSegment> segments, std::uint32_t position_start, std::span<Id> out) {
  fill_row(segments, out, [position_start](std::int64_t, Id* begin, Id* end) {
    const auto length = static_cast<std::uint32_t>(end - begin);
    for (std::uint32_t i = 0; i < length; ++i) begin[i] = static_cast<Id>(position_start + i);
  });
}

template void fill_segment_ids(std::span<const RowSegment>, std::span<std::uint16_t>);
template void fill_segment_ids(std::span<const RowSegment>, std::span<std::uint32_t>);
template void fill_position_ids(std::span<const RowSegment>, std::uint32_t, std::span<std::uint16_t>);
template void fill_position_ids(std::span<const RowSegment>, std::uint32_t, std::span<std::uint32_t>);

}  // namespace shardpack
