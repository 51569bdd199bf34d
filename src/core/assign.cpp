// assign(): which item fills each place of the plan, and the order of the rows.
#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/equal_parts.h"
#include "base/rng.h"
#include "core/deal_rows.h"
#include "shardpack/row_balance.h"

namespace shardpack {

namespace {
/// Items of equal slots side by side, in input order: those of `slots` are members[begin[slots] .. begin[slots + 1]).
struct Classes {
  std::vector<std::int64_t> begin;
  std::vector<std::int32_t> members;
};

Classes classes_of(const std::vector<Item>& items, Length row_tokens) {
  std::vector<Length> slots(items.size());  // items are wide: one pass over them
  Length least = 1, most = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    slots[i] = items[i].slots;
    least = std::min(least, slots[i]);
    most = std::max(most, slots[i]);
  }
  ensure(least >= 1 && most <= row_tokens, "an item is longer than the plan's rows");

  Classes classes{std::vector<std::int64_t>(static_cast<std::size_t>(row_tokens) + 2, 0), {}};
  for (const Length l : slots) ++classes.begin[static_cast<std::size_t>(l) + 1];
  std::partial_sum(classes.begin.begin(), classes.begin.end(), classes.begin.begin());
  std::vector<std::int64_t> next = classes.begin;
  classes.members.resize(items.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    classes.members[static_cast<std::size_t>(next[static_cast<std::size_t>(slots[i])]++)] = static_cast<std::int32_t>(i);
  }
  return classes;
}

/// The members that a place of a strategy takes in its rows: first, first + step, first + 2 * step ...
struct Place {
  std::int64_t first = 0, step = 0;
};

/// One for each of plan.lengths. Members of a class are taken in the order of strategies, rows and places.
std::vector<Place> places_of(const PackingPlan& plan, const Classes& classes) {
  std::vector<Place> places;
  places.reserve(plan.lengths.size());
  std::vector<std::int64_t> next = classes.begin;
  for (std::int64_t s = 0; s < plan.strategies(); ++s) {
    const std::span<const Length> lengths = plan.strategy(s);
    for (auto first = lengths.begin(); first != lengths.end();) {
      const auto last = std::find_if(first, lengths.end(), [&](Length length) { return length != *first; });
      const auto slots = static_cast<std::size_t>(*first);
      const std::int64_t copies = last - first;
      for (std::int64_t copy = 0; copy < copies; ++copy) places.push_back({next[slots] + copy, copies});
      next[slots] += copies * plan.count[static_cast<std::size_t>(s)];
      ensure(next[slots] <= classes.begin[slots + 1], "the plan places an item that does not exist");
      first = last;
    }
  }
  ensure(std::equal(next.begin(), next.end() - 1, classes.begin.begin() + 1), "the plan leaves items out");
  return places;
}

/// Every row, by strategy: where it is in the plan.
struct PlannedRows {
  std::vector<std::int32_t> strategy, row_of_strategy;
};

PlannedRows planned_rows(const PackingPlan& plan) {
  PlannedRows rows;
  rows.strategy.reserve(static_cast<std::size_t>(plan.rows()));
  rows.row_of_strategy.reserve(static_cast<std::size_t>(plan.rows()));
  for (std::size_t s = 0; s < plan.count.size(); ++s) {
    rows.strategy.insert(rows.strategy.end(), static_cast<std::size_t>(plan.count[s]), static_cast<std::int32_t>(s));
    for (std::int64_t row = 0; row < plan.count[s]; ++row) rows.row_of_strategy.push_back(static_cast<std::int32_t>(row));
  }
  return rows;
}

/// The first item of each window of `windows`, which are of equal slots, and at the end the number of items.
std::vector<std::int32_t> window_begins(const std::vector<Item>& items, std::int64_t windows) {
  std::int64_t total = 0;
  for (const Item& item : items) total += item.slots;
  std::vector<std::int32_t> begins;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    while (std::ssize(begins) < windows && before >= part_begin(total, std::ssize(begins), windows))
      begins.push_back(static_cast<std::int32_t>(i));
    before += items[i].slots;
  }
  begins.resize(static_cast<std::size_t>(windows) + 1, static_cast<std::int32_t>(items.size()));
  return begins;
}

/// Put the members of each class into the order in which the plan's places take them, so that rows find what they need near each
/// other. A place takes a member of its row's window while there is one; then the places left take the members left, both in the
/// order of windows.
void fill_from_windows(Classes& classes, const std::vector<Place>& places, const std::vector<std::int32_t>& begins,
                       const PackingPlan& plan, const RowsByWindow& by_window) {
  const PlannedRows rows = planned_rows(plan);
  const auto windows = begins.size() - 1;
  std::vector<std::int32_t>& members = classes.members;
  std::vector<std::int32_t> dealt(members.size());
  std::vector<std::int64_t> next = classes.begin;  // by class: the next member to look at
  std::vector<std::int64_t> left = classes.begin;  // by class: members before it were left, and moved to the class's beginning
  struct Unmet {                                   // as many as items where the lengths of the input change along it
    std::int32_t slots, place;
  };
  std::vector<Unmet> unmet;
  for (std::size_t window = 0; window < windows; ++window) {
    for (const std::int32_t row : by_window.of(static_cast<std::int64_t>(window))) {
      const auto r = static_cast<std::size_t>(row), s = static_cast<std::size_t>(rows.strategy[r]);
      for (auto p = static_cast<std::size_t>(plan.begin[s]); p < static_cast<std::size_t>(plan.begin[s + 1]); ++p) {
        const auto slots = static_cast<std::size_t>(plan.lengths[p]);
        const auto place = static_cast<std::size_t>(places[p].first + rows.row_of_strategy[r] * places[p].step);
        std::int64_t& at = next[slots];
        const auto member = [&] { return members[static_cast<std::size_t>(at)]; };
        for (; at < classes.begin[slots + 1] && member() < begins[window]; ++at)
          members[static_cast<std::size_t>(left[slots]++)] = member();
        if (at < classes.begin[slots + 1] && member() < begins[window + 1]) {
          dealt[place] = member();
          ++at;
        } else {
          unmet.push_back({plan.lengths[p], static_cast<std::int32_t>(place)});
        }
      }
    }
  }
  for (std::size_t slots = 1; slots + 1 < classes.begin.size(); ++slots) {
    const auto to = members.begin() + left[slots];
    std::copy(members.begin() + next[slots], members.begin() + classes.begin[slots + 1], to);
    next[slots] = classes.begin[slots];
  }
  for (const Unmet& u : unmet) {
    dealt[static_cast<std::size_t>(u.place)] = members[static_cast<std::size_t>(next[static_cast<std::size_t>(u.slots)]++)];
  }
  members = std::move(dealt);
}

/// `order` shuffled within each of `windows` equal parts of it.
void shuffle_windows(std::vector<std::int32_t>& order, std::int64_t windows, const AssignOptions& options) {
  const RandomStream stream(options.seed, RandomPurpose::row_order, static_cast<std::uint32_t>(options.partition));
  for (std::int64_t window = 0; window < windows; ++window) {
    const auto begin = static_cast<std::size_t>(part_begin(std::ssize(order), window, windows));
    const auto end = static_cast<std::size_t>(part_begin(std::ssize(order), window + 1, windows));
    stream.shuffle(std::span(order).subspan(begin, end - begin), begin);
  }
}

/// The numbers of rows that are dealt to windows, window by window.
std::vector<std::int32_t> dealt_order(const std::vector<std::int32_t>& window_of_row, const AssignOptions& options) {
  const std::int64_t windows = *std::ranges::max_element(window_of_row) + 1;  // each has rows
  std::vector<std::int32_t> order = rows_by_window(window_of_row, windows).rows;
  shuffle_windows(order, windows, options);
  return order;
}

/// Shuffles runs of items that follow each other, each on its own. Most are of a few items, and their draws are made many at
/// once.
class RunShuffler {
 public:
  explicit RunShuffler(const RandomStream& stream) : stream_(stream), drawn_(kAhead) {}

  void shuffle(std::span<std::int32_t> run, std::uint64_t first_index) {
    if (run.size() > kAhead / 8) return stream_.shuffle(run, first_index);
    if (first_index < begin_ || first_index + run.size() > begin_ + filled_) {
      begin_ = first_index;
      filled_ = kAhead;
      stream_.values(begin_, drawn_);
    }
    RandomStream::shuffle_end(run, std::span<const std::uint64_t>(drawn_).subspan(first_index - begin_, run.size()));
  }

 private:
  static constexpr std::size_t kAhead = 2048;
  const RandomStream& stream_;
  std::vector<std::uint64_t> drawn_;
  std::uint64_t begin_ = 0, filled_ = 0;  // indices of what is drawn
};

/// Equal lengths are interchangeable: draw who goes where, unless rows are to follow the input. \return the window of each of the
/// plan's rows where there are several, else nothing
std::vector<std::int32_t> draw_members(Classes& classes, const std::vector<Item>& items, const PackingPlan& plan,
                                       const std::vector<Place>& places, const AssignOptions& options) {
  if (options.order == RowOrder::input) return {};
  const bool windowed = options.order == RowOrder::windowed;
  const std::vector<std::int32_t> begins = window_begins(items, windowed ? window_count(plan.rows(), plan.row_tokens) : 1);
  const RandomStream stream(options.seed, RandomPurpose::members, static_cast<std::uint32_t>(options.partition));
  RunShuffler shuffler(stream);
  WindowedLengths lengths{std::ssize(begins) - 1, {}, {}};
  for (std::size_t slots = 1; slots + 1 < classes.begin.size(); ++slots) {
    auto at = static_cast<std::size_t>(classes.begin[slots]);
    const auto end = static_cast<std::size_t>(classes.begin[slots + 1]);
    if (at == end) continue;
    lengths.lengths.push_back(static_cast<Length>(slots));
    for (std::size_t window = 0; window + 1 < begins.size(); ++window) {
      const std::size_t first = at;
      while (at < end && classes.members[at] < begins[window + 1]) ++at;
      shuffler.shuffle(std::span(classes.members).subspan(first, at - first),
                       static_cast<std::uint64_t>(options.first_item) + first);
      lengths.counts.push_back(static_cast<std::int32_t>(at - first));
    }
  }
  if (lengths.windows == 1) return {};
  std::vector<std::int32_t> window_of_row = deal_rows(plan, std::move(lengths));
  fill_from_windows(classes, places, begins, plan, rows_by_window(window_of_row, std::ssize(begins) - 1));
  return window_of_row;
}

}  // namespace

std::int64_t window_count(std::int64_t rows, Length row_tokens) {
  return std::clamp<std::int64_t>(ceil_div(checked_mul(rows, row_tokens, "the slots of a partition"), kWindowSlots), 1,
                                  std::max<std::int64_t>(rows, 1));
}

Assignment assign(const std::vector<Item>& items, const PackingPlan& plan, const AssignOptions& options) {
  Classes classes = classes_of(items, plan.row_tokens);
  const std::vector<Place> places = places_of(plan, classes);
  std::vector<std::int32_t> window_of_row = draw_members(classes, items, plan, places, options);
  Assignment rows;
  rows.items.reserve(items.size());
  rows.begin.reserve(static_cast<std::size_t>(plan.rows()) + 1);
  const auto add_row = [&](std::size_t s, std::int64_t row) {  // of strategy s
    for (auto place = static_cast<std::size_t>(plan.begin[s]); place < static_cast<std::size_t>(plan.begin[s + 1]); ++place) {
      rows.items.push_back(classes.members[static_cast<std::size_t>(places[place].first + row * places[place].step)]);
    }
    rows.begin.push_back(static_cast<std::int64_t>(rows.items.size()));
  };
  const bool windowed = options.order == RowOrder::windowed;
  if (!options.ordered || (options.order != RowOrder::shuffled && !windowed)) {
    for (std::size_t s = 0; s < plan.count.size(); ++s) {
      for (std::int64_t row = 0; row < plan.count[s]; ++row) add_row(s, row);
    }
    rows.windows = std::move(window_of_row);
    return options.ordered ? order_rows(rows, items, options) : rows;
  }
  const PlannedRows planned = planned_rows(plan);
  for (const std::int32_t r :
       window_of_row.empty() ? shuffled_order(plan.rows(), options) : dealt_order(window_of_row, options)) {
    add_row(static_cast<std::size_t>(planned.strategy[static_cast<std::size_t>(r)]),
            planned.row_of_strategy[static_cast<std::size_t>(r)]);
  }
  return rows;
}

Assignment spread_units(const Assignment& rows, std::int32_t keep_together) {
  if (keep_together == 1) return rows;
  Assignment result;
  result.items.reserve(rows.items.size() * static_cast<std::size_t>(keep_together));
  for (const std::int32_t unit : rows.items) {
    for (std::int32_t i = 0; i < keep_together; ++i) result.items.push_back(unit * keep_together + i);
  }
  result.begin = rows.begin;
  for (std::int64_t& begin : result.begin) begin *= keep_together;
  result.windows = rows.windows;
  return result;
}

namespace {

/// Of rows that no plan deals to windows, or several do: by the item in their middle.
std::vector<std::int32_t> middle_order(const Assignment& rows, const AssignOptions& options) {
  const std::int64_t windows = window_count(rows.rows(), options.row_tokens);
  if (windows == 1) return shuffled_order(rows.rows(), options);
  std::vector<std::pair<std::int32_t, std::int32_t>> by_middle(static_cast<std::size_t>(rows.rows()));  // an item is in one row
  std::vector<std::int32_t> row;
  for (std::int64_t r = 0; r < rows.rows(); ++r) {
    row.assign(rows.row(r).begin(), rows.row(r).end());
    const auto middle = row.begin() + static_cast<std::ptrdiff_t>(row.size() / 2);
    std::nth_element(row.begin(), middle, row.end());
    by_middle[static_cast<std::size_t>(r)] = {*middle, static_cast<std::int32_t>(r)};
  }
  std::ranges::sort(by_middle);
  std::vector<std::int32_t> order(by_middle.size());
  std::ranges::transform(by_middle, order.begin(), &std::pair<std::int32_t, std::int32_t>::second);
  shuffle_windows(order, windows, options);
  return order;
}

}  // namespace

std::vector<std::int32_t> order_of_rows(const Assignment& rows, const std::vector<Item>& items, const AssignOptions& options) {
  if (options.order == RowOrder::shuffled) return shuffled_order(rows.rows(), options);
  if (options.order == RowOrder::windowed)
    return rows.windows.empty() ? middle_order(rows, options) : dealt_order(rows.windows, options);
  if (options.order == RowOrder::balanced) return balanced_order(row_costs(rows, items), options);
  std::vector<std::int32_t> order(static_cast<std::size_t>(rows.rows()));
  std::iota(order.begin(), order.end(), 0);
  if (options.order == RowOrder::input) {  // items are numbered in input order
    std::vector<std::int32_t> first(order.size());
    for (std::size_t r = 0; r < order.size(); ++r) first[r] = std::ranges::min(rows.row(static_cast<std::int64_t>(r)));
    std::ranges::sort(order, {}, [&](std::int32_t r) { return first[static_cast<std::size_t>(r)]; });
  }
  return order;
}

Assignment order_rows(const Assignment& rows, const std::vector<Item>& items, const AssignOptions& options) {
  if (options.order == RowOrder::by_strategy) return rows;
  Assignment result;
  result.items.reserve(rows.items.size());
  result.begin.reserve(rows.begin.size());
  for (const std::int32_t r : order_of_rows(rows, items, options)) {
    const std::span<const std::int32_t> row = rows.row(r);
    result.items.insert(result.items.end(), row.begin(), row.end());
    if (options.order == RowOrder::input) {
      std::sort(result.items.end() - static_cast<std::ptrdiff_t>(row.size()), result.items.end());
    }
    result.begin.push_back(static_cast<std::int64_t>(result.items.size()));
  }
  return result;
}

}  // namespace shardpack
