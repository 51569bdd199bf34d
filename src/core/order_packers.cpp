// The two baselines in input order. They make rows straight from the items; the plan is what their rows amount to.
#include <algorithm>
#include <functional>

#include "base/checked.h"
#include "shardpack/assignment.h"

namespace shardpack {

namespace {

/// Rows that are filled one after the other.
class OpenRow {
 public:
  OpenRow(OrderedRows& out, Length row_tokens, std::int32_t max_segments)
      : out_(out), row_tokens_(row_tokens), max_segments_(max_segments) {}

  Length free() const { return max_segments_ > 0 && segments_ == max_segments_ ? 0 : row_tokens_ - used_; }
  void place(std::int32_t item, Length slots) {
    out_.rows.items.push_back(item);
    used_ += slots;
    ++segments_;
  }
  void close() {
    if (segments_ == 0) return;
    out_.rows.begin.push_back(static_cast<std::int64_t>(out_.rows.items.size()));
    used_ = 0;
    segments_ = 0;
  }

 private:
  OrderedRows& out_;
  Length row_tokens_;
  std::int32_t max_segments_;
  Length used_ = 0;
  std::int32_t segments_ = 0;
};

}  // namespace

OrderedRows pack_sequential(std::vector<Item> items, Length row_tokens, std::int32_t max_segments) {
  OrderedRows result;
  OpenRow row(result, row_tokens, max_segments);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].slots > row.free()) row.close();
    row.place(static_cast<std::int32_t>(i), items[i].slots);
  }
  row.close();
  result.items = std::move(items);
  return result;
}

OrderedRows pack_concat(const std::vector<Item>& items, Length row_tokens, std::int32_t max_segments, Length segment_multiple) {
  OrderedRows result;
  OpenRow row(result, row_tokens, max_segments);
  for (std::size_t i = 0; i < items.size();) {
    // Join the pieces of one sequence again: [first, end) of its tokens, with what is added at either side.
    const Item& head = items[i];
    std::int64_t at = head.first_token;
    std::int64_t end = at;
    std::uint8_t added = 0;
    for (; i < items.size() && items[i].sequence == head.sequence; ++i) {
      end += items[i].tokens;
      added |= items[i].added;
    }
    bool bos = (added & kAddedBos) != 0;
    bool eos = (added & kAddedEos) != 0;
    while (bos || at < end || eos) {
      if (row.free() == 0) row.close();
      const std::int64_t room = row.free();
      const std::int64_t tokens = std::min(end - at, room - bos);
      const bool with_eos = eos && at + tokens == end && bos + tokens < room;
      Item item{.sequence = head.sequence, .first_token = at, .tokens = static_cast<Length>(tokens)};
      item.added = static_cast<std::uint8_t>((bos ? kAddedBos : 0) | (with_eos ? kAddedEos : 0));
      item.slots = static_cast<Length>(ceil_div(item.length(), segment_multiple) * segment_multiple);
      row.place(static_cast<std::int32_t>(result.items.size()), item.slots);
      result.items.push_back(item);
      at += tokens;
      bos = false;
      if (with_eos) eos = false;
    }
  }
  row.close();
  return result;
}

PackingPlan derive_plan(const OrderedRows& rows, std::string_view packer, const LengthPolicy& policy, std::int32_t max_segments) {
  PackingPlan plan;
  plan.packer = packer;
  plan.row_tokens = policy.row_tokens;
  plan.max_segments = max_segments;
  plan.policy = policy;
  const auto together = static_cast<std::size_t>(policy.keep_together);
  std::vector<Length> lengths;
  for (std::int64_t r = 0; r < rows.rows.rows(); ++r) {
    lengths.clear();
    const std::span<const std::int32_t> row = rows.rows.row(r);
    ensure(row.size() % together == 0, "a row holds whole units");
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i % together == 0) lengths.push_back(0);
      lengths.back() += rows.items[static_cast<std::size_t>(row[i])].slots;
    }
    std::ranges::sort(lengths, std::greater<>());
    plan.add(lengths, 1);
  }
  plan.canonicalize();
  plan.bound = lower_bound(covered_items(plan), plan.row_tokens, plan.item_limit());
  return plan;
}

LengthHistogram covered_items(const PackingPlan& plan) {
  LengthHistogram items;
  for (std::int64_t s = 0; s < plan.strategies(); ++s) {
    for (const Length slots : plan.strategy(s)) items.add(slots, plan.count[static_cast<std::size_t>(s)]);
  }
  return items;
}

}  // namespace shardpack
