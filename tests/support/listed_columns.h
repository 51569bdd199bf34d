// Least squares problems whose columns are all listed: the pricing of the solver by looking at each, and the optimality
// conditions checked from the problem's data alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/nnls.h"

namespace shardpack {

inline double product(const NnlsColumn& column, std::span<const double> rows) {
  double sum = 0;
  for (const NnlsEntry& entry : column) sum += entry.value * rows[static_cast<std::size_t>(entry.row)];
  return sum;
}

/// Looks at every column and returns the most worthy ones.
inline PriceColumns listed(std::vector<NnlsColumn> columns) {
  return [columns = std::move(columns)](std::span<const double> gradient, std::size_t limit) {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (const double worth = product(columns[c], gradient); worth > 0) order.emplace_back(-worth, c);
    }
    std::sort(order.begin(), order.end());
    std::vector<NnlsColumn> best;
    for (std::size_t i = 0; i < std::min(limit, order.size()); ++i) best.push_back(columns[order[i].second]);
    return best;
  };
}

/// Weighted, of a residual.
inline double norm(const NnlsProblem& problem, const std::vector<double>& residual) {
  double sum = 0;
  for (std::size_t r = 0; r < residual.size(); ++r) sum += std::pow(problem.weight[r] * residual[r], 2);
  return std::sqrt(sum);
}

inline double value_of(const NnlsSolution& solution, const NnlsColumn& column) {
  const auto at = std::find(solution.columns.begin(), solution.columns.end(), column);
  return at == solution.columns.end() ? 0 : solution.x[static_cast<std::size_t>(at - solution.columns.begin())];
}

/// How far a solution is from the conditions of Karush, Kuhn and Tucker: x above 0, the gradient along every column in use 0, and
/// along no column above 0. The gradient along a column is taken relative to its norm and the target's. The residual is computed
/// anew from x.
inline double worst_violation(const NnlsProblem& problem, const std::vector<NnlsColumn>& columns, const NnlsSolution& solution) {
  std::vector<double> gradient = problem.target;
  for (std::size_t c = 0; c < solution.columns.size(); ++c) {
    if (solution.x[c] <= 0) return 1;
    for (const NnlsEntry& entry : solution.columns[c])
      gradient[static_cast<std::size_t>(entry.row)] -= entry.value * solution.x[c];
  }
  for (std::size_t r = 0; r < gradient.size(); ++r) gradient[r] *= problem.weight[r] * problem.weight[r];
  const double target = norm(problem, problem.target);
  if (target == 0) return 0;

  const auto relative = [&](const NnlsColumn& column) {
    double square = 0;
    for (const NnlsEntry& entry : column)
      square += std::pow(problem.weight[static_cast<std::size_t>(entry.row)] * entry.value, 2);
    return product(column, gradient) / (std::sqrt(square) * target);
  };
  double worst = 0;
  for (const NnlsColumn& column : columns) worst = std::max(worst, relative(column));
  for (const NnlsColumn& column : solution.columns) worst = std::max(worst, std::abs(relative(column)));
  return worst;
}

/// Every multiset of at most three lengths with the sum `row_tokens`; row l - 1 is length l.
inline std::vector<NnlsColumn> exact_strategies(int row_tokens) {
  std::vector<NnlsColumn> columns;
  for (int a = 0; a <= row_tokens; ++a) {
    for (int b = a; a + b <= row_tokens; ++b) {
      const int c = row_tokens - a - b;
      if (c < b) continue;
      NnlsColumn column;
      for (const int length : {a, b, c}) {
        if (length == 0) continue;
        if (!column.empty() && column.back().row == length - 1) {
          column.back().value += 1;
        } else {
          column.push_back({length - 1, 1});
        }
      }
      columns.push_back(std::move(column));
    }
  }
  return columns;
}

}  // namespace shardpack
