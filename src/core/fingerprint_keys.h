// The keys of the fingerprint (shardpack/fingerprint.h).
//
// A token's key in each lane is record_key * position_key * column_key mod 2^64, every factor odd and pseudo-random: Philox with
// seed 0 (base/rng.h), purposes record_key and position_key with the ordinal or position as index, column_key with the XXH3-64 of
// the column's name; the block's first 64-bit value is the low lane's factor, the second the high lane's, each with bit 0 set.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "shardpack/fingerprint.h"
#include "shardpack/types.h"

namespace shardpack {

/// Immutable after construction, so thread-safe. Holds a table of 16 bytes a position for the first `table_positions`.
class FingerprintKeys {
 public:
  static constexpr std::int64_t kMaxTablePositions = std::int64_t{1} << 20;  // 16 MiB; positions beyond are drawn one by one

  explicit FingerprintKeys(std::int64_t longest_sequence, std::string_view column = "input_ids");

  /// Of a run of one record's values, the first at `first_position`.
  Fingerprint of(SequenceId record, std::int64_t first_position, std::span<const std::uint16_t> values) const;
  Fingerprint of(SequenceId record, std::int64_t first_position, std::span<const std::uint32_t> values) const;

 private:
  struct Key {
    std::uint64_t low, high;
  };
  template <class Id>
  Fingerprint sum(SequenceId record, std::int64_t first_position, std::span<const Id> values) const;

  Key column_{};
  std::vector<Key> positions_;
};

}  // namespace shardpack
