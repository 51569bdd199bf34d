// assign(): which item fills each place of the plan, and the order of the rows.
#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/rng.h"
#include "shardpack/assignment.h"

namespace shardpack {

Assignment assign(const std::vector<Item>& items, const PackingPlan& plan, const AssignOptions& options) {
  // Counting sort: members of each class of equal slots, in input order.
  std::vector<std::int64_t> next(static_cast<std::size_t>(plan.row_tokens) + 2, 0);
  for (const Item& item : items) {
    ensure(item.slots >= 1 && item.slots <= plan.row_tokens, "an item is longer than the plan's rows");
    ++next[static_cast<std::size_t>(item.slots) + 1];
  }
  std::partial_sum(next.begin(), next.end(), next.begin());
  const std::vector<std::int64_t> class_begin = next;
  std::vector<std::int32_t> members(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    members[static_cast<std::size_t>(next[static_cast<std::size_t>(items[i].slots)]++)] = static_cast<std::int32_t>(i);
  }

  // Equal lengths are interchangeable: draw who goes where, unless rows are to follow the input.
  if (options.order != RowOrder::input) {
    const RandomStream stream(options.seed, RandomPurpose::members, static_cast<std::uint32_t>(options.partition));
    for (std::size_t slots = 1; slots + 1 < class_begin.size(); ++slots) {
      const auto begin = static_cast<std::size_t>(class_begin[slots]), end = static_cast<std::size_t>(class_begin[slots + 1]);
      stream.shuffle(std::span(members).subspan(begin, end - begin), begin);
    }
  }

  next = class_begin;
  Assignment rows;
  rows.items.reserve(items.size());
  rows.begin.reserve(static_cast<std::size_t>(plan.rows()) + 1);
  for (std::int64_t s = 0; s < plan.strategies(); ++s) {
    const std::span<const Length> lengths = plan.strategy(s);
    for (std::int64_t i = 0; i < plan.count[static_cast<std::size_t>(s)]; ++i) {
      for (const Length slots : lengths) {
        const std::int64_t member = next[static_cast<std::size_t>(slots)]++;
        ensure(member < class_begin[static_cast<std::size_t>(slots) + 1], "the plan places an item that does not exist");
        rows.items.push_back(members[static_cast<std::size_t>(member)]);
      }
      rows.begin.push_back(static_cast<std::int64_t>(rows.items.size()));
    }
  }
  ensure(rows.items.size() == items.size(), "the plan leaves items out");
  return order_rows(rows, items, options);
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

Assignment order_rows(const Assignment& rows, const std::vector<Item>& items, const AssignOptions& options) {
  if (options.order == RowOrder::by_strategy) return rows;
  std::vector<std::int32_t> order(static_cast<std::size_t>(rows.rows()));
  std::iota(order.begin(), order.end(), 0);
  const bool by_input = options.order == RowOrder::input;
  if (by_input) {  // items are numbered in input order
    std::vector<std::int32_t> first(order.size());
    for (std::size_t r = 0; r < order.size(); ++r) first[r] = std::ranges::min(rows.row(static_cast<std::int64_t>(r)));
    std::ranges::sort(order, {}, [&](std::int32_t r) { return first[static_cast<std::size_t>(r)]; });
  } else {
    RandomStream(options.seed, RandomPurpose::row_order, static_cast<std::uint32_t>(options.partition)).shuffle(std::span(order));
  }
  Assignment result;
  result.items.reserve(items.size());
  result.begin.reserve(rows.begin.size());
  for (const std::int32_t r : order) {
    const std::span<const std::int32_t> row = rows.row(r);
    result.items.insert(result.items.end(), row.begin(), row.end());
    if (by_input) std::sort(result.items.end() - static_cast<std::ptrdiff_t>(row.size()), result.items.end());
    result.begin.push_back(static_cast<std::int64_t>(result.items.size()));
  }
  return result;
}

}  // namespace shardpack
