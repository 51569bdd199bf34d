// plan_batches(): the chain of all strategies.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "base/units.h"
#include "core/batching/steps.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

/// Appends batches to the epoch.
class EpochWriter {
 public:
  EpochWriter(const BatchItems& items, const BatchOptions& options, BatchEpoch& epoch)
      : items_(items), options_(options), epoch_(epoch) {
    if (options.strategy.kind == BatchKind::fixed && !items.lengths.empty()) {
      const Length longest = *std::max_element(items.lengths.begin(), items.lengths.end());
      fixed_pad_ = options.pad.padded(std::max(options.fixed_length, longest));
    }
  }

  Length pad_length(std::span<const std::uint32_t> members, bool ascending) const {
    if (fixed_pad_ > 0) return fixed_pad_;
    if (ascending) return options_.pad.padded(items_.lengths[members.back()]);
    Length longest = 0;
    for (const std::uint32_t member : members) longest = std::max(longest, items_.lengths[member]);
    return options_.pad.padded(longest);
  }

  std::uint64_t key(std::span<const std::uint32_t> members, Length pad) const {
    if (items_.costs.empty()) return cost_key(pad, static_cast<std::int64_t>(members.size()));
    std::uint64_t cost = 0;
    for (const std::uint32_t member : members) cost += static_cast<std::uint64_t>(items_.costs[member]);
    return cost;
  }

  void add(std::span<const std::uint32_t> members, Length pad) {
    epoch_.items.insert(epoch_.items.end(), members.begin(), members.end());
    epoch_.begin.push_back(static_cast<std::int64_t>(epoch_.items.size()));
    epoch_.pad_length.push_back(pad);
  }

 private:
  const BatchItems& items_;
  const BatchOptions& options_;
  BatchEpoch& epoch_;
  Length fixed_pad_ = 0;
};

std::span<const std::uint32_t> members_of(const std::vector<std::uint32_t>& items, const BatchRange& range) {
  return std::span(items).subspan(static_cast<std::size_t>(range.first), static_cast<std::size_t>(range.count));
}

/// Batches of `ranges` over `items`, in rank groups.
void add_groups(EpochWriter& writer, const std::vector<std::uint32_t>& items, const std::vector<BatchRange>& ranges,
                bool ascending, const BatchOptions& options, const RandomStream& stream) {
  std::vector<Length> pads;
  std::vector<std::uint64_t> keys;
  pads.reserve(ranges.size());
  keys.reserve(ranges.size());
  for (const BatchRange& range : ranges) {
    const std::span<const std::uint32_t> members = members_of(items, range);
    pads.push_back(writer.pad_length(members, ascending));
    keys.push_back(writer.key(members, pads.back()));
  }
  for (const std::uint32_t b : order_groups(keys, options.group_size(), options.oom_first, stream)) {
    writer.add(members_of(items, ranges[b]), pads[b]);
  }
}

/// The last step closes the epoch, and its weights with it.
void add_last_step(EpochWriter& writer, const LastStep& step, const BatchOptions& options, BatchEpoch& epoch,
                   const RandomStream& stream) {
  std::vector<BatchRange> ranges;
  for (std::int64_t first = 0; const std::int64_t size : step.sizes) {
    ranges.push_back({first, size});
    first += size;
  }
  epoch.repeated = step.repeated;
  if (step.weightless == 0) return add_groups(writer, step.items, ranges, false, options, stream);

  // Every batch is a single item: there is nothing to balance.
  for (const BatchRange& range : ranges) {
    const std::span<const std::uint32_t> members = members_of(step.items, range);
    writer.add(members, writer.pad_length(members, false));
  }
  epoch.weights.assign(epoch.items.size(), 1);
  std::fill(epoch.weights.end() - step.weightless, epoch.weights.end(), 0.0F);
}

BatchTotals totals_of(std::span<const std::uint32_t> members, const BatchItems& items) {
  BatchTotals totals{.items = static_cast<std::int64_t>(members.size())};
  for (const std::uint32_t member : members) totals.tokens += items.real_tokens(member);
  return totals;
}

}  // namespace

void check_batch_items(const BatchItems& items, const BatchOptions& options, std::span<const std::int64_t> sequences) {
  if (items.size() >= std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorCode::limit, "a batch plan holds at most 4,294,967,294 sequences; plan the shards in parts");
  }
  if (items.lengths.empty()) return;
  const auto [least, most] = std::minmax_element(items.lengths.begin(), items.lengths.end());
  ensure(*least >= 1, "an item without a token is batched");
  const auto place = std::find(items.lengths.begin(), items.lengths.end(), *most) - items.lengths.begin();
  const Length padded = options.pad.padded(*most);
  if (options.most(padded) >= 1) return;
  throw Error(ErrorCode::bad_data,
              fmt::format("{} tokens, padded to {}, are over the budget of --strategy {} alone; raise the budget, or set "
                          "--max-length with --overlong truncate or drop",
                          with_commas(*most), with_commas(padded), to_text(options.strategy)),
              {},
              fmt::format("sequence {}", with_commas(sequences.empty() ? place : sequences[static_cast<std::size_t>(place)])));
}

BatchEpoch plan_batches(const BatchItems& items, const BatchOptions& options, std::int64_t epoch) {
  check_batch_options(options);
  check_batch_items(items, options);
  const BatchStrategy& strategy = options.strategy;
  const bool cut_boundaries = strategy.kind == BatchKind::buckets && strategy.boundaries.empty();
  const std::vector<Length> boundaries =
      cut_boundaries ? equal_token_boundaries(items.lengths, strategy.amount) : strategy.boundaries;

  // Order key, then cut: every item is in one range, or left out on purpose.
  const BatchOrder order = order_items(items, options, boundaries, epoch);
  const BatchCut cut = cut_order(order, items, options, epoch);

  // Rank groups: neighbours in cost share a step; the last step closes the epoch.
  const RandomStream groups(options.seed, RandomPurpose::batch_groups, static_cast<std::uint32_t>(epoch));
  BatchEpoch result;
  result.items.reserve(order.items.size());
  EpochWriter writer(items, options, result);
  add_groups(writer, order.items, cut.whole, order.ascending, options, groups);
  if (!cut.rest.empty() && options.tail != BatchTail::drop) {
    add_last_step(writer, make_last_step(order, cut, items, options), options, result, groups);
  }

  if (options.tail == BatchTail::drop) {
    result.dropped = totals_of(order.dropped, items);
    for (const BatchRange& range : cut.rest) {
      const BatchTotals totals = totals_of(members_of(order.items, range), items);
      result.dropped.items += totals.items;
      result.dropped.tokens += totals.tokens;
    }
  }
  return result;
}

}  // namespace shardpack
