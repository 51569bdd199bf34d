// Best fit: among open strategies, the one with the least free space that holds an item; among equals the one that got there
// last.
#pragma once

#include <cstdint>
#include <optional>

#include "core/packers/fill_decreasing.h"
#include "core/packers/free_space_buckets.h"

namespace shardpack {

/// OpenRows of fill_decreasing().
class LongestFirst {
 public:
  explicit LongestFirst(Length row_tokens) : buckets_(row_tokens) {}
  void put(const OpenStrategy& strategy) { buckets_.put(strategy); }
  std::optional<OpenStrategy> take(Length length) {
    const std::int64_t free = buckets_.least_from(length);
    if (free < 0) return std::nullopt;
    return buckets_.pop(free);
  }

 private:
  FreeSpaceBuckets buckets_;
};

}  // namespace shardpack
