// The keys of the fingerprint (shardpack/fingerprint.h).
//
// A token's key in each lane is record_key * position_key * column_key mod 2^64, every factor odd and pseudo-random: Philox with
// seed 0 (base/rng.h), purposes record_key and position_key with the ordinal or position as index, column_key with the XXH3-64 of
// the column's name; the block's first 64-bit value is the low lane's factor, the second the high lane's, each with bit 0 set.
//
// A whole number enters as itself (mod 2^64), whatever type it is stored in, -0.0 excepted; another number by the bits of its
// 64-bit form; a text by the XXH3-64 of its bytes, at position 0. The position of a value is its number in the record's list, and
// of one that belongs to a token (Column::places) that token's.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "shardpack/column.h"
#include "shardpack/fingerprint.h"
#include "shardpack/types.h"

namespace shardpack {

template <class Value>
std::uint64_t fingerprint_value(Value value) {
  if constexpr (std::is_integral_v<Value>) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  } else {
    const auto wide = static_cast<double>(value);
    constexpr double kWhole = 9007199254740992;  // 2^53
    if (std::abs(wide) <= kWhole && wide == std::trunc(wide) && !(wide == 0 && std::signbit(wide))) {
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(wide));
    }
    std::uint64_t bits = 0;
    std::memcpy(&bits, &wide, sizeof bits);
    return bits;
  }
}

/// Immutable after construction, so thread-safe. Holds a table of 16 bytes a position for the first `table_positions`.
class FingerprintKeys {
 public:
  static constexpr std::int64_t kMaxTablePositions = std::int64_t{1} << 20;  // 16 MiB; positions beyond are drawn one by one

  explicit FingerprintKeys(std::int64_t longest_sequence, std::string_view column = "input_ids");

  /// The keys of another column, with the same table.
  FingerprintKeys of_column(std::string_view column) const;

  /// Of a run of one record's values, the first at `first_position`.
  Fingerprint of(SequenceId record, std::int64_t first_position, std::span<const std::uint16_t> values) const;
  Fingerprint of(SequenceId record, std::int64_t first_position, std::span<const std::uint32_t> values) const;

  /// The same of `count` stored values of any type but f16.
  Fingerprint of(SequenceId record, std::int64_t first_position, ValueType type, const std::byte* values,
                 std::int64_t count) const;
  Fingerprint of_text(SequenceId record, std::string_view text) const;
  /// Of values that belong to one token each, `places[i]` of the record: that is the position that they count with.
  Fingerprint of_placed(SequenceId record, std::span<const std::int64_t> places, ValueType type, const std::byte* values) const;

 private:
  struct Key {
    std::uint64_t low, high;
  };
  /// Of the positions, each lane on its own.
  struct Table {
    std::vector<std::uint64_t> low, high;
  };
  template <class Value>
  Fingerprint sum(SequenceId record, std::int64_t first_position, std::span<const Value> values) const;

  Key column_{};
  std::shared_ptr<const Table> table_;
};

/// The keys of a dataset's ids and of each of its columns.
struct DatasetKeys {
  DatasetKeys(std::int64_t longest_sequence, std::span<const Column> all) : ids(longest_sequence) {
    for (const Column& column : all) columns.push_back(ids.of_column(column.name));
  }

  FingerprintKeys ids;
  std::vector<FingerprintKeys> columns;
};

}  // namespace shardpack
