#include "core/strategy_pricing.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"

namespace shardpack {
namespace {

/// to[s] = max(to[s], from[s] + value). The two do not overlap; kept apart so that compilers vectorise it.
template <class Value>
void relax(const Value* __restrict from, Value* __restrict to, std::size_t count, Value value) {
  for (std::size_t s = 0; s < count; ++s) {
    const Value sum = from[s] + value;
    to[s] = to[s] < sum ? sum : to[s];
  }
}

}  // namespace

template <class Value>
StrategyPricing<Value>::StrategyPricing(std::span<const Length> lengths, Length row_tokens, std::int32_t max_segments)
    : lengths_(lengths.begin(), lengths.end()), row_tokens_(row_tokens) {
  const Length fitting = lengths_.empty() ? 0 : row_tokens / lengths_.front();
  depth_limited_ = max_segments > 0 && max_segments < fitting;
  most_.assign(depth_limited_ ? static_cast<std::size_t>(max_segments) : 1,
               std::vector<Value>(static_cast<std::size_t>(row_tokens) + 1));
}

template <class Value>
void StrategyPricing<Value>::fill(std::span<const Value> value) {
  useful_.clear();
  Value most = 0;
  for (std::size_t i = 0; i < lengths_.size(); ++i) {
    if (value[i] <= most) continue;
    most = value[i];
    useful_.push_back(static_cast<std::int32_t>(i));
  }
  const std::size_t size = most_.front().size();
  std::fill(most_.front().begin(), most_.front().end(), Value{0});
  for (std::size_t n = depth_limited_ ? 1 : 0; n < most_.size(); ++n) {
    std::vector<Value>& to = most_[n];
    if (n > 0) to = most_[n - 1];
    for (std::size_t u = 0; u < useful_.size(); ++u) {
      const auto length = static_cast<std::size_t>(lengths_[static_cast<std::size_t>(useful_[u])]);
      const Value worth = value[static_cast<std::size_t>(useful_[u])];
      if (n == 1) {  // a single length, up to where the next one fits, which is worth more
        const std::size_t end =
            u + 1 < useful_.size() ? static_cast<std::size_t>(lengths_[static_cast<std::size_t>(useful_[u + 1])]) : size;
        std::fill(to.begin() + static_cast<std::ptrdiff_t>(length), to.begin() + static_cast<std::ptrdiff_t>(end), worth);
      } else if (n > 1) {
        relax(most_[n - 1].data(), to.data() + length, size - length, worth);
      } else {  // in blocks of `length` slots: each adds a copy to what the block before it holds, copies included
        for (std::size_t s = length; s < size; s += length) relax(&to[s - length], &to[s], std::min(length, size - s), worth);
      }
    }
  }
}

/// Of the best strategies that hold each length.
template <class Value>
std::vector<Value> StrategyPricing<Value>::worths(std::span<const Value> value) const {
  std::vector<Value> worth(lengths_.size(), 0);
  for (std::size_t i = 0; i < lengths_.size(); ++i) {
    if (value[i] > 0) worth[i] = value[i] + others()[static_cast<std::size_t>(row_tokens_ - lengths_[i])];
  }
  return worth;
}

template <class Value>
Value StrategyPricing<Value>::most(std::span<const Value> value) {
  fill(value);
  const std::vector<Value> worth = worths(value);
  return worth.empty() ? 0 : *std::max_element(worth.begin(), worth.end());
}

template <class Value>
typename StrategyPricing<Value>::Found StrategyPricing<Value>::best(std::span<const Value> value, Value above, std::size_t limit,
                                                                    int max_uses) {
  fill(value);
  const std::vector<Value> worth = worths(value);
  Found found;
  std::vector<std::int32_t> order;
  for (std::size_t i = 0; i < worth.size(); ++i) {
    found.most = std::max(found.most, worth[i]);
    if (worth[i] > above) order.push_back(static_cast<std::int32_t>(i));
  }
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const Value left = worth[static_cast<std::size_t>(a)], right = worth[static_cast<std::size_t>(b)];
    return left != right ? left > right : a > b;
  });

  std::vector<int> uses(lengths_.size(), 0);
  const auto used_up = [&](std::int32_t part) { return uses[static_cast<std::size_t>(part)] >= max_uses; };
  for (const std::int32_t first : order) {
    if (found.strategies.size() == limit) break;
    if (used_up(first)) continue;
    Strategy strategy = trace(first, value);
    if (std::any_of(strategy.parts.begin(), strategy.parts.end(), used_up)) continue;
    const auto is_same = [&](const Strategy& other) { return other.parts == strategy.parts; };  // found by another of its parts
    if (std::any_of(found.strategies.begin(), found.strategies.end(), is_same)) continue;
    for (std::size_t p = 0; p < strategy.parts.size(); ++p) {
      if (p == 0 || strategy.parts[p] != strategy.parts[p - 1]) ++uses[static_cast<std::size_t>(strategy.parts[p])];
    }
    found.strategies.push_back(std::move(strategy));
  }
  return found;
}

/// Follows the table back from the row that holds length `first`. Sums in another order than those that filled the table may be
/// off by a rounding error, so the best part is taken rather than one that gives the very number.
template <class Value>
typename StrategyPricing<Value>::Strategy StrategyPricing<Value>::trace(std::int32_t first, std::span<const Value> value) const {
  Length space = row_tokens_ - lengths_[static_cast<std::size_t>(first)];
  Strategy strategy{value[static_cast<std::size_t>(first)] + others()[static_cast<std::size_t>(space)], {first}};
  std::size_t layer = most_.size() - 1;
  const auto most = [&](std::size_t n, Length slots) { return most_[n][static_cast<std::size_t>(slots)]; };
  while (most(layer, space) > 0) {
    if (depth_limited_ && most(layer - 1, space) == most(layer, space)) {
      --layer;
      continue;
    }
    const std::size_t under = depth_limited_ ? layer - 1 : layer;
    std::int32_t best_part = -1;
    Value best_worth = 0;
    for (auto part = useful_.rbegin(); part != useful_.rend(); ++part) {
      const Length length = lengths_[static_cast<std::size_t>(*part)];
      if (length > space) continue;
      const Value worth = most(under, space - length) + value[static_cast<std::size_t>(*part)];
      if (worth > best_worth) {
        best_worth = worth;
        best_part = *part;
      }
      if (worth >= most(layer, space)) break;
    }
    ensure(best_part >= 0, "a priced strategy cannot be traced");
    strategy.parts.push_back(best_part);
    space -= lengths_[static_cast<std::size_t>(best_part)];
    layer = under;
  }
  std::sort(strategy.parts.rbegin(), strategy.parts.rend());
  return strategy;
}

template class StrategyPricing<double>;
template class StrategyPricing<std::int64_t>;

}  // namespace shardpack
