// Which strategies are worth most, when every length has a value? The question behind `nnlshp` and `optimal`, answered without
// listing strategies (5.6 million for rows of 8192 slots at depth 3): a knapsack problem, solved over the space of a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shardpack/types.h"

namespace shardpack {

/// \tparam Value  double, or std::int64_t for exact results (worth must stay below 2^62 then)
template <class Value>
class StrategyPricing {
 public:
  struct Strategy {
    Value worth = 0;
    std::vector<std::int32_t> parts;  ///< indices into the lengths, descending, at least one
  };

  /// \param lengths  distinct, ascending, 1..row_tokens
  /// \param max_segments  lengths in a strategy, 0 = no limit
  /// Memory: 8 bytes * row_tokens * max_segments; * 1 without an effective limit.
  StrategyPricing(std::span<const Length> lengths, Length row_tokens, std::int32_t max_segments);

  struct Found {
    std::vector<Strategy> strategies;  ///< best first, all different
    Value most = 0;                    ///< no strategy at all is worth more (up to rounding errors of doubles)
  };

  /// Strategies worth more than `above`, which is at least 0; the first is the best of all. Each of the others is the best that
  /// holds some length; no length is in more than `max_uses` of them. Among equals the one with the longest length.
  /// \param value  one a length; a value of 0 or less is never taken
  /// Time: O(row_tokens * lengths * max_segments), without a limit O(row_tokens * lengths); lengths that a shorter one is worth
  /// as much as do not count.
  Found best(std::span<const Value> value, Value above, std::size_t limit, int max_uses);

  /// What the best of all is worth.
  Value most(std::span<const Value> value);

 private:
  void fill(std::span<const Value> value);
  std::vector<Value> worths(std::span<const Value> value) const;
  Strategy trace(std::int32_t first, std::span<const Value> value) const;
  const std::vector<Value>& others() const { return most_.back(); }

  std::vector<Length> lengths_;
  Length row_tokens_;
  bool depth_limited_;
  /// Limited: [n][s] = most worth of at most n lengths in s slots, n below max_segments. Not limited: [0][s], any number.
  std::vector<std::vector<Value>> most_;
  std::vector<std::int32_t> useful_;  // lengths, ascending, that are worth more than every shorter one
};

}  // namespace shardpack
