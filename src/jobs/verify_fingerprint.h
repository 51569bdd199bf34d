// The fingerprint of packed tokens, summed again from its definition (docs/formats.md). Shares the generator of random numbers
// with the scan, and nothing else: a fault in either sum shows as a difference.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "shardpack/fingerprint.h"
#include "shardpack/types.h"

namespace shardpack {

/// Immutable after construction, so thread-safe. Holds 16 bytes for each of the first positions of a record, at most 16 MiB.
class FingerprintRecount {
 public:
  /// \param longest_record  no record has more tokens; sizes the table
  FingerprintRecount(std::int64_t longest_record, std::string_view column);
  /// The same for another column; the tables are shared.
  FingerprintRecount of_column(std::string_view column) const;

  /// Of a run of one record's values, the first at `first_position`. Value is std::uint8_t, std::uint16_t, std::uint32_t,
  /// std::int32_t, std::int64_t, float or double.
  template <class Value>
  Fingerprint of(SequenceId record, std::int64_t first_position, std::span<const Value> values) const;
  /// Of values that belong to one token each of the record: `places[i]`.
  template <class Value>
  Fingerprint of_placed(SequenceId record, std::span<const std::int64_t> places, std::span<const Value> values) const {
    Fingerprint total;
    for (std::size_t i = 0; i < places.size(); ++i) total += of(record, places[i], values.subspan(i, 1));
    return total;
  }
  /// Of a whole text.
  Fingerprint of_text(SequenceId record, std::string_view text) const;

 private:
  struct PositionKeys {
    std::vector<std::uint64_t> low, high;  // of the two lanes
  };
  std::shared_ptr<const PositionKeys> positions_;
  std::uint64_t column_low_, column_high_;
};

}  // namespace shardpack
