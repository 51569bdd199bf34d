// Contiguous cuts: into batches of one size, under a budget, within buckets, or at random places.
#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "core/batching/steps.h"

namespace shardpack {

namespace {

/// Consecutive ranges of `size` from place `first`, `count` of them.
void add_ranges(std::vector<BatchRange>& ranges, std::int64_t first, std::int64_t count, std::int64_t size) {
  for (std::int64_t i = 0; i < count; ++i) ranges.push_back({first + i * size, size});
}

/// Padded total of a last step that takes the places [first, first + sizes' sum).
std::int64_t padded_step(const LengthClasses& classes, const PadRule& pad, std::int64_t first,
                         const std::vector<std::int64_t>& sizes) {
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) {
    if (size == 0) continue;
    first += size;
    total += size * pad.padded(classes.at(first - 1));
  }
  return total;
}

}  // namespace

std::vector<std::int64_t> even_sizes(std::int64_t count, std::int64_t parts) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(parts), count / parts);
  std::fill_n(sizes.begin(), count % parts, count / parts + 1);
  return sizes;
}

std::int64_t best_place_of_rest(const LengthClasses& classes, const PadRule& pad, std::int64_t size, std::int64_t rest,
                                std::int64_t parts) {
  const std::int64_t whole = (classes.items() - rest) / size;
  const std::vector<std::int64_t> sizes = even_sizes(rest, parts);
  // Totals relative to the rest at the very front. From behind k batches to behind k + parts, `parts` batches move to the front.
  std::int64_t moved = 0, best = padded_step(classes, pad, 0, sizes), best_place = 0;
  for (std::int64_t k = 0; k < whole;) {
    // While all that moves is of one length, nothing changes.
    const std::int64_t quiet = ((classes.end_of_class(k * size) - rest) / size - k) / parts;
    if (quiet > 1) k += (quiet - 1) * parts;
    for (const std::int64_t next = k + parts; k < next; ++k) {
      const std::int64_t last = (k + 1) * size - 1;
      moved += size * (pad.padded(classes.at(last)) - pad.padded(classes.at(last + rest)));
    }
    if (const std::int64_t total = moved + padded_step(classes, pad, k * size, sizes); total < best) {
      best = total;
      best_place = k;
    }
  }
  return best_place;
}

BatchCut cut_order(const BatchOrder& order, const BatchItems& items, const BatchOptions& options, std::int64_t epoch) {
  const auto count = static_cast<std::int64_t>(order.items.size());
  const std::int64_t group = options.group_size(), size = options.batch_size;
  BatchCut cut;

  if (options.strategy.has_budget() || !order.bucket_begin.empty()) {
    // As many batches as it takes; the shortest ones are left for the last step, or random ones when they are dropped.
    std::vector<BatchRange> all;
    if (options.strategy.has_budget()) {
      all = cut_greedy(count, options, [&](std::int64_t i) { return items.lengths[order.items[static_cast<std::size_t>(i)]]; });
    } else {
      for (std::size_t b = 0; b + 1 < order.bucket_begin.size(); ++b) {
        const std::int64_t first = order.bucket_begin[b], in_bucket = order.bucket_begin[b + 1] - first;
        add_ranges(all, first, in_bucket / size, size);
        if (in_bucket % size > 0) all.push_back({first + in_bucket / size * size, in_bucket % size});
      }
    }
    const std::size_t left = all.size() % static_cast<std::size_t>(group);
    if (options.tail == BatchTail::drop) {
      const RandomStream stream(options.seed, RandomPurpose::batch_drops, static_cast<std::uint32_t>(epoch));
      for (std::size_t i = 0; i < left; ++i) {
        std::swap(all[i], all[i + static_cast<std::size_t>(stream.bounded(i, all.size() - i))]);
      }
    }
    const auto end_of_rest = all.begin() + static_cast<std::ptrdiff_t>(left);
    cut.rest.assign(all.begin(), end_of_rest);
    cut.whole.assign(end_of_rest, all.end());
    return cut;
  }

  const std::int64_t whole = count / checked_mul(size, group, "sequences a step") * group;
  const std::int64_t rest = count - whole * size;
  std::int64_t before = whole;  // whole batches in front of the rest
  if (order.ascending && rest > 0) before = best_place_of_rest(classes_of(items.lengths), options.pad, size, rest, group);
  cut.whole.reserve(static_cast<std::size_t>(whole));
  add_ranges(cut.whole, 0, before, size);
  if (rest > 0) cut.rest.push_back({before * size, rest});
  add_ranges(cut.whole, before * size + rest, whole - before, size);
  return cut;
}

}  // namespace shardpack
