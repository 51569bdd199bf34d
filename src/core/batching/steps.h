// The links of the chain, each testable alone: order key -> contiguous cut -> rank groups.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"
#include "shardpack/batch_plan.h"

namespace shardpack {

/// Consecutive places of the order that make a batch.
struct BatchRange {
  std::int64_t first = 0, count = 0;

  friend bool operator==(const BatchRange&, const BatchRange&) = default;
};

/// Items in the order that is cut. With `bucket_begin` the cut respects these places too.
struct BatchOrder {
  std::vector<std::uint32_t> items;
  bool ascending = false;                  ///< in length, so that the last item of a range is its longest
  std::vector<std::int64_t> bucket_begin;  ///< buckets + 1 places; empty: one bucket
  std::vector<std::uint32_t> dropped;      ///< left out for --tail drop
};

/// Order the items of an epoch. Under a size (no budget) and --tail drop the items that do not fill a step are left out here, at
/// random. \param boundaries  of buckets
BatchOrder order_items(const BatchItems& items, const BatchOptions& options, std::span<const Length> boundaries,
                       std::int64_t epoch);

/// Whole batches, a multiple of the group size, and the places that are left for the last step.
struct BatchCut {
  std::vector<BatchRange> whole, rest;
};
BatchCut cut_order(const BatchOrder& order, const BatchItems& items, const BatchOptions& options, std::int64_t epoch);

/// Greedy contiguous cut of `lengths`: each batch takes what options.most() allows; one that is larger than size_multiple holds a
/// multiple of it. `length_at(i)` for i in [0, count).
template <class LengthAt>
std::vector<BatchRange> cut_greedy(std::int64_t count, const BatchOptions& options, const LengthAt& length_at) {
  std::vector<BatchRange> batches;
  for (std::int64_t first = 0; first < count;) {
    std::int64_t longest = -1, size = 0, most = 0;
    while (first + size < count) {
      const std::int64_t length = length_at(first + size);
      std::int64_t allowed = most;
      if (length > longest) allowed = options.most(options.pad.padded(length));
      if (size + 1 > allowed) break;
      if (length > longest) longest = length, most = allowed;
      ++size;
    }
    if (size > options.size_multiple) size -= size % options.size_multiple;
    batches.push_back({first, size > 0 ? size : 1});  // plan_batches() has refused items that are over the budget alone
    first += batches.back().count;
  }
  return batches;
}

/// Lengths with the number of items up to each: what the place of the tail and predictions are worked out from.
struct LengthClasses {
  std::vector<Length> lengths;      ///< ascending
  std::vector<std::int64_t> until;  ///< items of at most that length

  std::int64_t items() const { return until.empty() ? 0 : until.back(); }
  Length at(std::int64_t place) const;  ///< length of the item at a place of the ascending order
  std::int64_t end_of_class(std::int64_t place) const;
};
LengthClasses classes_of(std::span<const Length> lengths);

/// Boundaries that cut the classes into at most `buckets` buckets of equal total tokens.
std::vector<Length> equal_token_boundaries(const LengthClasses& classes, std::int64_t buckets);

/// Sizes of `parts` batches of `count` items, as even as can be, larger ones first.
std::vector<std::int64_t> even_sizes(std::int64_t count, std::int64_t parts);

/// In the ascending order cut into batches of `size`, `rest` items (fewer than parts x size) are left for a last step of `parts`
/// batches: behind how many whole batches they are taken out, a multiple of `parts`, so that the padded total is least. The first
/// such place.
std::int64_t best_place_of_rest(const LengthClasses& classes, const PadRule& pad, std::int64_t size, std::int64_t rest,
                                std::int64_t parts);

/// The batches of the last step, as many as the group size.
struct LastStep {
  std::vector<std::uint32_t> items;
  std::vector<std::int64_t> sizes;  ///< one a batch
  std::int64_t weightless = 0;      ///< the last so many batches are one item of weight 0 each
  BatchTotals repeated;
};
LastStep make_last_step(const BatchOrder& order, const BatchCut& cut, const BatchItems& items, const BatchOptions& options);

/// What a batch costs beside others: batches that are next to each other in this order are alike in every cost model.
std::uint64_t cost_key(Length pad_length, std::int64_t size);

/// The order of training: indices of batches, sorted by `keys`, cut into groups of `group_size` neighbours, groups shuffled.
std::vector<std::uint32_t> order_groups(std::span<const std::uint64_t> keys, std::int64_t group_size, bool costliest_first,
                                        const RandomStream& stream);

}  // namespace shardpack
