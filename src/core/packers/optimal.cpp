// The least rows there can be: column generation gives a bound, and diving whole rows that meet it, or nearly so.
//
// What the relaxation uses a whole number of times is taken. Of the few hundred rows that are left, those that it wants most are
// taken and the rest is solved again, now only with strategies that there are items for, until nothing is left. Where a choice
// has cost a row, others are tried (limited discrepancy search, Harvey and Ginsberg 1995).
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "core/coarse_lengths.h"
#include "core/column_generation.h"
#include "core/packers/packer_list.h"
#include "shardpack/bounds.h"

namespace shardpack {
namespace {

using Strategy = ColumnGeneration::Strategy;

/// Work for the bound, and for rows that meet it: see ColumnGeneration::work().
constexpr std::int64_t kBoundWork = 20'000'000'000;
constexpr std::int64_t kSearchWork = 10'000'000'000;
constexpr std::int64_t kEffortFactor = 20;
/// Larger problems are solved in coarse lengths: entries of the pricing table, those that it holds, and lengths (each is a row of
/// the linear program).
constexpr std::int64_t kMaxTable = 200'000'000;
constexpr std::int64_t kMaxHeld = 4'000'000;
constexpr std::int64_t kMaxLengths = 10'000;
/// Table entries of the coarse problem that a small one of more entries begins with.
constexpr std::int64_t kFirstTable = 1'000'000;
/// Coarse slots in a row, at most. More waste less of each item, and take longer.
constexpr std::int64_t kCoarseUnits = 2048;
/// Strategies that are worth so much less than a row are of no use after the relaxation.
constexpr double kUselessLoss = 0.02;
/// What the relaxation wants for more than this share of a row is taken together with what it wants most.
constexpr double kSurelyWanted = 0.8;
constexpr std::size_t kMaxChoices = 20;
constexpr int kMaxDiscrepancies = 30;
/// Whole numbers as the simplex method gives them.
constexpr double kWhole = 1e-6;

/// Rows chosen so far, and the items without a place.
class PartialPlan {
 public:
  explicit PartialPlan(std::vector<std::int64_t> items) : left_(std::move(items)) {}

  const std::vector<std::int64_t>& left() const { return left_; }
  std::int64_t rows() const { return rows_; }
  const std::vector<std::pair<Strategy, std::int64_t>>& chosen() const { return chosen_; }
  bool complete() const {
    return std::all_of(left_.begin(), left_.end(), [](std::int64_t items) { return items == 0; });
  }

  /// Adds `rows` rows of a strategy, less the parts for which no items are left. Rows without any are not added.
  void take(Strategy strategy, std::int64_t rows) {
    while (rows > 0 && !strategy.empty()) {
      std::int64_t fitting = rows;
      Strategy possible;  // in at least one row
      for (std::size_t first = 0, last = 0; first < strategy.size(); first = last) {
        while (last < strategy.size() && strategy[last] == strategy[first]) ++last;
        const auto copies = static_cast<std::int64_t>(last - first);
        const std::int64_t items = left_[static_cast<std::size_t>(strategy[first])];
        fitting = std::min(fitting, items / copies);
        possible.insert(possible.end(), static_cast<std::size_t>(std::min(copies, items)), strategy[first]);
      }
      if (fitting == 0) {
        strategy = std::move(possible);
        continue;
      }
      for (const std::int32_t part : strategy) left_[static_cast<std::size_t>(part)] -= fitting;
      chosen_.emplace_back(strategy, fitting);
      rows_ += fitting;
      rows -= fitting;
    }
  }

 private:
  std::vector<std::int64_t> left_;
  std::vector<std::pair<Strategy, std::int64_t>> chosen_;
  std::int64_t rows_ = 0;
};

std::int64_t allowed(std::int64_t work, PlanEffort effort) {
  switch (effort) {
    case PlanEffort::fast:
      return work / kEffortFactor;
    case PlanEffort::normal:
      return work;
    case PlanEffort::thorough:
      return work * kEffortFactor;
  }
  return work;
}

/// What an item of each length costs, in rows, as the simple bounds have it.
std::vector<double> guessed_costs(const PackingProblem& problem, const LowerBound& bound) {
  std::vector<double> costs;
  for (const Length length : problem.lengths) {
    const bool by_count = bound.kind == BoundKind::cardinality;
    costs.push_back(by_count ? 1.0 / problem.max_segments : static_cast<double>(length) / problem.row_units);
  }
  return costs;
}

std::vector<Strategy> strategies_of(const PackingPlan& plan, const PackingProblem& problem) {
  std::vector<Strategy> strategies(static_cast<std::size_t>(plan.strategies()));
  for (std::int64_t s = 0; s < plan.strategies(); ++s) {
    for (const Length length : plan.strategy(s)) {
      const auto at = std::lower_bound(problem.lengths.begin(), problem.lengths.end(), length / problem.slots_a_unit);
      strategies[static_cast<std::size_t>(s)].push_back(static_cast<std::int32_t>(at - problem.lengths.begin()));
    }
  }
  return strategies;
}

class Optimizer {
 public:
  Optimizer(PackingPlan first, const LengthHistogram& items, const PackerOptions& options, const LowerBound& bound,
            const std::stop_token& stop)
      : items_(items),
        options_(options),
        stop_(stop),
        problem_(items, options.row_tokens, options.max_segments),
        relaxation_(problem_, guessed_costs(problem_, bound)),
        best_(std::move(first)),
        best_rows_(best_.rows()),
        bound_(bound.rows) {}

  PackingPlan solve() {
    relaxation_.add(strategies_of(best_, problem_));
    relaxation_.solve_all(allowed(kBoundWork, options_.effort), stop_);
    const Certificate certificate = relaxation_.certify();
    bound_ = std::max(bound_, bound_of(certificate, items_));

    PartialPlan plan(problem_.items);
    take_whole(plan);
    try_best_fit(plan);
    relaxation_.forget(kUselessLoss);
    relaxation_.add(single_lengths());
    work_limit_ = relaxation_.work() + allowed(kSearchWork, options_.effort);
    for (int discrepancies = 0; discrepancies <= kMaxDiscrepancies && !finished(); ++discrepancies) search(plan, discrepancies);

    best_.certificate = certificate;
    return std::move(best_);
  }

 private:
  std::vector<Strategy> single_lengths() const {
    std::vector<Strategy> strategies;
    strategies.reserve(problem_.lengths.size());
    for (std::int32_t i = 0; i < std::ssize(problem_.lengths); ++i) strategies.push_back({i});
    return strategies;
  }

  bool finished() const { return best_rows_ <= bound_ || relaxation_.work() > work_limit_; }

  /// Takes the whole rows of the last solution. \return the strategies that it uses for a part of a row, most wanted first
  std::vector<std::pair<double, Strategy>> take_whole(PartialPlan& plan) {
    std::vector<std::pair<double, Strategy>> parts;
    const std::vector<double> rows = relaxation_.rows();
    for (std::size_t s = 0; s < rows.size(); ++s) {
      const double whole = std::floor(rows[s] + kWhole);
      if (whole > 0) plan.take(relaxation_.strategies()[s], static_cast<std::int64_t>(whole));
      if (rows[s] - whole > kWhole) parts.emplace_back(rows[s] - whole, relaxation_.strategies()[s]);
    }
    std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    return parts;
  }

  /// Keeps the plan with the rest packed by best fit, if that is better than the best one so far.
  void try_best_fit(const PartialPlan& plan) {
    LengthHistogram rest;
    for (std::size_t i = 0; i < problem_.lengths.size(); ++i) {
      if (plan.left()[i] > 0) rest.add(std::int64_t{problem_.lengths[i]} * problem_.slots_a_unit, plan.left()[i]);
    }
    PackingPlan whole = plan_lpfhp(rest, options_, stop_);
    if (plan.rows() + whole.rows() >= best_rows_) return;
    for (const auto& [strategy, rows] : plan.chosen()) {
      std::vector<Length> lengths;
      for (const std::int32_t part : strategy) {
        lengths.push_back(problem_.lengths[static_cast<std::size_t>(part)] * problem_.slots_a_unit);
      }
      std::sort(lengths.rbegin(), lengths.rend());
      whole.add(lengths, rows);
    }
    best_ = std::move(whole);
    best_rows_ = best_.rows();
  }

  /// Dives from `plan` to complete ones, choosing otherwise than it would at first by `discrepancies` places in all.
  void search(PartialPlan plan, int discrepancies) {
    while (!plan.complete() && !finished()) {
      const auto rest = relaxation_.solve_rest(plan.left(), best_rows_ - plan.rows(), stop_);
      if (rest.rows == 0 || plan.rows() + rounded_up(rest.bound) >= best_rows_) return;
      std::vector<std::pair<double, Strategy>> choices = take_whole(plan);
      try_best_fit(plan);
      if (choices.empty()) return;

      const int others = std::min<int>(discrepancies, static_cast<int>(std::min(choices.size(), kMaxChoices)) - 1);
      for (int other = 1; other <= others && !finished(); ++other) {
        PartialPlan changed = plan;
        changed.take(choices[static_cast<std::size_t>(other)].second, 1);
        search(std::move(changed), discrepancies - other);
      }
      plan.take(choices.front().second, 1);
      for (std::size_t c = 1; c < choices.size() && choices[c].first > kSurelyWanted; ++c) plan.take(choices[c].second, 1);
      try_best_fit(plan);
    }
  }

  const LengthHistogram& items_;
  PackerOptions options_;
  std::stop_token stop_;
  PackingProblem problem_;
  ColumnGeneration relaxation_;
  PackingPlan best_;
  std::int64_t best_rows_, bound_;
  std::int64_t work_limit_ = 0;
};

bool is_small(const PackingProblem& problem) {
  return std::ssize(problem.lengths) <= kMaxLengths && problem.row_units <= kMaxHeld / problem.layers() &&
         problem.table() <= kMaxTable;
}

/// Slots a unit, so that rows and lengths of that many have at most `largest_table` entries.
std::int32_t suitable_granularity(const PackerOptions& options, std::int64_t largest_table) {
  std::int64_t units = std::min<std::int64_t>(kCoarseUnits, options.row_tokens);
  while (units > 1 && units * units * std::clamp<std::int64_t>(options.max_segments, 1, units) > largest_table) --units;
  return static_cast<std::int32_t>(ceil_div(options.row_tokens, units));
}

/// The bound of coarse lengths, rounded down, as a certificate of the real ones.
Certificate coarse_certificate(const CoarseLengths& coarse, const LengthHistogram& items, std::int32_t granularity,
                               const PackerOptions& options, const std::stop_token& stop) {
  const LengthHistogram rounded = coarse.rounded_down();
  if (rounded.sequences() == 0) return {};
  PackerOptions coarse_options = options;
  coarse_options.row_tokens = coarse.row_units();
  const PackingProblem problem(rounded, coarse.row_units(), options.max_segments);
  const LowerBound bound = lower_bound(rounded, coarse.row_units(), options.max_segments);
  ColumnGeneration relaxation(problem, guessed_costs(problem, bound));
  relaxation.add(strategies_of(plan_lpfhp(rounded, coarse_options, stop), problem));
  relaxation.solve_all(allowed(kBoundWork, options.effort), stop);
  const Certificate units = relaxation.certify();

  Certificate certificate{units.scale, units.granularity * granularity, {}};
  const std::vector<LengthCount> counts = items.counts();
  auto price = units.prices.begin();
  for (auto entry = counts.rbegin(); entry != counts.rend(); ++entry) {
    const auto length = static_cast<Length>(entry->length);
    while (price != units.prices.end() && price->first > length / granularity) ++price;
    if (price == units.prices.end()) break;
    if (price->first == length / granularity) certificate.prices.emplace_back(length, price->second);
  }
  return certificate;
}

}  // namespace

PackingPlan optimize_coarsely(PackingPlan first, const LengthHistogram& items, const PackerOptions& options,
                              std::int64_t largest_table, const std::stop_token& stop) {
  const std::int32_t granularity = suitable_granularity(options, largest_table);
  const CoarseLengths coarse(items, options.row_tokens, granularity);
  first.certificate = coarse_certificate(coarse, items, granularity, options, stop);
  if (first.rows() == bound_of(first.certificate, items)) return first;

  PackerOptions coarse_options = options;
  coarse_options.row_tokens = coarse.row_units();
  const LengthHistogram rounded = coarse.rounded_up();
  const LowerBound bound = lower_bound(rounded, coarse.row_units(), options.max_segments);
  PackingPlan packed = plan_lpfhp(rounded, coarse_options, stop);
  packed = Optimizer(std::move(packed), rounded, coarse_options, bound, stop).solve();
  PackingPlan plan = coarse.expanded(packed);
  if (plan.rows() >= first.rows()) return first;
  plan.certificate = std::move(first.certificate);
  return plan;
}

PackingPlan optimize(PackingPlan first, const LengthHistogram& items, const PackerOptions& options, const std::stop_token& stop) {
  const LowerBound bound = lower_bound(items, options.row_tokens, options.max_segments);
  if (first.rows() == bound.rows) return first;
  const PackingProblem problem(items, options.row_tokens, options.max_segments);
  if (is_small(problem)) {
    // Strategies of coarse lengths, found in a moment, are nearly the right ones: most of the rounds with all lengths are saved.
    if (problem.table() > kFirstTable) first = optimize_coarsely(std::move(first), items, options, kFirstTable, stop);
    if (first.rows() == bound.rows) return first;
    return Optimizer(std::move(first), items, options, bound, stop).solve();
  }
  return optimize_coarsely(std::move(first), items, options, kMaxTable, stop);
}

PackingPlan plan_optimal(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop) {
  return optimize(plan_lpfhp(items, options, stop), items, options, stop);
}

}  // namespace shardpack
