// Which part of the input each row of a plan is filled from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shardpack/packing_plan.h"
#include "shardpack/types.h"

namespace shardpack {

/// How many items of each length that occurs begin in each of `windows` parts of the input.
struct WindowedLengths {
  std::int64_t windows = 1;
  std::vector<Length> lengths;       ///< ascending
  std::vector<std::int32_t> counts;  ///< lengths x windows
};

/// Deal the rows of a plan, numbered strategy by strategy, to windows, as many to each but for a row, so that most of their
/// places find an item of their length there. Greedy: each round of rows of a strategy goes to the windows that have most of what
/// one of them takes; docs/formats.md ("Rows in windows") has the rule, which decides bytes. \return the window of each row.
/// O(rows + (strategy entries + rounds) * windows), with a round for every windows / 2 rows
std::vector<std::int32_t> deal_rows(const PackingPlan& plan, WindowedLengths items);

/// The numbers of rows, window by window, in each ascending; first[w] is where those of window w begin.
struct RowsByWindow {
  std::vector<std::int64_t> first;
  std::vector<std::int32_t> rows;
  std::span<const std::int32_t> of(std::int64_t window) const;
};
RowsByWindow rows_by_window(std::span<const std::int32_t> window_of_row, std::int64_t windows);

}  // namespace shardpack
