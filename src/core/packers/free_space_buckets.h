// Open strategies in buckets by free slots, and the next bucket that is not empty without a scan: row lengths of a million slots
// must cost no more than short ones.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "core/packers/fill_decreasing.h"

namespace shardpack {

/// A set of integers below a fixed size: words of 64 bits, and above each level one with a bit for every word that is not 0.
class BitTree {
 public:
  explicit BitTree(std::int64_t size) {
    do {
      size = (size + 63) / 64;
      levels_.emplace_back(static_cast<std::size_t>(size));
    } while (size > 1);
  }
  void insert(std::int64_t member) {
    for (std::vector<std::uint64_t>& level : levels_) {
      level[static_cast<std::size_t>(member / 64)] |= std::uint64_t{1} << (member & 63);
      member /= 64;
    }
  }
  void erase(std::int64_t member) {
    for (std::vector<std::uint64_t>& level : levels_) {
      std::uint64_t& word = level[static_cast<std::size_t>(member / 64)];
      word &= ~(std::uint64_t{1} << (member & 63));
      if (word != 0) return;
      member /= 64;
    }
  }
  /// The smallest member that is at least `bound`; -1 when there is none.
  std::int64_t first_from(std::int64_t bound) const {
    for (std::size_t level = 0; level < levels_.size(); ++level) {
      const std::int64_t at = bound / 64;
      if (at >= static_cast<std::int64_t>(levels_[level].size())) return -1;
      const std::uint64_t word = levels_[level][static_cast<std::size_t>(at)] & (~std::uint64_t{0} << (bound & 63));
      if (word != 0) return descend(level, at * 64 + lowest(word), lowest);
      bound = at + 1;
    }
    return -1;
  }
  /// The largest member; -1 when there is none.
  std::int64_t last() const {
    const std::uint64_t top = levels_.back().front();
    return top == 0 ? -1 : descend(levels_.size() - 1, highest(top), highest);
  }

 private:
  static int lowest(std::uint64_t word) { return std::countr_zero(word); }
  static int highest(std::uint64_t word) { return 63 - std::countl_zero(word); }

  template <class Pick>
  std::int64_t descend(std::size_t level, std::int64_t member, Pick pick) const {
    while (level-- > 0) member = member * 64 + pick(levels_[level][static_cast<std::size_t>(member)]);
    return member;
  }
  std::vector<std::vector<std::uint64_t>> levels_;  // from the members up to a single word
};

/// Buckets are last in, first out: the published row counts need that order.
class FreeSpaceBuckets {
 public:
  explicit FreeSpaceBuckets(Length row_tokens)
      : occupied_(std::int64_t{row_tokens} + 1), top_(static_cast<std::size_t>(row_tokens) + 1, kNone) {}

  void put(const OpenStrategy& strategy) {
    std::int32_t at = unused_;
    if (at == kNone) {
      at = static_cast<std::int32_t>(entries_.size());
      entries_.emplace_back();
    } else {
      unused_ = entries_[static_cast<std::size_t>(at)].below;
    }
    std::int32_t& top = top_[static_cast<std::size_t>(strategy.free)];
    if (top == kNone) occupied_.insert(strategy.free);
    entries_[static_cast<std::size_t>(at)] = {strategy, top};
    top = at;
  }
  std::int64_t least_from(Length slots) const { return occupied_.first_from(slots); }  ///< -1 when no bucket has so much
  std::int64_t most() const { return occupied_.last(); }                               ///< -1 when all are empty

  /// The top of a bucket that is not empty, removed.
  OpenStrategy pop(std::int64_t free) {
    std::int32_t& top = top_[static_cast<std::size_t>(free)];
    const std::int32_t at = top;
    Entry& entry = entries_[static_cast<std::size_t>(at)];
    top = entry.below;
    if (top == kNone) occupied_.erase(free);
    entry.below = unused_;
    unused_ = at;
    return entry.strategy;
  }

 private:
  static constexpr std::int32_t kNone = -1;
  struct Entry {
    OpenStrategy strategy;
    std::int32_t below = kNone;  // in its bucket, or in the list of unused entries
  };
  BitTree occupied_;
  std::vector<std::int32_t> top_;  // index = free slots
  std::vector<Entry> entries_;
  std::int32_t unused_ = kNone;
};

}  // namespace shardpack
