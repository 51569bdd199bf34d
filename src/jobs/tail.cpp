#include "jobs/tail.h"

#include <algorithm>

namespace shardpack {

TailRows plan_tail(std::vector<Partition>& partitions, std::int64_t rows, const PackOptions& options) {
  TailRows tail;
  const std::int64_t over = rows % options.rows_multiple;
  if (over == 0) return tail;
  if (options.tail != Tail::drop) {
    tail.extra = options.rows_multiple - over;
    return tail;
  }
  tail.dropped = over;
  std::int64_t left = over;
  for (auto partition = partitions.rbegin(); left > 0; ++partition) {
    partition->dropped_rows = std::min(left, partition->plan.rows());
    left -= partition->dropped_rows;
  }
  return tail;
}

void keep_first_rows(Assignment& rows, std::int64_t kept) {
  rows.begin.resize(static_cast<std::size_t>(kept) + 1);
  rows.items.resize(static_cast<std::size_t>(rows.begin.back()));
}

DroppedRows drop_last_rows(OrderedRows& rows, const SequenceIndex& index, Partition& partition) {
  DroppedRows dropped;
  const auto kept_rows = static_cast<std::size_t>(partition.kept_rows());
  const auto kept = static_cast<std::size_t>(rows.rows.begin[kept_rows]);
  const auto item_at = [&](std::size_t place) -> const Item& {
    return rows.items[static_cast<std::size_t>(rows.rows.items[place])];
  };

  std::vector<bool> present(static_cast<std::size_t>(partition.sequences.count()));  // sequences with a segment left
  const auto offset = [&](const Item& item) { return static_cast<std::size_t>(partition.sequences.rank(item.sequence)); };
  for (std::size_t place = 0; place < kept; ++place) present[offset(item_at(place))] = true;

  std::sort(rows.rows.items.begin() + static_cast<std::ptrdiff_t>(kept), rows.rows.items.end());  // input order
  for (std::size_t place = kept; place < rows.rows.items.size(); ++place) {
    const Item& item = item_at(place);
    if (!present[offset(item)]) {
      ++dropped.sequences;
      present[offset(item)] = true;  // its other pieces do not count again
    }
    ++dropped.segments;
    dropped.source_tokens += item.tokens;
    dropped.added_bos += (item.added & kAddedBos) != 0;
    dropped.added_eos += (item.added & kAddedEos) != 0;
    if (item.tokens > 0) dropped.ranges.push_back({item.sequence, item.first_token, item.tokens, RemovalCause::tail});
  }
  keep_first_rows(rows.rows, partition.kept_rows());

  static_cast<PartitionPlan&>(partition) = derive_plans(rows, index, partition);
  partition.dropped_rows = 0;
  return dropped;
}

void keep_head(OrderedRows& head, const OrderedRows& rows, std::int64_t wanted) {
  for (std::int64_t r = 0; r < rows.rows.rows() && head.rows.rows() < wanted; ++r) {
    for (const std::int32_t i : rows.rows.row(r)) {
      head.rows.items.push_back(static_cast<std::int32_t>(head.items.size()));
      head.items.push_back(rows.items[static_cast<std::size_t>(i)]);
    }
    head.rows.begin.push_back(static_cast<std::int64_t>(head.rows.items.size()));
  }
}

OrderedRows tail_rows(const OrderedRows& head, std::int64_t extra, Tail tail) {
  OrderedRows rows;
  rows.items = head.items;
  for (std::int64_t r = 0; r < extra; ++r) {
    if (tail == Tail::repeat) {
      const std::span<const std::int32_t> row = head.rows.row(r % head.rows.rows());
      rows.rows.items.insert(rows.rows.items.end(), row.begin(), row.end());
    }
    rows.rows.begin.push_back(static_cast<std::int64_t>(rows.rows.items.size()));
  }
  return rows;
}

RemovedCount count_contents(const OrderedRows& rows) {
  RemovedCount count;
  std::vector<SequenceId> sequences;
  for (const std::int32_t i : rows.rows.items) {
    const Item& item = rows.items[static_cast<std::size_t>(i)];
    count.tokens += item.length();
    sequences.push_back(item.sequence);
  }
  std::sort(sequences.begin(), sequences.end());
  count.sequences = std::unique(sequences.begin(), sequences.end()) - sequences.begin();
  return count;
}

}  // namespace shardpack
