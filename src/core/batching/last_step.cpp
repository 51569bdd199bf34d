// The last step, for which there are too few items to fill it on every rank.
#include <algorithm>

#include "base/checked.h"
#include "core/batching/steps.h"

namespace shardpack {

namespace {

class LastStepMaker {
 public:
  LastStepMaker(const BatchOrder& order, const BatchCut& cut, const BatchItems& items, const BatchOptions& options)
      : order_(order), cut_(cut), items_(items), options_(options), group_(options.group_size()) {}

  /// Spread over all batches of the step as evenly as can be.
  LastStep spread() {
    for (const BatchRange& range : cut_.rest) add(range);
    sort_by_length();
    const auto count = static_cast<std::int64_t>(step_.items.size());
    step_.sizes = even_sizes(count, std::min(count, group_));
    if (!within_limits()) step_.sizes = sizes_within_limits();
    // A rank without a batch would hang the others: it repeats the shortest item, which counts for nothing.
    while (static_cast<std::int64_t>(step_.sizes.size()) < group_) {
      count_repeat(step_.items.front());
      step_.items.push_back(step_.items.front());
      step_.sizes.push_back(1);
      ++step_.weightless;
    }
    return std::move(step_);
  }

  /// Filled with what lies next to the rest in the order.
  LastStep fill() {
    if (options_.strategy.has_budget() || !order_.bucket_begin.empty()) {
      const std::vector<BatchRange>& more = cut_.whole.empty() ? cut_.rest : cut_.whole;
      for (const BatchRange& range : cut_.rest) add_batch(range);
      for (std::size_t i = 0; static_cast<std::int64_t>(step_.sizes.size()) < group_; ++i) {
        const BatchRange& range = more[i % more.size()];
        add_batch(range);
        count_repeats(range);
      }
    } else {
      const auto all = static_cast<std::int64_t>(order_.items.size());
      const std::int64_t needed = group_ * options_.batch_size;
      const BatchRange rest = cut_.rest.front();
      const std::int64_t first = std::max<std::int64_t>(0, std::min(rest.first, all - needed));
      for (std::int64_t i = 0; i < needed; ++i) {
        const std::int64_t place = (first + i) % all;
        step_.items.push_back(item(place));
        if (i >= all || place < rest.first || place >= rest.first + rest.count) count_repeat(item(place));
      }
      sort_by_length();
      step_.sizes.assign(static_cast<std::size_t>(group_), options_.batch_size);
    }
    return std::move(step_);
  }

 private:
  std::uint32_t item(std::int64_t place) const { return order_.items[static_cast<std::size_t>(place)]; }
  Length length(std::size_t i) const { return items_.lengths[step_.items[i]]; }
  void add(const BatchRange& range) {
    for (std::int64_t i = 0; i < range.count; ++i) step_.items.push_back(item(range.first + i));
  }
  void add_batch(const BatchRange& range) {
    add(range);
    step_.sizes.push_back(range.count);
  }
  void count_repeat(std::uint32_t repeated) {
    ++step_.repeated.items;
    step_.repeated.tokens += items_.real_tokens(repeated);
  }
  void count_repeats(const BatchRange& range) {
    for (std::int64_t i = 0; i < range.count; ++i) count_repeat(item(range.first + i));
  }

  /// Strategies that ask for random batches keep them random.
  void sort_by_length() {
    if (options_.strategy.kind == BatchKind::fixed || options_.strategy.kind == BatchKind::dynamic) return;
    std::stable_sort(step_.items.begin(), step_.items.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return items_.lengths[a] < items_.lengths[b]; });
  }

  bool within_limits() const {
    std::size_t end = 0;
    for (const std::int64_t size : step_.sizes) {
      Length longest = 0;
      for (std::int64_t i = 0; i < size; ++i) longest = std::max(longest, length(end++));
      if (size > options_.most(options_.pad.padded(longest))) return false;
    }
    return true;
  }

  /// Sizes of a greedy cut in which no batch has more than `limit` padded tokens; items ascend in length.
  std::vector<std::int64_t> sizes_under(std::int64_t limit) const {
    std::vector<std::int64_t> sizes;
    std::int64_t size = 0;
    for (std::size_t i = 0; i < step_.items.size(); ++i) {
      const Length padded = options_.pad.padded(length(i));
      if (size > 0 && (size + 1 > options_.most(padded) || (size + 1) * padded > limit)) {
        sizes.push_back(size);
        size = 0;
      }
      ++size;
    }
    if (size > 0) sizes.push_back(size);
    return sizes;
  }

  /// Under a budget even counts may be too many tokens where items are long: even in padded tokens then.
  std::vector<std::int64_t> sizes_within_limits() const {
    std::int64_t low = options_.pad.padded(length(step_.items.size() - 1)), high = low;
    while (static_cast<std::int64_t>(sizes_under(high).size()) > group_) high *= 2;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (static_cast<std::int64_t>(sizes_under(middle).size()) > group_) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    std::vector<std::int64_t> sizes = sizes_under(high);
    while (static_cast<std::int64_t>(sizes.size()) < group_) {
      const auto largest = std::max_element(sizes.begin(), sizes.end());
      if (*largest < 2) break;
      const std::int64_t half = *largest / 2;
      *largest -= half;
      sizes.insert(largest + 1, half);
    }
    return sizes;
  }

  const BatchOrder& order_;
  const BatchCut& cut_;
  const BatchItems& items_;
  const BatchOptions& options_;
  std::int64_t group_;
  LastStep step_;
};

}  // namespace

LastStep make_last_step(const BatchOrder& order, const BatchCut& cut, const BatchItems& items, const BatchOptions& options) {
  if (cut.rest.empty() || options.tail == BatchTail::drop) return {};
  LastStepMaker maker(order, cut, items, options);
  return options.tail == BatchTail::repeat ? maker.fill() : maker.spread();
}

}  // namespace shardpack
