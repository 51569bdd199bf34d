#include "core/deal_rows.h"

#include <algorithm>
#include <iterator>
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
    std::int32_t places = 0;
    for (const Need& need : needs) {
      for (std::size_t w = 0; w < found_.size(); ++w) found_[w] += std::min(need.left[w], need.places);
      places += need.places;
    }
    // Numbers of places are small: counted, not sorted.
    windows_that_found_.assign(static_cast<std::size_t>(places) + 1, 0);
    for (const std::int32_t window : open_) ++windows_that_found_[static_cast<std::size_t>(found(window))];
    std::int32_t least = places;
    std::size_t more = 0;  // windows that found more than `least`
    for (; more + windows_that_found_[static_cast<std::size_t>(least)] < count; --least)
      more += windows_that_found_[static_cast<std::size_t>(least)];
    tied_.clear();
    std::ranges::copy_if(open_, std::back_inserter(tied_), [&](std::int32_t window) { return found(window) == least; });
    const auto has_more_room = [&](std::int32_t a, std::int32_t b) { return room(a) != room(b) ? room(a) > room(b) : a < b; };
    const auto last = tied_.begin() + static_cast<std::ptrdiff_t>(count - more);
    if (last != tied_.end()) std::nth_element(tied_.begin(), last, tied_.end(), has_more_room);
    std::for_each(last, tied_.end(), [&](std::int32_t window) { found_[static_cast<std::size_t>(window)] = -1; });
    std::erase_if(chosen_, [&](std::int32_t window) { return found(window) < least; });
  }

  std::int32_t room(std::int32_t window) const { return room_[static_cast<std::size_t>(window)]; }
  std::int32_t found(std::int32_t window) const { return found_[static_cast<std::size_t>(window)]; }

  WindowedLengths items_;
  std::vector<std::int32_t> room_;    // by window: rows that it may still get
  std::vector<std::int32_t> open_;    // windows with room, ascending
  std::vector<std::int32_t> chosen_;  // of a round, ascending

  // Of the round: by window the places of a row that find an item there; how many windows found so many; windows that found the
  // least that is enough.
  std::vector<std::int32_t> found_, tied_;
  std::vector<std::size_t> windows_that_found_;
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
