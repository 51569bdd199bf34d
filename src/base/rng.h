// Counter-based random numbers: value = f(seed, purpose, stream, index). Any value can be had alone, in any order, on any thread.
//
// Philox 4x32-10 (Salmon et al., SC 2011). Layout: key = (low, high 32 bits of the seed); counter = (low, high 32 bits of the
// index, purpose, stream); 64-bit value = word1 << 32 | word0. The standard library's distributions and std::shuffle are not
// specified bit for bit, so the bounded draw and the shuffle are here.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "base/wide.h"

namespace shardpack {

using PhiloxBlock = std::array<std::uint32_t, 4>;

/// The ten rounds.
PhiloxBlock philox(PhiloxBlock counter, std::array<std::uint32_t, 2> key);

/// What a number is drawn for: part of the output's definition, so never renumber.
enum class RandomPurpose : std::uint32_t {
  members = 1,    ///< which item of a length fills which place
  row_order = 2,  ///< order of the rows of a partition
  partition_order = 3,
  sample = 4,
  row_groups = 5,     ///< order of the steps of balanced rows
  batch_order = 8,    ///< stream = epoch, here and below: order of the items, and among equal ones
  batch_cuts = 9,     ///< gist: where the next batch is cut
  batch_groups = 10,  ///< order of the rank groups
  batch_drops = 11,   ///< which batches --tail drop leaves out
  batch_figures = 12,
  record_key = 16,  ///< fingerprint keys (seed 0)
  position_key = 17,
  column_key = 18,
};

class RandomStream {
 public:
  RandomStream(std::uint64_t seed, RandomPurpose purpose, std::uint32_t stream = 0)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        purpose_(static_cast<std::uint32_t>(purpose)),
        stream_(stream) {}

  /// 128 random bits as two 64-bit values.
  std::pair<std::uint64_t, std::uint64_t> pair(std::uint64_t index) const {
    const PhiloxBlock w =
        philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), purpose_, stream_}, key_);
    return {std::uint64_t{w[1]} << 32 | w[0], std::uint64_t{w[3]} << 32 | w[2]};
  }
  std::uint64_t value(std::uint64_t index) const { return pair(index).first; }
  /// out[i] = value(first_index + i), several at a time.
  void values(std::uint64_t first_index, std::span<std::uint64_t> out) const;

  /// A number in [0, bound): the high word of value * bound. Its bias is below bound / 2^64.
  std::uint64_t bounded(std::uint64_t index, std::uint64_t bound) const { return scaled(value(index), bound); }

  /// Fisher-Yates from the end; draw i uses index first_index + i, so disjoint ranges of indices shuffle independently.
  template <class T>
  void shuffle(std::span<T> items, std::uint64_t first_index = 0) const {
    std::array<std::uint64_t, 256> drawn;
    for (std::size_t end = items.size(); end > 1;) {
      const std::size_t begin = end - std::min(end, drawn.size());
      values(first_index + begin, std::span(drawn).first(end - begin));
      shuffle_end(items.first(end), std::span<const std::uint64_t>(drawn).first(end - begin));
      end = begin;
    }
  }
  /// The part of it that is done with the draws of the last items, as many as there are of them; all of it with those of all.
  template <class T>
  static void shuffle_end(std::span<T> items, std::span<const std::uint64_t> drawn) {
    const std::size_t begin = items.size() - drawn.size();
    for (std::size_t end = items.size(); end > std::max(begin, std::size_t{1}); --end) {
      std::swap(items[end - 1], items[static_cast<std::size_t>(scaled(drawn[end - 1 - begin], end))]);
    }
  }

 private:
  static std::uint64_t scaled(std::uint64_t value, std::uint64_t bound) {
    return static_cast<std::uint64_t>(static_cast<Uint128>(value) * bound >> 64);
  }

  std::array<std::uint32_t, 2> key_;
  std::uint32_t purpose_, stream_;
};

}  // namespace shardpack
