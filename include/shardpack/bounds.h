// Lower bounds on the rows that any packing of a histogram needs: what a plan is measured against.
#pragma once

#include <cstdint>
#include <string_view>

#include "shardpack/length_histogram.h"
#include "shardpack/types.h"

namespace shardpack {

enum class BoundKind : std::uint8_t { l1, l2, cardinality, lp };
std::string_view name(BoundKind kind);  ///< as in plan.json

struct LowerBound {
  std::int64_t rows = 0;
  BoundKind kind = BoundKind::l1;
};

/// The best of: L1 = ceil(slots / row_tokens); L2 of Martello and Toth (1990), best threshold, by prefix sums in O(distinct
/// lengths) to O(row_tokens); cardinality = ceil(items / max_segments). On a tie the earlier one in that list is named.
/// Lengths 1..row_tokens (0 is ignored); max_segments 0 = no limit. Sums in 128 bits. Pure.
LowerBound lower_bound(const LengthHistogram& items, Length row_tokens, std::int32_t max_segments);

}  // namespace shardpack
