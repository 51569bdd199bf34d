// assign(): which item fills each place of the plan, and the order of the rows.
#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/rng.h"
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
}  // namespace

Assignment assign(const std::vector<Item>& items, const PackingPlan& plan, const AssignOptions& options) {
  Classes classes = classes_of(items, plan.row_tokens);
  // Equal lengths are interchangeable: draw who goes where, unless rows are to follow the input.
  if (options.order != RowOrder::input) {
    const RandomStream stream(options.seed, RandomPurpose::members, static_cast<std::uint32_t>(options.partition));
    for (std::size_t slots = 1; slots + 1 < classes.begin.size(); ++slots) {
      const auto begin = static_cast<std::size_t>(classes.begin[slots]), end = static_cast<std::size_t>(classes.begin[slots + 1]);
      stream.shuffle(std::span(classes.members).subspan(begin, end - begin),
                     static_cast<std::uint64_t>(options.first_item) + begin);
    }
  }

  const std::vector<Place> places = places_of(plan, classes);
  Assignment rows;
  rows.items.reserve(items.size());
  rows.begin.reserve(static_cast<std::size_t>(plan.rows()) + 1);
  const auto add_row = [&](std::size_t s, std::int64_t row) {  // of strategy s
    for (auto place = static_cast<std::size_t>(plan.begin[s]); place < static_cast<std::size_t>(plan.begin[s + 1]); ++place) {
      rows.items.push_back(classes.members[static_cast<std::size_t>(places[place].first + row * places[place].step)]);
    }
    rows.begin.push_back(static_cast<std::int64_t>(rows.items.size()));
  };
  if (options.order != RowOrder::shuffled) {
    for (std::size_t s = 0; s < plan.count.size(); ++s) {
      for (std::int64_t row = 0; row < plan.count[s]; ++row) add_row(s, row);
    }
    return order_rows(rows, items, options);
  }
  std::vector<std::int32_t> strategy_of, row_of;  // every row, by strategy: where it is in the plan
  strategy_of.reserve(rows.begin.capacity());
  row_of.reserve(rows.begin.capacity());
  for (std::size_t s = 0; s < plan.count.size(); ++s) {
    strategy_of.insert(strategy_of.end(), static_cast<std::size_t>(plan.count[s]), static_cast<std::int32_t>(s));
    for (std::int64_t row = 0; row < plan.count[s]; ++row) row_of.push_back(static_cast<std::int32_t>(row));
  }
  for (const std::int32_t r : shuffled_order(plan.rows(), options)) {
    add_row(static_cast<std::size_t>(strategy_of[static_cast<std::size_t>(r)]), row_of[static_cast<std::size_t>(r)]);
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
  return result;
}

std::vector<std::int32_t> order_of_rows(const Assignment& rows, const std::vector<Item>& items, const AssignOptions& options) {
  if (options.order == RowOrder::shuffled) return shuffled_order(rows.rows(), options);
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
