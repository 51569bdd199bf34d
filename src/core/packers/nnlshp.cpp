// Non-negative least squares histogram packing (Krell et al. 2021): how often to use each strategy so that places match items, in
// the least squares sense; rounded, and mended to an exact cover.
//
// As published, a strategy fills a row exactly with at most three lengths, and all of them are listed. Here padding is free, so a
// strategy is anything that fits (at long rows hardly any fills one exactly), and strategies are priced on demand. Many solutions
// then match all items; among them one further equation of small weight prefers those of few rows: rows = the lower bound.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "core/coarse_lengths.h"
#include "core/cover_repair.h"
#include "core/nnls.h"
#include "core/packers/packer_list.h"
#include "core/strategy_pricing.h"
#include "shardpack/bounds.h"

namespace shardpack {
namespace {

constexpr std::int32_t kPublishedDepth = 3;
/// Weight of the equation of rows. Against 0.02, 0.1 leaves 1,100 rows more on the Wikipedia histogram (of 8.1 million).
constexpr double kRowsWeight = 0.02;
/// How strongly to lean towards full rows: see price().
constexpr double kLeaning = 3;
/// Strategies of a round that have no length in common change each other's worth the least.
constexpr int kUses = 1;
/// Entries of the pricing table, 8 bytes each.
constexpr std::int64_t kMaxTable = std::int64_t{1} << 24;
/// Effort, in entries of that table and of the solver's factor that are computed: some 20 s. A problem for which that is not even
/// enough for a few rounds of pricing is solved in coarse lengths, in rows of so many units and at most so deep, which never is.
constexpr std::int64_t kMaxWork = 20'000'000'000, kLeastRounds = 20;
constexpr std::int64_t kCoarseUnits = 1024;
constexpr std::int32_t kCoarseDepth = 64;

class LeastSquares {
 public:
  LeastSquares(const LengthHistogram& items, const PackerOptions& options, std::int32_t depth)
      : row_tokens_(options.row_tokens),
        depth_(depth),
        lengths_(distinct_lengths(items)),
        bound_(lower_bound(items, options.row_tokens, depth)),
        pricing_(lengths_, options.row_tokens, depth) {
    for (const LengthCount& entry : items.counts()) {
      const double paper = entry.length <= 8 ? 0.09 : 1;  // short sequences fill what is left
      const double tokens = static_cast<double>(entry.length) / items.mean_length();
      problem_.target.push_back(static_cast<double>(entry.count));
      problem_.weight.push_back(options.nnls_weights == NnlsWeights::paper ? paper : tokens);
      best_worth_ = std::max(best_worth_, problem_.target.back() * depth);
    }
    problem_.target.push_back(static_cast<double>(bound_.rows));
    problem_.weight.push_back(kRowsWeight);
  }

  bool is_too_large() const { return round_work() > kMaxWork / kLeastRounds; }
  std::int64_t bound() const { return bound_.rows; }

  NnlsSolution solve(const std::stop_token& stop) {
    NnlsOptions options;
    options.max_work = kMaxWork;
    options.round_work = round_work();
    const auto price_columns = [this](std::span<const double> gradient, std::size_t limit) { return price(gradient, limit); };
    return solve_nnls(problem_, price_columns, options, stop);
  }

  /// The plan that uses each strategy floor(x + `up`) times.
  PackingPlan rounded(const NnlsSolution& solution, double up) const {
    PackingPlan plan;
    plan.row_tokens = row_tokens_;
    plan.max_segments = depth_;
    std::vector<Length> strategy;
    for (std::size_t c = 0; c < solution.columns.size(); ++c) {
      strategy.clear();
      for (auto entry = solution.columns[c].rbegin() + 1; entry != solution.columns[c].rend(); ++entry) {
        strategy.insert(strategy.end(), static_cast<std::size_t>(entry->value), lengths_[static_cast<std::size_t>(entry->row)]);
      }
      plan.add(strategy, static_cast<std::int64_t>(std::floor(solution.x[c] + up)));
    }
    return plan;
  }

 private:
  static std::vector<Length> distinct_lengths(const LengthHistogram& items) {
    std::vector<Length> lengths;
    for (const LengthCount& entry : items.counts()) lengths.push_back(static_cast<Length>(entry.length));
    return lengths;
  }

  /// Entries of the pricing table that a round computes, but for the first layer, which is cheap.
  std::int64_t round_work() const { return std::ssize(lengths_) * row_tokens_ * std::max(depth_ - 2, 1); }

  /// What a place of this length costs, in rows, as the lower bound has it.
  double share_of_row(std::size_t i) const {
    return bound_.kind == BoundKind::cardinality ? 1.0 / depth_ : static_cast<double>(lengths_[i]) / row_tokens_;
  }

  /// Are all equations met so well that rounding would undo what is left to gain?
  bool is_fine(std::span<const double> gradient) const {
    for (std::size_t r = 0; r < gradient.size(); ++r) {
      const double off = std::abs(gradient[r]) / (problem_.weight[r] * problem_.weight[r]);
      if (off > 0.25) return false;
    }
    return true;
  }

  std::vector<NnlsColumn> price(std::span<const double> gradient, std::size_t limit) {
    if (is_fine(gradient)) return {};
    const std::span<const double> value = gradient.first(lengths_.size());
    const double above = std::max(-gradient.back(), 0.0);  // what the row itself costs once there are more than the bound
    if (leaning_) {
      // While much is to be gained, many strategies are worth about the same, and those that waste no room last. So lean to
      // them: a quarter of the rounds is enough then. The end goes without, which proves that nothing is worth more.
      std::vector<double> leant(value.begin(), value.end());
      for (std::size_t i = 0; i < leant.size(); ++i) leant[i] += kLeaning * best_worth_ * share_of_row(i);
      best_worth_ = 0;
      std::vector<NnlsColumn> columns;
      for (const auto& strategy : pricing_.best(leant, above, limit, kUses).strategies) {
        double worth = gradient.back();
        for (const std::int32_t part : strategy.parts) worth += value[static_cast<std::size_t>(part)];
        if (worth > 0) columns.push_back(column(strategy.parts));
        best_worth_ = std::max(best_worth_, worth);
      }
      leaning_ = best_worth_ >= 1;  // one sequence
      if (leaning_) return columns;
    }
    std::vector<NnlsColumn> columns;
    for (const auto& strategy : pricing_.best(value, above, limit, kUses).strategies) columns.push_back(column(strategy.parts));
    return columns;
  }

  NnlsColumn column(const std::vector<std::int32_t>& descending_parts) const {
    NnlsColumn result;
    for (auto part = descending_parts.rbegin(); part != descending_parts.rend(); ++part) {
      if (!result.empty() && result.back().row == *part) {
        result.back().value += 1;
      } else {
        result.push_back({*part, 1});
      }
    }
    result.push_back({static_cast<std::int32_t>(lengths_.size()), 1});  // the equation of rows
    return result;
  }

  Length row_tokens_;
  std::int32_t depth_;
  std::vector<Length> lengths_;
  LowerBound bound_;
  StrategyPricing<double> pricing_;
  NnlsProblem problem_;    // an equation a length, then that of rows
  double best_worth_ = 0;  // of a strategy in the last round; before the first, of one whose every length is the commonest
  bool leaning_ = true;
};

PackingPlan plan_at_depth(const LengthHistogram& items, const PackerOptions& options, std::int32_t depth,
                          const std::stop_token& stop);

/// Solves the problem with lengths rounded up to units of a row's 1,024th part.
PackingPlan plan_coarsely(const LengthHistogram& items, const PackerOptions& options, std::int32_t depth,
                          const std::stop_token& stop) {
  const auto granularity = static_cast<std::int32_t>(ceil_div(options.row_tokens, kCoarseUnits));
  const CoarseLengths coarse(items, options.row_tokens, granularity);
  PackerOptions coarse_options = options;
  coarse_options.row_tokens = coarse.row_units();
  const std::int32_t coarse_depth = std::min(depth, kCoarseDepth);
  return coarse.expanded(plan_at_depth(coarse.rounded_up(), coarse_options, coarse_depth, stop));
}

PackingPlan plan_at_depth(const LengthHistogram& items, const PackerOptions& options, std::int32_t depth,
                          const std::stop_token& stop) {
  LeastSquares least_squares(items, options, depth);
  // Where sequences are few, rounding decides. Three ways are tried: nearest, down, and all the way down, which leaves everything
  // to best fit, so that no plan has more rows than that of `lpfhp`.
  PackingPlan best = least_squares.rounded({}, 0);
  cover_repair(best, items);
  // With as few rows as the bound says it meets all equations, that of rows included: it is a least squares solution.
  if (best.rows() == least_squares.bound()) return best;
  if (least_squares.is_too_large()) {
    PackingPlan coarse = plan_coarsely(items, options, depth, stop);
    return coarse.rows() < best.rows() ? coarse : best;
  }

  const NnlsSolution solution = least_squares.solve(stop);
  for (const double up : {0.0, 0.5}) {
    PackingPlan plan = least_squares.rounded(solution, up);
    cover_repair(plan, items);
    if (plan.rows() <= best.rows()) best = std::move(plan);
  }
  return best;
}

}  // namespace

PackingPlan plan_nnlshp(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop) {
  const std::vector<LengthCount> counts = items.counts();
  if (counts.empty()) return {};
  const auto most_segments = static_cast<std::int32_t>(options.row_tokens / counts.front().length);  // that fit a row
  const std::int64_t affordable = std::max<std::int64_t>(kMaxTable / options.row_tokens, kPublishedDepth);
  const std::int32_t wanted = std::min(options.max_segments == 0 ? kPublishedDepth : options.max_segments, most_segments);
  const auto depth = static_cast<std::int32_t>(std::min<std::int64_t>(wanted, affordable));

  PackingPlan plan = plan_at_depth(items, options, depth, stop);
  const std::int64_t bound = lower_bound(items, options.row_tokens, depth).rows;
  if (depth > kPublishedDepth && plan.rows() > bound) {  // least squares does not minimise rows: more depth can take more of them
    PackingPlan published = plan_at_depth(items, options, kPublishedDepth, stop);
    if (published.rows() < plan.rows()) plan = std::move(published);
  }
  if (depth < wanted) {
    PackingPlan best_fit = plan_lpfhp(items, options, stop);
    if (best_fit.rows() < plan.rows()) plan = std::move(best_fit);
  }
  return plan;
}

}  // namespace shardpack
