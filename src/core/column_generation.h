// The linear relaxation of packing, solved over all strategies without listing them (Gilmore and Gomory 1961): a linear program
// on the strategies found so far gives each length a price, and pricing finds strategies worth more than the row that they cost.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "core/bounded_pricing.h"
#include "core/covering_program.h"
#include "core/strategy_pricing.h"
#include "shardpack/certificate.h"
#include "shardpack/length_histogram.h"
#include "shardpack/types.h"

namespace shardpack {

/// Items by length. Lengths are in units, the greatest that divides them all: packing is the same, and tables are shorter.
struct PackingProblem {
  std::vector<Length> lengths;      ///< units, ascending, at least one
  std::vector<std::int64_t> items;  ///< one a length, above 0
  Length slots_a_unit = 1;
  Length row_units = 0;           ///< rounded down
  std::int32_t max_segments = 0;  ///< 0 = no limit

  /// \param histogram  lengths 1..row_tokens, not empty
  PackingProblem(const LengthHistogram& histogram, Length row_tokens, std::int32_t max_segments);

  std::int64_t layers() const;  ///< numbers of segments that pricing tells apart; 1 where no limit bites
  std::int64_t table() const;   ///< entries that pricing computes: about its nanoseconds. Must stay below 2^63
};

/// Not thread-safe; deterministic.
class ColumnGeneration {
 public:
  using Strategy = CoveringProgram::Column;  ///< indices of lengths, equal ones side by side

  /// \param costs  a guess of what an item of each length costs in rows. It only guides the search.
  /// `problem` must outlive this.
  ColumnGeneration(const PackingProblem& problem, std::vector<double> costs);

  /// Makes strategies known. Every length must be in one before the first solve().
  void add(std::vector<Strategy> strategies);

  struct Relaxation {
    double rows = 0;   ///< with the strategies known
    double bound = 0;  ///< of every packing, whatever the strategies (up to rounding errors of the prices); at most `rows`
  };
  /// For all items: until both, rounded up, are the same, or `max_work` is spent.
  Relaxation solve_all(std::int64_t max_work, const std::stop_token& stop);

  /// For `left` items of each length, and only with strategies that no length is in more often than there are items left of it:
  /// a tighter bound for few items. Each length that is left must be in one that is known already. Ends also when the bound,
  /// rounded up, reaches `enough`. \return zeros when there are too many items left for that
  Relaxation solve_rest(std::span<const std::int64_t> left, std::int64_t enough, const std::stop_token& stop);

  const std::vector<Strategy>& strategies() const { return strategies_; }
  std::vector<double> rows() const;  ///< of each strategy, in the last solution

  /// Forgets strategies that cost over `loss` rows more than they are worth, at the last prices.
  void forget(double loss);

  /// Proves the bound of the last solve_all() in whole numbers, or one that rounding errors left a little below it.
  Certificate certify() const;

  /// Effort so far, in entries of pricing tables and numbers touched by the simplex method: about 1 ns each.
  std::int64_t work() const { return work_; }

 private:
  void set_demand(std::span<const std::int64_t> items);
  double solve_program();
  std::vector<Strategy> search_at(std::span<const double> prices, double least_worth, Relaxation& relaxation);

  const PackingProblem& problem_;
  CoveringProgram program_;
  StrategyPricing<double> pricing_;
  BoundedPricing bounded_;
  std::vector<Strategy> strategies_;
  std::vector<double> guide_;  // prices that gave the best bound so far; a guess at first
  double unit_ = 1;            // items that one of the program's demand stands for
  std::int64_t work_ = 0;
};

/// `rows` without what rounding errors may have added, rounded up.
std::int64_t rounded_up(double rows);

}  // namespace shardpack
