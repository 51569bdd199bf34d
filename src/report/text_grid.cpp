#include "report/text_grid.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardpack {

namespace {

struct Column {
  std::size_t figure = 0, note = 0, wide = 0;

  std::size_t pair() const { return figure + (note > 0 ? 1 + note : 0); }
  std::size_t width() const { return std::max(pair(), wide); }
};

std::string text_of(const GridCell& cell, const Column& column) {
  if (cell.wide) return cell.figure;
  std::string text = fmt::format("{:>{}}", cell.figure, column.figure);
  if (column.note > 0) text += fmt::format(" {:>{}}", cell.note, column.note);
  return text;
}

}  // namespace

std::string grid_text(const std::vector<GridLine>& lines, std::size_t width) {
  std::size_t label_width = 0, column_count = 0;
  for (const GridLine& line : lines) {
    label_width = std::max(label_width, line.label.size());
    column_count = std::max(column_count, line.cells.size());
  }
  std::vector<Column> columns(column_count);
  for (const GridLine& line : lines) {
    for (std::size_t c = 0; c < line.cells.size(); ++c) {
      const GridCell& cell = line.cells[c];
      Column& column = columns[c];
      if (cell.wide) {
        column.wide = std::max(column.wide, cell.figure.size());
      } else {
        column.figure = std::max(column.figure, cell.figure.size());
        column.note = std::max(column.note, cell.note.size());
      }
    }
  }

  const auto whole_width = [&](std::size_t between) {
    std::size_t all = label_width;
    for (const Column& column : columns) all += between + column.width();
    return all;
  };
  const std::size_t between = whole_width(2) > width && whole_width(1) <= width ? 1 : 2;  // spaces before a column

  std::string page;
  for (std::size_t first = 0, last = 0; first < column_count; first = last) {
    if (first > 0) page += '\n';
    for (std::size_t used = label_width; last < column_count; ++last) {
      used += between + columns[last].width();
      if (used > width && last > first) break;
    }
    for (const GridLine& line : lines) {
      std::string text = fmt::format("{:<{}}", line.label, label_width);
      for (std::size_t c = first; c < std::min(last, line.cells.size()); ++c) {
        text += fmt::format("{:>{}}", text_of(line.cells[c], columns[c]), between + columns[c].width());
      }
      page += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
    }
  }
  return page;
}

}  // namespace shardpack
