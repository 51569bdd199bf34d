#include "core/deal_rows.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "base/equal_parts.h"

namespace shardpack {

namespace {

/// What a row takes of one length.
struct Need {
  std::int32_t* left;  // by window: items of the length that no row has taken
  std::int32_t places;
};

class Dealer {
 public:
  Dealer(WindowedLengths items, std::int64_t rows) : items_(std::move(items)), room_(static_cast<std::size_t>(items_.windows)) {
    for (std::size_t w = 0; w < room_.size(); ++w) {
      const auto window = static_cast<std::int64_t>(w);
      room_[w] =
          static_cast<std::int32_t>(part_begin(rows, window + 1, items_.windows) - part_begin(rows, window, items_.windows));
      if (room_[w] > 0) open_.push_back(static_cast<std::int32_t>(w));
    }
    window_of_row_.reserve(static_cast<std::size_t>(rows));
  }

  void deal(std::span<const Length> strategy, std::int64_t rows) {
    const std::vector<Need> needs = needs_of(strategy);
    const std::int64_t most = ceil_div(items_.windows, 2);
    while (rows > 0) {
      ensure(!open_.empty(), "there is room for every row");
      const auto round = static_cast<std::size_t>(std::min({rows, most, std::ssize(open_)}));
      choose(needs, round);
      for (const std::int32_t window : chosen_) {
        for (const Need& need : needs) need.left[window] = std::max(need.left[window] - need.places, 0);
        --room_[static_cast<std::size_t>(window)];
      }
      window_of_row_.insert(window_of_row_.end(), chosen_.begin(), chosen_.end());
      std::erase_if(open_, [&](std::int32_t window) { return room_[static_cast<std::size_t>(window)] == 0; });
      rows -= static_cast<std::int64_t>(round);
    }
  }

  std::vector<std::int32_t> take() && { return std::move(window_of_row_); }

 private:
  std::vector<Need> needs_of(std::span<const Length> strategy) {  // whose lengths descend
    std::vector<Need> needs;
    for (auto first = strategy.begin(); first != strategy.end();) {
      const auto last = std::find_if(first, strategy.end(), [&](Length length) { return length != *first; });
      const auto at = std::lower_bound(items_.lengths.begin(), items_.lengths.end(), *first) - items_.lengths.begin();
      needs.push_back({items_.counts.data() + at * items_.windows, static_cast<std::int32_t>(last - first)});
      first = last;
    }
    return needs;
  }

  /// The `count` open windows in which most places find an item; of those the ones with most room; of those the first.
  void choose(const std::vector<Need>& needs, std::size_t count) {
    chosen_ = open_;
    if (count == open_.size()) return;
    found_.assign(room_.size(), 0);
    for (const Need& need : needs) {
      for (std::size_t w = 0; w < found_.size(); ++w) found_[w] += std::min(need.left[w], need.places);
    }
    const auto better = [&](std::int32_t a, std::int32_t b) {
      const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
      if (found_[i] != found_[j]) return found_[i] > found_[j];
      return room_[i] != room_[j] ? room_[i] > room_[j] : a < b;
    };
    std::nth_element(chosen_.begin(), chosen_.begin() + static_cast<std::ptrdiff_t>(count), chosen_.end(), better);
    chosen_.resize(count);
    std::sort(chosen_.begin(), chosen_.end());
  }

  WindowedLengths items_;
  std::vector<std::int32_t> room_;    // by window: rows that it may still get
  std::vector<std::int32_t> open_;    // windows with room, ascending
  std::vector<std::int32_t> found_;   // by window: places of a row that find an item there
  std::vector<std::int32_t> chosen_;  // of a round, ascending
  std::vector<std::int32_t> window_of_row_;
};

}  // namespace

std::vector<std::int32_t> deal_rows(const PackingPlan& plan, WindowedLengths items) {
  Dealer dealer(std::move(items), plan.rows());
  for (std::int64_t s = 0; s < plan.strategies(); ++s) dealer.deal(plan.strategy(s), plan.count[static_cast<std::size_t>(s)]);
  return std::move(dealer).take();
}

RowsByWindow rows_by_window(std::span<const std::int32_t> window_of_row, std::int64_t windows) {
  RowsByWindow by_window{std::vector<std::int64_t>(static_cast<std::size_t>(windows) + 1, 0), {}};
  for (const std::int32_t window : window_of_row) ++by_window.first[static_cast<std::size_t>(window) + 1];
  std::partial_sum(by_window.first.begin(), by_window.first.end(), by_window.first.begin());
  by_window.rows.resize(window_of_row.size());
  std::vector<std::int64_t> next = by_window.first;
  for (std::size_t row = 0; row < window_of_row.size(); ++row) {
    by_window.rows[static_cast<std::size_t>(next[static_cast<std::size_t>(window_of_row[row])]++)] =
        static_cast<std::int32_t>(row);
  }
  return by_window;
}

std::span<const std::int32_t> RowsByWindow::of(std::int64_t window) const {
  const auto w = static_cast<std::size_t>(window);
  return std::span(rows).subspan(static_cast<std::size_t>(first[w]), static_cast<std::size_t>(first[w + 1] - first[w]));
}

}  // namespace shardpack
