#include "report/row_picture.h"

#include <algorithm>
#include <string_view>

namespace shardpack {

namespace {

constexpr std::int64_t kColumns = 80;

/// Slots of [begin, end) in [from, to).
std::int64_t overlap(std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t to) {
  return std::max<std::int64_t>(0, std::min(end, to) - std::max(begin, from));
}

/// The slots at a few evenly spaced columns.
std::string ruler(Length row_tokens, std::int64_t columns) {
  constexpr std::int64_t kStep = 20;
  std::string ticks, numbers;
  for (std::int64_t column = 0; column < columns; column += kStep) {
    ticks.resize(static_cast<std::size_t>(column), ' ');
    numbers.resize(std::max(numbers.size() + (column > 0 ? 1 : 0), static_cast<std::size_t>(column)), ' ');
    ticks += '|';
    numbers += std::to_string(column * row_tokens / columns);
  }
  return ticks + "\n" + numbers + "\n";
}

}  // namespace

char segment_mark(std::size_t s) {
  constexpr std::string_view kMarks = "123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return kMarks[s % kMarks.size()];
}

std::string row_picture(const RowView& row) {
  const std::int64_t columns = std::min<std::int64_t>(kColumns, row.row_tokens);
  std::string bar;
  std::size_t first = 0;  // the first segment that reaches into the column
  for (std::int64_t column = 0; column < columns; ++column) {
    const std::int64_t from = column * row.row_tokens / columns, to = (column + 1) * row.row_tokens / columns;
    while (first < row.segments.size() && row.segments[first].begin + row.segments[first].slots <= from) ++first;
    std::int64_t most = 0, padding = to - from;
    char mark = '.';
    for (std::size_t s = first; s < row.segments.size() && row.segments[s].begin < to; ++s) {
      const SegmentView& segment = row.segments[s];
      const std::int64_t slots = overlap(segment.begin, segment.begin + segment.length, from, to);
      padding -= slots;
      if (slots > most) {
        most = slots;
        mark = segment_mark(s);
      }
    }
    bar += padding > most ? '.' : mark;
  }
  return bar + "\n" + ruler(row.row_tokens, columns);
}

}  // namespace shardpack
