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
  std::vector<std::int32_t> window_begins;  // the first item of each window of the input, and at the end the number of items
};

/// Windows of equal slots.
std::vector<std::int32_t> window_begins(const std::vector<Length>& slots, std::int64_t windows) {
  const std::int64_t total = std::accumulate(slots.begin(), slots.end(), std::int64_t{0});
  std::vector<std::int32_t> begins;
  std::int64_t before = 0;  // slots
  std::size_t item = 0;
  for (std::int64_t window = 0; window < windows; ++window) {
    const std::int64_t begin = part_begin(total, window, windows);
    for (; before < begin; ++item) before += slots[item];
    begins.push_back(static_cast<std::int32_t>(item));
  }
  begins.push_back(static_cast<std::int32_t>(slots.size()));
  return begins;
}

Classes classes_of(const std::vector<Item>& items, Length row_tokens, std::int64_t windows) {
  std::vector<Length> slots(items.size());  // items are wide: one pass over them
  Length least = 1, most = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    slots[i] = items[i].slots;
    least = std::min(least, slots[i]);
    most = std::max(most, slots[i]);
  }
  ensure(least >= 1 && most <= row_tokens, "an item is longer than the plan's rows");

  Classes classes{std::vector<std::int64_t>(static_cast<std::size_t>(row_tokens) + 2, 0), {}, window_begins(slots, windows)};
  for (const Length l : slots) ++classes.begin[static_cast<std::size_t>(l) + 1];
  std::partial_sum(classes.begin.begin(), classes.begin.end(), classes.begin.begin());
  std::vector<std::int64_t> next = classes.begin;
  classes.members.resize(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    classes.members[static_cast<std::size_t>(next[static_cast<std::size_t>(slots[i])]++)] = static_cast<std::int32_t>(i);
  }
  return classes;
}

/// \throws Error{internal} unless the plan takes each member once
void check_cover(const PackingPlan& plan, const Classes& classes) {
  std::vector<std::int64_t> left(classes.begin.size() - 1);  // by slots: members that no place takes
  for (std::size_t slots = 0; slots < left.size(); ++slots) left[slots] = classes.begin[slots + 1] - classes.begin[slots];
  for (std::int64_t s = 0; s < plan.strategies(); ++s) {
    for (const Length length : plan.strategy(s))
      left[static_cast<std::size_t>(length)] -= plan.count[static_cast<std::size_t>(s)];
  }
  ensure(std::ranges::all_of(left, [](std::int64_t count) { return count >= 0; }), "the plan places an item that does not exist");
  ensure(std::ranges::all_of(left, [](std::int64_t count) { return count == 0; }), "the plan leaves items out");
}

/// 0, 1, 2 ...
std::vector<std::int32_t> numbers(std::int64_t count) {
  std::vector<std::int32_t> result(static_cast<std::size_t>(count));
  std::iota(result.begin(), result.end(), 0);
  return result;
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

/// Equal lengths are interchangeable: draw in which order they are taken, in each window. \return how many there are
WindowedLengths shuffle_members(Classes& classes, const AssignOptions& options) {
  const std::vector<std::int32_t>& window_begins = classes.window_begins;
  const RandomStream stream(options.seed, RandomPurpose::members, static_cast<std::uint32_t>(options.partition));
  RunShuffler shuffler(stream);
  WindowedLengths lengths{std::ssize(window_begins) - 1, {}, {}};
  for (std::size_t slots = 1; slots + 1 < classes.begin.size(); ++slots) {
    auto at = static_cast<std::size_t>(classes.begin[slots]);
    const auto end = static_cast<std::size_t>(classes.begin[slots + 1]);
    if (at == end) continue;
    lengths.lengths.push_back(static_cast<Length>(slots));
    for (std::size_t window = 0; window + 1 < window_begins.size(); ++window) {
      const std::size_t first = at;
      while (at < end && classes.members[at] < window_begins[window + 1]) ++at;
      shuffler.shuffle(std::span(classes.members).subspan(first, at - first),
                       static_cast<std::uint64_t>(options.first_item) + first);
      lengths.counts.push_back(static_cast<std::int32_t>(at - first));
    }
  }
  return lengths;
}

/// Rows in an order, their items not chosen yet.
struct OpenRows {
  Assignment rows;
  std::vector<std::int32_t> strategy;  // of each of the plan's rows, which are numbered strategy by strategy
  std::vector<std::int64_t> first;     // where the items of each of the plan's rows begin
};

OpenRows open_rows(const PackingPlan& plan, const std::vector<std::int32_t>& order) {
  OpenRows open;
  open.strategy.reserve(order.size());
  for (std::size_t s = 0; s < plan.count.size(); ++s)
    open.strategy.insert(open.strategy.end(), static_cast<std::size_t>(plan.count[s]), static_cast<std::int32_t>(s));
  open.first.resize(order.size());
  open.rows.begin.reserve(order.size() + 1);
  for (const std::int32_t row : order) {
    const auto r = static_cast<std::size_t>(row);
    open.first[r] = open.rows.begin.back();
    open.rows.begin.push_back(open.first[r] + std::ssize(plan.strategy(open.strategy[r])));
  }
  open.rows.items.resize(static_cast<std::size_t>(open.rows.begin.back()));
  return open;
}

/// Members of a class are taken in the order of strategies, rows and places, equal lengths of a strategy side by side.
void fill_in_order(const Classes& classes, const PackingPlan& plan, OpenRows& open) {
  std::vector<std::int64_t> next = classes.begin;
  for (std::size_t r = 0; r < open.strategy.size(); ++r) {
    auto to = open.rows.items.begin() + open.first[r];
    for (const Length length : plan.strategy(open.strategy[r]))
      *to++ = classes.members[static_cast<std::size_t>(next[static_cast<std::size_t>(length)]++)];
  }
}

/// So that rows find what they need near each other: a place takes a member of its row's window while there is one; then the
/// places left take the members left, both in the order of windows. Leaves the members in any order.
void fill_from_windows(Classes& classes, const RowsByWindow& by_window, const PackingPlan& plan, OpenRows& open) {
  const std::vector<std::int32_t>& window_begins = classes.window_begins;
  std::vector<std::int32_t>& members = classes.members;
  std::vector<std::int64_t> next = classes.begin;  // by class: the next member to look at
  std::vector<std::int64_t> left = classes.begin;  // by class: members before it were left, and moved to the class's beginning
  struct Unmet {                                   // as many as items where the lengths of the input change along it
    std::int32_t slots, to;
  };
  std::vector<Unmet> unmet;
  for (std::size_t window = 0; window + 1 < window_begins.size(); ++window) {
    for (const std::int32_t row : by_window.of(static_cast<std::int64_t>(window))) {
      const auto r = static_cast<std::size_t>(row);
      auto to = static_cast<std::size_t>(open.first[r]);
      for (const Length length : plan.strategy(open.strategy[r])) {
        const auto slots = static_cast<std::size_t>(length);
        std::int64_t& at = next[slots];
        const auto member = [&] { return members[static_cast<std::size_t>(at)]; };
        for (; at < classes.begin[slots + 1] && member() < window_begins[window]; ++at)
          members[static_cast<std::size_t>(left[slots]++)] = member();
        if (at < classes.begin[slots + 1] && member() < window_begins[window + 1]) {
          open.rows.items[to] = member();
          ++at;
        } else {
          unmet.push_back({length, static_cast<std::int32_t>(to)});
        }
        ++to;
      }
    }
  }
  for (std::size_t slots = 1; slots + 1 < classes.begin.size(); ++slots) {
    const auto to = members.begin() + left[slots];
    std::copy(members.begin() + next[slots], members.begin() + classes.begin[slots + 1], to);
    next[slots] = classes.begin[slots];
  }
  for (const Unmet& u : unmet) {
    open.rows.items[static_cast<std::size_t>(u.to)] =
        members[static_cast<std::size_t>(next[static_cast<std::size_t>(u.slots)]++)];
  }
}

}  // namespace

std::int64_t window_count(std::int64_t rows, Length row_tokens) {
  return std::clamp<std::int64_t>(ceil_div(checked_mul(rows, row_tokens, "the slots of a partition"), kWindowSlots), 1,
                                  std::max<std::int64_t>(rows, 1));
}

Assignment assign(const std::vector<Item>& items, const PackingPlan& plan, const AssignOptions& options) {
  const std::int64_t windows = options.order == RowOrder::windowed ? window_count(plan.rows(), plan.row_tokens) : 1;
  Classes classes = classes_of(items, plan.row_tokens, windows);
  check_cover(plan, classes);
  WindowedLengths lengths;
  if (options.order != RowOrder::input) lengths = shuffle_members(classes, options);
  std::vector<std::int32_t> window_of_row;
  if (windows > 1) window_of_row = deal_rows(plan, std::move(lengths));

  const bool in_place = options.ordered && (options.order == RowOrder::shuffled || options.order == RowOrder::windowed);
  OpenRows open = open_rows(plan, !in_place     ? numbers(plan.rows())
                                  : windows > 1 ? dealt_order(window_of_row, options)
                                                : shuffled_order(plan.rows(), options));
  if (windows == 1) {
    fill_in_order(classes, plan, open);
  } else {
    fill_from_windows(classes, rows_by_window(window_of_row, windows), plan, open);
  }
  if (in_place) return std::move(open.rows);
  open.rows.windows = std::move(window_of_row);
  return options.ordered ? order_rows(open.rows, items, options) : std::move(open.rows);
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
  std::vector<std::int32_t> order = numbers(rows.rows());
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
