// Which cell of a sweep to take: what an engineer would read off the table, written down.
#include <algorithm>
#include <limits>
#include <tuple>

#include "shardpack/sweep.h"

namespace shardpack {

double SweepCell::efficiency() const {
  if (rows == 0) return 1;
  return static_cast<double>(tokens) / (static_cast<double>(rows) * static_cast<double>(row_tokens));
}

std::int64_t SweepCell::lost_tokens() const {
  std::int64_t tokens_lost = 0;
  for (std::size_t cause = 0; cause < removed.size(); ++cause) {
    if (static_cast<RemovalCause>(cause) != RemovalCause::padding) tokens_lost += removed[cause].tokens;
  }
  return tokens_lost;
}

namespace {

/// Keep the cells whose cost is within the tolerance of the least.
template <class Cost>
void keep_near_least(std::vector<std::size_t>& left, Cost cost) {
  double least = std::numeric_limits<double>::infinity();
  for (const std::size_t c : left) least = std::min(least, cost(c));
  std::erase_if(left, [&](std::size_t c) { return cost(c) > least + kKneeTolerance; });
}

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::optional<std::size_t> find_knee(std::span<const SweepCell> cells, const LengthHistogram& lengths) {
  std::vector<std::size_t> left;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    if (cells[c].problem.empty() && cells[c].rows > 0) left.push_back(c);
  }
  if (left.empty()) return std::nullopt;
  keep_near_least(left, [&](std::size_t c) { return share(cells[c].lost_tokens(), lengths.tokens()); });
  keep_near_least(left, [&](std::size_t c) { return share(cells[c].touched_sequences, lengths.sequences() - lengths.empty()); });
  keep_near_least(left, [&](std::size_t c) { return -cells[c].efficiency(); });

  const auto rank = [&](std::size_t c) {
    const SweepCell& cell = cells[c];
    const std::int32_t limit = cell.segment_limit == 0 ? std::numeric_limits<std::int32_t>::max() : cell.segment_limit;
    return std::make_tuple(cell.row_tokens, limit, cell.lost_tokens(), cell.rows, cell.order == InputOrder::sampled, c);
  };
  return *std::min_element(left.begin(), left.end(), [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
}

}  // namespace shardpack
