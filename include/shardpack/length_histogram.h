// How many sequences (or items) there are of each length: all that a packer needs to know of a dataset.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "shardpack/group_key.h"

namespace shardpack {

struct LengthCount {
  std::int64_t length = 0;  ///< tokens, or slots
  std::int64_t count = 0;   ///< sequences, or items, of exactly that length

  friend bool operator==(const LengthCount&, const LengthCount&) = default;
};

/// Counts by length. Lengths from 0 up; a count never goes below zero.
/// Memory: an array where lengths up to kDenseLengths lie close, else a map node each. Not thread-safe for writing; merge() is
/// commutative, so workers fill their own and the results are merged in any order.
class LengthHistogram {
 public:
  static constexpr std::int64_t kDenseLengths = std::int64_t{1} << 20;

  LengthHistogram() = default;
  explicit LengthHistogram(std::span<const LengthCount> counts);

  /// \throws Error{bad_data} for a negative length or count, Error{limit} when a count or total leaves 63 bits.
  void add(std::int64_t length, std::int64_t count = 1);
  void merge(const LengthHistogram& other);

  /// Non-zero counts, ascending by length. Length 0 (empty sequences) is included: callers that place items skip it.
  std::vector<LengthCount> counts() const;
  std::int64_t count(std::int64_t length) const;

  std::int64_t sequences() const { return sequences_; }  ///< all, the empty ones included
  std::int64_t tokens() const { return tokens_; }
  std::int64_t empty() const { return count(0); }
  std::int64_t min_length() const;  ///< of the non-empty ones; 0 when there are none
  std::int64_t max_length() const;  ///< 0 when there are none
  double mean_length() const;       ///< tokens / non-empty sequences; 0 when there are none

  /// Smallest length l such that at least ceil(q * n) of the n non-empty sequences have length <= l. 0 <= q <= 1.
  std::int64_t quantile(double q) const;

  friend bool operator==(const LengthHistogram& a, const LengthHistogram& b) { return a.counts() == b.counts(); }

 private:
  static constexpr std::size_t kSlotsPerNode = 8;  // of the array: that many take the memory of a map node
  void move_to_dense();                            // when the array is no larger than the nodes that it takes the place of

  std::vector<std::int64_t> dense_;              // index = length
  std::map<std::int64_t, std::int64_t> sparse_;  // the lengths from dense_.size() on
  std::int64_t sequences_ = 0, tokens_ = 0;
};

/// Those of one value of the group column.
struct GroupLengths {
  GroupKey key;
  LengthHistogram lengths;
};

}  // namespace shardpack
