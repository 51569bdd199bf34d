// Non-negative least squares over columns that are never listed: they are priced on demand.
//   minimise  sum over rows r of (weight_r * ((A x)_r - target_r))^2   subject to x >= 0
// Lawson and Hanson's active set method (1974) on the few columns in use, so that the matrix may have billions of columns.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <stop_token>
#include <vector>

namespace shardpack {

struct NnlsEntry {
  std::int32_t row = 0;
  double value = 0;

  friend bool operator==(const NnlsEntry&, const NnlsEntry&) = default;
};

/// One sparse column of A: ascending rows, no zeros, at least one entry.
using NnlsColumn = std::vector<NnlsEntry>;

/// Finds columns worth using. `gradient` holds weight_r^2 * (target_r - (A x)_r) for every row; a column's worth is its inner
/// product with it. Returns up to `limit` distinct columns of positive worth, best first; the larger, the fewer rounds are
/// needed. An empty result says that there are none worth anything, so that x is optimal. Must be deterministic.
using PriceColumns = std::function<std::vector<NnlsColumn>(std::span<const double> gradient, std::size_t limit)>;

struct NnlsProblem {
  std::vector<double> target;  ///< one a row
  std::vector<double> weight;  ///< one a row, above 0
};

struct NnlsOptions {
  /// Worth below this share of the column's weighted norm times the target's is taken for rounding error.
  double tolerance = 1e-13;
  std::int32_t columns_a_round = 32;  ///< asked of the pricing
  /// Columns in use at once; memory is 8 bytes times its square. When reached, the solution so far is returned.
  std::int32_t max_columns = 4096;
  /// Effort: entries of the factor of the columns in use that are touched (about 1 ns each), and for each round `round_work`,
  /// which is what its pricing costs. When reached, as above.
  std::int64_t max_work = std::numeric_limits<std::int64_t>::max();
  std::int64_t round_work = 0;
};

struct NnlsSolution {
  std::vector<NnlsColumn> columns;  ///< those in use
  std::vector<double> x;            ///< one a column, above 0
  std::vector<double> residual;     ///< target - A x, one a row
  bool optimal = false;             ///< false when max_columns or max_work came first
};

/// Deterministic and single-threaded: sums run in a fixed order. \throws Error{cancelled} on stop.
NnlsSolution solve_nnls(const NnlsProblem& problem, const PriceColumns& price, const NnlsOptions& options, std::stop_token stop);

}  // namespace shardpack
