// Why no plan can have fewer rows: a price for each length, such that no row can hold more than a given worth. Anyone can check
// it with whole numbers alone.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "shardpack/error.h"
#include "shardpack/length_histogram.h"
#include "shardpack/types.h"

namespace shardpack {

struct PackingPlan;

/// Prices in units of 1 / scale of a row. When no strategy is worth more than `scale`, any plan needs at least
/// ceil(sum over items of price / scale) rows (linear programming duality). Lengths that are not listed have price 0.
struct Certificate {
  static constexpr std::int64_t kMaxScale = std::int64_t{1} << 53;  ///< so that any JSON reader keeps it exact

  std::int64_t scale = 0;  ///< 0 = there is none
  /// That no strategy is worth more holds, and is checked, for lengths floor(length / granularity) in rows of
  /// floor(row_tokens / granularity): what fits a row fits the coarse one, and a long row is checked in less time.
  std::int32_t granularity = 1;
  std::vector<std::pair<Length, std::int64_t>> prices;  ///< (slots, price above 0), longest first

  friend bool operator==(const Certificate&, const Certificate&) = default;
};

/// The bound that the prices give for `items`, if they hold: ceil(sum / scale). 0 without a certificate. Sums in 128 bits.
std::int64_t bound_of(const Certificate& certificate, const LengthHistogram& items);

/// Does the certificate of `plan` hold, and does it give the bound that the plan claims (when that is of kind lp)? Solves the
/// knapsack problem exactly, in whole numbers, with the plan's limit of segments. Shares no code with the solver.
/// Empty result = yes, or there is no certificate and none is claimed.
/// Time: O(row_tokens / granularity * prices * max_segments), without a limit of segments O(row_tokens / granularity * prices).
std::vector<Issue> check_certificate(const PackingPlan& plan, const LengthHistogram& items);

}  // namespace shardpack
