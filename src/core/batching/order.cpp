// The order key of each strategy. Sorting is by counting, so that ten million lengths take a fraction of a second.
#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/wide.h"
#include "core/batching/steps.h"

namespace shardpack {

namespace {

/// Stable sort by `key(item)`, 0 to `largest`, in passes of 16 bits.
template <class Key>
void sort_by_key(std::vector<std::uint32_t>& items, std::uint64_t largest, const Key& key) {
  std::vector<std::uint32_t> sorted(items.size());
  for (int shift = 0; shift < 64 && (largest >> shift) > 0; shift += 16) {
    const std::uint64_t digits = std::min<std::uint64_t>(largest >> shift, 0xffff) + 1;
    std::vector<std::int64_t> next(static_cast<std::size_t>(digits) + 1, 0);
    const auto digit = [&](std::uint32_t item) { return static_cast<std::size_t>((key(item) >> shift) & 0xffff); };
    for (const std::uint32_t item : items) ++next[digit(item) + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (const std::uint32_t item : items) sorted[static_cast<std::size_t>(next[digit(item)]++)] = item;
    items.swap(sorted);
  }
}

/// What sorted orders sort by: the length, or the attention cost of a packed row.
std::uint64_t sort_key(const BatchItems& items, std::uint32_t item) {
  return static_cast<std::uint64_t>(items.costs.empty() ? items.lengths[item] : items.costs[item]);
}

void sort_items(std::vector<std::uint32_t>& order, const BatchItems& items) {
  if (items.costs.empty()) {
    const Length largest = items.lengths.empty() ? 0 : *std::max_element(items.lengths.begin(), items.lengths.end());
    sort_by_key(order, static_cast<std::uint64_t>(largest),
                [&](std::uint32_t item) { return static_cast<std::uint64_t>(items.lengths[item]); });
  } else {
    const std::int64_t largest = *std::max_element(items.costs.begin(), items.costs.end());
    sort_by_key(order, static_cast<std::uint64_t>(largest),
                [&](std::uint32_t item) { return static_cast<std::uint64_t>(items.costs[item]); });
  }
}

/// Draw the order of items with equal keys.
void shuffle_ties(std::vector<std::uint32_t>& order, const BatchItems& items, const RandomStream& stream) {
  for (std::size_t begin = 0; begin < order.size();) {
    const std::uint64_t key = sort_key(items, order[begin]);
    std::size_t end = begin + 1;
    while (end < order.size() && sort_key(items, order[end]) == key) ++end;
    stream.shuffle(std::span(order).subspan(begin, end - begin), begin);
    begin = end;
  }
}

/// Sort chunks of `chunk` items of a random order; `longest_first` also opens with the longest item of all, in exchange for the
/// first one (so that memory runs out at once or never).
void sort_chunks(std::vector<std::uint32_t>& order, const BatchItems& items, std::int64_t chunk, bool longest_first) {
  const auto key = [&](std::uint32_t item) { return sort_key(items, item); };
  const auto size = static_cast<std::size_t>(std::min<std::int64_t>(chunk, static_cast<std::int64_t>(order.size())));
  std::size_t longest = 0;
  for (std::size_t begin = 0; begin < order.size(); begin += size) {
    const auto first = order.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = order.begin() + static_cast<std::ptrdiff_t>(std::min(begin + size, order.size()));
    std::stable_sort(first, last,
                     [&](std::uint32_t a, std::uint32_t b) { return longest_first ? key(a) > key(b) : key(a) < key(b); });
    if (key(order[begin]) > key(order[longest])) longest = begin;
  }
  if (longest_first && !order.empty()) std::swap(order[0], order[longest]);
}

/// Places of an order, of which runs are taken out: finds the k-th of those left. A Fenwick tree.
class LeftPlaces {
 public:
  explicit LeftPlaces(std::size_t count) : tree_(count + 1), present_(count, true) {
    for (std::size_t i = 1; i < tree_.size(); ++i) tree_[i] = static_cast<std::int64_t>(i & (~i + 1));
    while ((top_ << 1) < tree_.size()) top_ <<= 1;
  }

  /// Take the k-th place of those left and the count - 1 that follow it among them.
  void take(std::int64_t k, std::int64_t count, std::vector<std::size_t>& places) {
    std::size_t at = 0;
    for (std::size_t step = top_; step > 0; step >>= 1) {
      if (at + step < tree_.size() && tree_[at + step] <= k) k -= tree_[at += step];
    }
    for (; count > 0; ++at) {
      if (!present_[at]) continue;
      present_[at] = false;
      for (std::size_t i = at + 1; i < tree_.size(); i += i & (~i + 1)) --tree_[i];
      places.push_back(at);
      --count;
    }
  }

 private:
  std::vector<std::int64_t> tree_;
  std::vector<bool> present_;
  std::size_t top_ = 1;
};

/// The published smart batching: slices of `size` from random places of what is left, until nothing is.
void take_slices(std::vector<std::uint32_t>& order, std::int64_t size, const RandomStream& stream) {
  LeftPlaces places(order.size());
  std::vector<std::size_t> taken;
  taken.reserve(order.size());
  for (std::int64_t left = static_cast<std::int64_t>(order.size()), slice = 0; left > 0; ++slice) {
    const std::int64_t count = std::min(size, left);
    const auto start = stream.bounded(static_cast<std::uint64_t>(slice), static_cast<std::uint64_t>(left - count + 1));
    places.take(static_cast<std::int64_t>(start), count, taken);
    left -= count;
  }
  std::vector<std::uint32_t> sliced;
  sliced.reserve(order.size());
  for (const std::size_t place : taken) sliced.push_back(order[place]);
  order.swap(sliced);
}

}  // namespace

BatchOrder order_items(const BatchItems& items, const BatchOptions& options, std::span<const Length> boundaries,
                       std::int64_t epoch) {
  const BatchKind kind = options.strategy.kind;
  const RandomStream stream(options.seed, RandomPurpose::batch_order, static_cast<std::uint32_t>(epoch));
  BatchOrder result;
  std::vector<std::uint32_t>& order = result.items;
  order.resize(items.size());
  std::iota(order.begin(), order.end(), 0U);

  // Which items --tail drop leaves out is drawn before the sort: else every epoch would lose the same lengths.
  const auto drop = [&] {
    if (options.tail != BatchTail::drop || options.strategy.has_budget()) return;
    const std::int64_t step = checked_mul(options.group_size(), options.batch_size, "sequences a step");
    const std::size_t kept = order.size() - order.size() % static_cast<std::size_t>(step);
    const RandomStream drops(options.seed, RandomPurpose::batch_drops, static_cast<std::uint32_t>(epoch));
    for (std::size_t i = order.size(); i > kept; --i)
      std::swap(order[i - 1], order[static_cast<std::size_t>(drops.bounded(i, i))]);
    result.dropped.assign(order.begin() + static_cast<std::ptrdiff_t>(kept), order.end());
    order.resize(kept);
  };

  switch (kind) {
    case BatchKind::fixed:
    case BatchKind::dynamic:
      drop();
      stream.shuffle(std::span(order));
      break;
    case BatchKind::sorted:
    case BatchKind::tokens:
    case BatchKind::quad:
      drop();
      sort_items(order, items);
      shuffle_ties(order, items, stream);
      result.ascending = items.costs.empty();
      break;
    case BatchKind::gist:  // a stable sort once and for all: only the cuts are drawn
      drop();
      std::sort(order.begin(), order.end());
      sort_items(order, items);
      take_slices(order, options.batch_size,
                  RandomStream(options.seed, RandomPurpose::batch_cuts, static_cast<std::uint32_t>(epoch)));
      break;
    case BatchKind::mega:
    case BatchKind::pool:
      drop();
      stream.shuffle(std::span(order));
      sort_chunks(order, items, checked_mul(options.strategy.amount, options.batch_size, "sequences in a chunk"),
                  kind == BatchKind::mega);
      break;
    case BatchKind::buckets: {
      stream.shuffle(std::span(order));
      const auto bucket = [&](std::uint32_t item) {
        return static_cast<std::uint64_t>(std::upper_bound(boundaries.begin(), boundaries.end(), items.lengths[item]) -
                                          boundaries.begin());
      };
      sort_by_key(order, boundaries.size(), bucket);
      result.bucket_begin.assign(boundaries.size() + 2, 0);
      for (const std::uint32_t item : order) ++result.bucket_begin[static_cast<std::size_t>(bucket(item)) + 1];
      std::partial_sum(result.bucket_begin.begin(), result.bucket_begin.end(), result.bucket_begin.begin());
      break;
    }
  }
  return result;
}

// ---- classes of equal length ------------------------------------------------------------------------------------------------

LengthClasses classes_of(std::span<const Length> lengths) {
  // 31-bit lengths: count in pages of 64 Ki lengths that are made when needed.
  std::vector<std::vector<std::int64_t>> pages(std::size_t{1} << 15);
  for (const Length length : lengths) {
    std::vector<std::int64_t>& page = pages[static_cast<std::size_t>(length) >> 16];
    if (page.empty()) page.resize(std::size_t{1} << 16);
    ++page[static_cast<std::size_t>(length) & 0xffff];
  }
  LengthClasses classes;
  std::int64_t until = 0;
  for (std::size_t p = 0; p < pages.size(); ++p) {
    for (std::size_t i = 0; i < pages[p].size(); ++i) {
      if (pages[p][i] == 0) continue;
      until += pages[p][i];
      classes.lengths.push_back(static_cast<Length>(p << 16 | i));
      classes.until.push_back(until);
    }
  }
  return classes;
}

Length LengthClasses::at(std::int64_t place) const {
  return lengths[static_cast<std::size_t>(std::upper_bound(until.begin(), until.end(), place) - until.begin())];
}

std::int64_t LengthClasses::end_of_class(std::int64_t place) const {
  return *std::upper_bound(until.begin(), until.end(), place);
}

std::vector<Length> equal_token_boundaries(std::span<const Length> lengths, std::int64_t buckets) {
  return equal_token_boundaries(classes_of(lengths), buckets);
}

std::vector<Length> equal_token_boundaries(const LengthClasses& classes, std::int64_t buckets) {
  std::vector<std::int64_t> tokens_until;
  std::int64_t tokens = 0;
  for (std::size_t c = 0; c < classes.lengths.size(); ++c) {
    tokens += classes.lengths[c] * (classes.until[c] - (c > 0 ? classes.until[c - 1] : 0));
    tokens_until.push_back(tokens);
  }
  std::vector<Length> boundaries;
  for (std::int64_t b = 1; b < buckets; ++b) {
    // The length of the token at place b/N of all tokens in ascending order begins bucket b.
    const auto place = static_cast<std::int64_t>(static_cast<Int128>(tokens) * b / buckets);
    const auto found = std::upper_bound(tokens_until.begin(), tokens_until.end(), place);
    if (found == tokens_until.end() || found == tokens_until.begin()) continue;  // would leave a bucket empty
    const Length boundary = classes.lengths[static_cast<std::size_t>(found - tokens_until.begin())];
    if (boundaries.empty() || boundary > boundaries.back()) boundaries.push_back(boundary);
  }
  return boundaries;
}

}  // namespace shardpack
