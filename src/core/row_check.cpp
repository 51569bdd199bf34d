// Counts a block's rows and segments again from its raw fields, so that a fault of the rewriter cannot hide behind code that both
// would share.
#include "core/row_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/units.h"

namespace shardpack {

namespace {

/// What is wrong with one segment; empty when nothing is. \param first_slots  of the row's first segment
std::string segment_fault(const RowSegment& segment, Length segment_multiple, Length first_slots) {
  if (segment.file < 0 || segment.record < 0 || segment.first_token < 0 || segment.tokens < 0) {
    return fmt::format("a negative file, record, first token or length ({}, {}, {}, {})", segment.file, segment.record,
                       segment.first_token, segment.tokens);
  }
  if (segment.added > (kAddedBos | kAddedEos)) return fmt::format("unknown added-token bits {}", segment.added);
  std::int64_t length = segment.tokens;
  if ((segment.added & kAddedBos) != 0) ++length;
  if ((segment.added & kAddedEos) != 0) ++length;
  if (length == 0) return "no token at all";
  const std::int64_t multiple = segment_multiple;
  const std::int64_t expected_slots = multiple > 0 ? (length + multiple - 1) / multiple * multiple : first_slots;
  if (segment.slots != expected_slots || segment.slots < length) {
    return fmt::format("{} tokens in {} slots, expected {}", with_commas(length), with_commas(segment.slots),
                       with_commas(expected_slots));
  }
  return {};
}

}  // namespace

std::vector<Issue> check_rows(const RowBlock& block, std::int32_t max_segments, Length segment_multiple) {
  std::vector<Issue> issues;
  const auto report = [&issues](std::int64_t row, std::string message) {
    issues.push_back({"row", {}, row, std::move(message)});
  };

  // The shape first: without it nothing below may be indexed.
  const bool widths_fit =
      block.row_tokens > 0 || (std::ssize(block.slot_begin) == block.rows + 1 && block.slot_begin.front() == 0 &&
                               std::is_sorted(block.slot_begin.begin(), block.slot_begin.end()));
  if (segment_multiple < 0 || !widths_fit || block.row_tokens < 0 || block.rows < 0 || block.first_row < 0 ||
      block.first_segment < 0 || (block.id_type != IdType::u16 && block.id_type != IdType::u32)) {
    report(-1, "a block of impossible shape");
    return issues;
  }
  const auto rows = static_cast<std::size_t>(block.rows);
  const std::size_t id_bytes = block.id_type == IdType::u16 ? 2 : 4;
  const bool fits = block.row_tokens == 0 || block.ids.size() / id_bytes / static_cast<std::size_t>(block.row_tokens) == rows;
  if (!fits || block.ids.size() != static_cast<std::size_t>(block.slots()) * id_bytes) {
    report(-1, fmt::format("{} bytes of ids for {} rows of {} slots", with_commas(static_cast<std::int64_t>(block.ids.size())),
                           with_commas(block.rows), with_commas(block.row_tokens)));
    return issues;
  }
  const auto segments = static_cast<std::int64_t>(block.segments.size());
  if (block.row_begin.size() != rows + 1 || block.row_begin.front() != 0 || block.row_begin.back() != segments) {
    report(-1,
           fmt::format("row offsets do not run from 0 to {} in {} entries", with_commas(segments), with_commas(block.rows + 1)));
    return issues;
  }

  for (std::size_t r = 0; r < rows; ++r) {
    const std::int64_t row = block.first_row + static_cast<std::int64_t>(r);
    const std::int64_t begin = block.row_begin[r];
    const std::int64_t end = block.row_begin[r + 1];
    if (begin > end || begin < 0 || end > segments) {
      report(row, fmt::format("row offsets {} and {} do not rise within 0 to {}", with_commas(begin), with_commas(end),
                              with_commas(segments)));
      continue;
    }
    if (max_segments > 0 && end - begin > max_segments) {
      report(row, fmt::format("{} segments, at most {} allowed", with_commas(end - begin), with_commas(max_segments)));
    }
    std::int64_t slots = 0;
    const Length first_slots = begin < end ? block.segments[static_cast<std::size_t>(begin)].slots : 0;
    const std::int64_t width =
        block.slots_before(static_cast<std::int64_t>(r) + 1) - block.slots_before(static_cast<std::int64_t>(r));
    for (std::int64_t s = begin; s < end; ++s) {
      const RowSegment& segment = block.segments[static_cast<std::size_t>(s)];
      if (std::string fault = segment_fault(segment, segment_multiple, first_slots); !fault.empty()) {
        report(row, fmt::format("segment {}: {}", with_commas(s - begin + 1), fault));
      }
      slots += segment.slots;
    }
    if (block.row_tokens > 0 ? slots > width : slots != width) {
      report(row, fmt::format("segments take {} slots of {}", with_commas(slots), with_commas(width)));
    }
  }
  return issues;
}

}  // namespace shardpack
