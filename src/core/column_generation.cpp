#include "core/column_generation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "shardpack/error.h"

namespace shardpack {
namespace {

/// A strategy of worth 1 + this is no better than one of worth 1: the tolerance of the simplex method.
constexpr double kTolerance = 1e-9;
/// Strategies taken in a round, and in how many of them a length may be: few rounds against a small program.
constexpr std::size_t kStrategiesARound = 200;
constexpr int kUsesARound = 30;
/// How far the prices that strategies are searched at are drawn towards the guide: see solve_all().
constexpr double kDraw = 0.3;
/// Entries, and bits, of the table of bounded pricing.
constexpr std::int64_t kMaxBoundedTable = std::int64_t{1} << 28;
/// Whole-number prices are in units of 1 / kScale of a row, which is a multiple of all small numbers: most prices have small
/// denominators and are exact so. Below 2^50; worths stay below 2^53.
constexpr std::int64_t kScale = std::int64_t{1024} * 243 * 25 * 49 * 11 * 13 * 17 * 19 * 23;
static_assert(kScale < std::int64_t{1} << 50);

/// An iteration of the simplex method solves with the basis, and goes over the matrix.
constexpr std::int64_t kWorkALength = 16;
constexpr std::int64_t kWorkAPlace = 2;

bool is_proper(const ColumnGeneration::Strategy& strategy, std::span<const std::int64_t> left) {
  std::int64_t copies = 0;
  for (std::size_t i = 0; i < strategy.size(); ++i) {
    copies = i > 0 && strategy[i] == strategy[i - 1] ? copies + 1 : 1;
    if (copies > left[static_cast<std::size_t>(strategy[i])]) return false;
  }
  return true;
}

double worth_of(const ColumnGeneration::Strategy& strategy, std::span<const double> prices) {
  double worth = 0;
  for (const std::int32_t part : strategy) worth += prices[static_cast<std::size_t>(part)];
  return worth;
}

void check_stop(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Error(ErrorCode::cancelled, "planning was stopped");
}

}  // namespace

std::int64_t rounded_up(double rows) { return static_cast<std::int64_t>(std::ceil(rows - 1e-6 - 1e-10 * rows)); }

PackingProblem::PackingProblem(const LengthHistogram& histogram, Length row_tokens, std::int32_t segments)
    : max_segments(segments) {
  const std::vector<LengthCount> counts = histogram.counts();
  std::int64_t divisor = 0;
  for (const LengthCount& entry : counts) divisor = std::gcd(divisor, entry.length);
  slots_a_unit = static_cast<Length>(divisor);
  row_units = row_tokens / slots_a_unit;
  for (const LengthCount& entry : counts) {
    lengths.push_back(static_cast<Length>(entry.length / divisor));
    items.push_back(entry.count);
  }
}

std::int64_t PackingProblem::layers() const {
  const Length fitting = row_units / lengths.front();
  return max_segments > 0 && max_segments < fitting ? max_segments : 1;
}

std::int64_t PackingProblem::table() const { return std::ssize(lengths) * row_units * layers(); }

ColumnGeneration::ColumnGeneration(const PackingProblem& problem, std::vector<double> costs)
    : problem_(problem),
      program_(std::ssize(problem.lengths)),
      pricing_(problem.lengths, problem.row_units, problem.max_segments),
      bounded_(problem.lengths, problem.row_units, problem.max_segments),
      guide_(std::move(costs)) {}

void ColumnGeneration::add(std::vector<Strategy> strategies) {
  program_.add(strategies);
  for (Strategy& strategy : strategies) strategies_.push_back(std::move(strategy));
}

ColumnGeneration::Relaxation ColumnGeneration::solve_all(std::int64_t max_work, const std::stop_token& stop) {
  set_demand(problem_.items);
  for (std::size_t s = 0; s < strategies_.size(); ++s) program_.allow(static_cast<std::int64_t>(s), true);
  Relaxation relaxation;
  const std::int64_t work_before = work_;
  for (;;) {
    check_stop(stop);
    relaxation.rows = solve_program();
    // Prices jump about from round to round. Drawn towards the best ones so far they find strategies that last: a quarter of
    // the rounds is enough (Wentges 1997). When these find none that the program wants, its own prices decide.
    std::vector<double> drawn = program_.prices();
    for (std::size_t i = 0; i < drawn.size(); ++i) drawn[i] = (drawn[i] + kDraw * guide_[i]) / (1 + kDraw);
    std::vector<Strategy> found = search_at(drawn, 1 / (1 + kDraw), relaxation);
    if (found.empty()) found = search_at(program_.prices(), 1, relaxation);
    if (found.empty() || rounded_up(relaxation.bound) >= rounded_up(relaxation.rows) || work_ - work_before > max_work) break;
    add(std::move(found));
  }
  return relaxation;
}

/// Strategies that the program wants, among those worth more than `least_worth` at `prices`; the bound and the guide, when these
/// prices make a better one.
std::vector<ColumnGeneration::Strategy> ColumnGeneration::search_at(std::span<const double> prices, double least_worth,
                                                                    Relaxation& relaxation) {
  auto priced = pricing_.best(prices, least_worth, kStrategiesARound, kUsesARound);
  work_ += problem_.table();
  // Divided by the most that a strategy is worth they are prices that no strategy exceeds, and so a bound (Farley 1990).
  const double most = std::max(priced.most, 1.0);
  double value = 0;
  for (std::size_t i = 0; i < prices.size(); ++i) value += prices[i] * static_cast<double>(problem_.items[i]);
  if (value / most > relaxation.bound) {
    relaxation.bound = value / most;
    for (std::size_t i = 0; i < prices.size(); ++i) guide_[i] = prices[i] / most;
  }
  std::vector<Strategy> wanted;
  for (auto& strategy : priced.strategies) {
    if (worth_of(strategy.parts, program_.prices()) > 1 + kTolerance) wanted.push_back(std::move(strategy.parts));
  }
  return wanted;
}

ColumnGeneration::Relaxation ColumnGeneration::solve_rest(std::span<const std::int64_t> left, std::int64_t enough,
                                                          const std::stop_token& stop) {
  Relaxation relaxation;
  if (bounded_.table(left) > kMaxBoundedTable) return relaxation;
  set_demand(left);
  for (std::size_t s = 0; s < strategies_.size(); ++s) {
    program_.allow(static_cast<std::int64_t>(s), is_proper(strategies_[s], left));
  }
  for (;;) {
    check_stop(stop);
    relaxation.rows = solve_program();
    work_ += bounded_.table(left);
    auto priced = bounded_.best(program_.prices(), left, 1 + kTolerance, kStrategiesARound, kUsesARound);
    relaxation.bound = std::max(relaxation.bound, relaxation.rows / std::max(priced.most, 1.0));
    const std::int64_t bound = rounded_up(relaxation.bound);
    if (priced.strategies.empty() || bound >= rounded_up(relaxation.rows) || bound >= enough) break;
    std::vector<Strategy> found;
    for (auto& strategy : priced.strategies) found.push_back(std::move(strategy.parts));
    add(std::move(found));
  }
  return relaxation;
}

void ColumnGeneration::set_demand(std::span<const std::int64_t> items) {
  // The program's tolerances are absolute, so counts of any size are brought down to millions.
  const std::int64_t most = std::max<std::int64_t>(*std::max_element(items.begin(), items.end()), 1);
  unit_ = std::exp2(std::max(0, std::ilogb(static_cast<double>(most)) - 22));
  std::vector<double> demand(items.size());
  for (std::size_t i = 0; i < demand.size(); ++i) demand[i] = static_cast<double>(items[i]) / unit_;
  program_.set_demand(demand);
}

double ColumnGeneration::solve_program() {
  const double rows = program_.solve() * unit_;
  work_ += program_.iterations() * (kWorkALength * std::ssize(problem_.lengths) + kWorkAPlace * program_.places());
  return rows;
}

std::vector<double> ColumnGeneration::rows() const {
  std::vector<double> rows(program_.x().begin(), program_.x().end());
  for (double& value : rows) value *= unit_;
  return rows;
}

void ColumnGeneration::forget(double loss) {
  std::vector<std::int32_t> forgotten;
  std::vector<Strategy> kept;
  for (std::size_t s = 0; s < strategies_.size(); ++s) {
    if (program_.x()[s] <= 0 && worth_of(strategies_[s], program_.prices()) < 1 - loss) {
      forgotten.push_back(static_cast<std::int32_t>(s));
    } else {
      kept.push_back(std::move(strategies_[s]));
    }
  }
  program_.erase(forgotten);
  strategies_ = std::move(kept);
}

Certificate ColumnGeneration::certify() const {
  std::vector<std::int64_t> prices(guide_.size());
  for (std::size_t i = 0; i < prices.size(); ++i) prices[i] = std::llround(guide_[i] * static_cast<double>(kScale));
  Certificate certificate;
  certificate.granularity = problem_.slots_a_unit;
  certificate.scale = StrategyPricing<std::int64_t>(problem_.lengths, problem_.row_units, problem_.max_segments).most(prices);
  for (std::size_t i = prices.size(); i-- > 0;) {
    if (prices[i] > 0) certificate.prices.emplace_back(problem_.lengths[i] * problem_.slots_a_unit, prices[i]);
  }
  return certificate;
}

}  // namespace shardpack
