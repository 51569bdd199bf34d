// Cost models: the published ones, and one fitted to measured times.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/nnls.h"
#include "shardpack/batch_cost.h"
#include "shardpack/error.h"

namespace shardpack {

CostModel published_cost_model() { return {"published", 0.9225e-6, 0.06874e-8, 0.535e-3}; }

CostModel published_mixed_precision_model() { return {"published-mixed", 0.35414e-6, 0.047403e-8, 1.0984e-3}; }

CostModel fit_cost_model(std::span<const TimedWork> measured) {
  if (measured.empty()) throw Error(ErrorCode::bad_data, "no measured times");
  // Columns are scaled to a largest entry of 1: tokens, squares and batches are orders of magnitude apart.
  constexpr std::array<double BatchWork::*, 3> kFigures{&BatchWork::padded_tokens, &BatchWork::padded_squares,
                                                        &BatchWork::batches};
  std::array<double, 3> scale{};
  NnlsProblem problem;
  for (const TimedWork& run : measured) {
    if (!(run.minutes > 0) || !std::isfinite(run.minutes)) throw Error(ErrorCode::bad_data, "a measured time is not above 0");
    problem.target.push_back(run.minutes);
    problem.weight.push_back(1 / run.minutes);
    for (std::size_t f = 0; f < kFigures.size(); ++f) scale[f] = std::max(scale[f], run.work.*kFigures[f]);
  }
  std::array<NnlsColumn, 3> columns;
  for (std::size_t f = 0; f < kFigures.size(); ++f) {
    for (std::size_t r = 0; r < measured.size(); ++r) {
      const double value = measured[r].work.*kFigures[f];
      if (!(value >= 0) || !std::isfinite(value)) throw Error(ErrorCode::bad_data, "a measured batch has no size");
      if (value > 0) columns[f].push_back({static_cast<std::int32_t>(r), value / scale[f]});
    }
  }
  const auto price = [&](std::span<const double> gradient, std::size_t limit) {
    std::vector<std::pair<double, std::size_t>> worths;
    for (std::size_t f = 0; f < columns.size(); ++f) {
      double worth = 0;
      for (const NnlsEntry& entry : columns[f]) worth += entry.value * gradient[static_cast<std::size_t>(entry.row)];
      if (worth > 0) worths.emplace_back(-worth, f);
    }
    std::sort(worths.begin(), worths.end());
    std::vector<NnlsColumn> best;
    for (std::size_t i = 0; i < std::min(limit, worths.size()); ++i) best.push_back(columns[worths[i].second]);
    return best;
  };
  const NnlsSolution solution = solve_nnls(problem, price, {}, {});

  CostModel model{.name = "calibrated"};
  const std::array<double CostModel::*, 3> coefficients{&CostModel::minutes_per_token, &CostModel::minutes_per_square,
                                                        &CostModel::minutes_per_batch};
  for (std::size_t used = 0; used < solution.columns.size(); ++used) {
    const auto column = std::find(columns.begin(), columns.end(), solution.columns[used]);
    const auto f = static_cast<std::size_t>(column - columns.begin());
    model.*coefficients[f] = solution.x[used] / scale[f];
  }
  return model;
}

}  // namespace shardpack
