// Which strategies are worth most when there are only so many items of each length? What StrategyPricing is without that limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shardpack/types.h"

namespace shardpack {

class BoundedPricing {
 public:
  struct Strategy {
    double worth = 0;
    std::vector<std::int32_t> parts;  ///< indices into the lengths, descending, at least one
  };

  struct Found {
    std::vector<Strategy> strategies;  ///< best first
    double most = 0;                   ///< no strategy at all is worth more
  };

  /// \param lengths  distinct, ascending, 1..row_tokens  \param max_segments  0 = no limit
  BoundedPricing(std::span<const Length> lengths, Length row_tokens, std::int32_t max_segments);

  /// Entries of the table that best() computes for so many items: about its bits, and its nanoseconds.
  std::int64_t table(std::span<const std::int64_t> items) const;

  /// Strategies worth more than `above`, at least 0, with at most items[i] parts of length i: the best of all, and the best of
  /// those with another longest length; no length is in more than `max_uses` of them. Time and bits: O(row_tokens * items that
  /// can be in a row * max_segments); without a limit of segments the factor is 1.
  Found best(std::span<const double> value, std::span<const std::int64_t> items, double above, std::size_t limit,
             int max_uses) const;

 private:
  std::int64_t copies(std::size_t i, std::int64_t items) const;  ///< of length i that can be in a row

  std::vector<Length> lengths_;
  Length row_tokens_;
  std::size_t layers_;  // of the table: 1, or segments + 1
  bool depth_limited_;
};

}  // namespace shardpack
