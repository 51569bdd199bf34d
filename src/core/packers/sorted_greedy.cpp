// Next fit on lengths sorted from longest to shortest: one row is open, and an item that does not fit it closes it for good.
#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "core/packers/packer_list.h"

namespace shardpack {

PackingPlan plan_sorted_greedy(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop) {
  PackingPlan plan;
  const std::int64_t max_segments = options.max_segments > 0 ? options.max_segments : std::numeric_limits<std::int32_t>::max();
  std::vector<Length> row;  // the open one
  std::int64_t free = options.row_tokens;
  const auto put = [&](Length length, std::int64_t copies) {
    row.insert(row.end(), static_cast<std::size_t>(copies), length);
    free -= copies * length;
  };
  const auto close = [&](std::int64_t rows) {
    plan.add(row, rows);
    row.clear();
    free = options.row_tokens;
  };

  const std::vector<LengthCount> counts = items.counts();
  for (auto entry = counts.rbegin(); entry != counts.rend(); ++entry) {
    if (stop.stop_requested()) throw Error(ErrorCode::cancelled, "planning was stopped");
    const auto length = static_cast<Length>(entry->length);
    const auto fitting = [&] { return std::min(free / length, max_segments - static_cast<std::int64_t>(row.size())); };

    std::int64_t left = entry->count;
    const std::int64_t into_open_row = std::min(fitting(), left);
    put(length, into_open_row);
    left -= into_open_row;
    if (left == 0) continue;

    // All rows but the last are filled with this length alone; the last stays open for the next.
    close(1);
    const std::int64_t full_rows = ceil_div(left, fitting()) - 1;
    left -= full_rows * fitting();
    if (full_rows > 0) {
      put(length, fitting());
      close(full_rows);
    }
    put(length, left);
  }
  if (!row.empty()) close(1);
  return plan;
}

}  // namespace shardpack
