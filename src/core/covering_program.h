// The linear program behind column generation: how much of each strategy covers every length at least as often as demanded, in
// the fewest rows? This is all that the rest of the code knows of the simplex solver (COIN-OR Clp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

class ClpSimplex;

namespace shardpack {

/// minimise sum x subject to A x >= demand, x >= 0. Starts without columns; prices are those of the last solve().
class CoveringProgram {
 public:
  /// Indices of lengths, equal ones side by side; one that stands k times counts k places.
  using Column = std::vector<std::int32_t>;

  explicit CoveringProgram(std::int64_t lengths);
  ~CoveringProgram();

  void add(std::span<const Column> columns);
  void allow(std::int64_t column, bool allowed);    ///< x is 0 where it is not; allowed at first
  void set_demand(std::span<const double> demand);  ///< one a length, at least 0
  /// The minimum. Every length demanded is in some column; Error{internal} otherwise. Starts from the last solution.
  double solve();
  std::int64_t places() const;                                   ///< entries of A that are not 0
  std::int64_t iterations() const;                               ///< of the simplex method in the last solve()
  std::span<const double> x() const;                             ///< one a column
  const std::vector<double>& prices() const { return prices_; }  ///< one a length, in rows, at least 0: what one more place costs
  void erase(std::span<const std::int32_t> columns);             ///< ascending

 private:
  std::unique_ptr<ClpSimplex> clp_;
  std::vector<double> prices_;
};

}  // namespace shardpack
