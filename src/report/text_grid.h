// A table of figures for a terminal: labels on the left, columns as wide as what is in them.
#pragma once

#include <string>
#include <vector>

namespace shardpack {

/// A figure with a short note to its right, each aligned with those above and below; or, without a note and `wide`, a text that
/// takes both places.
struct GridCell {
  std::string figure, note = {};
  bool wide = false;
};
struct GridLine {
  std::string label;
  std::vector<GridCell> cells;
};

/// Everything but the labels is aligned to the right. Columns that do not fit into `width` follow below, with the labels again.
std::string grid_text(const std::vector<GridLine>& lines, std::size_t width);

}  // namespace shardpack
