// The fingerprint of packed tokens, summed again from its definition (docs/formats.md). Shares the generator of random numbers
// with the scan, and nothing else: a fault in either sum shows as a difference.
#pragma once

#include <cstdint>
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

  /// Of a run of one record's ids, the first at `first_position`. Id is std::uint16_t or std::uint32_t.
  template <class Id>
  Fingerprint of(SequenceId record, std::int64_t first_position, std::span<const Id> ids) const;

 private:
  std::vector<std::uint64_t> low_, high_;  // position keys of the two lanes
  std::uint64_t column_low_, column_high_;
};

}  // namespace shardpack
