// Non-negative least squares on random problems: the optimality conditions hold, and no active set of a tiny problem does better.
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/nnls.h"
#include "support/catch.h"
#include "support/listed_columns.h"

using namespace shardpack;

namespace {
struct Listed {
  NnlsProblem problem;
  std::vector<NnlsColumn> columns;
};

rc::Gen<Listed> problems(int max_rows, int max_columns, int least_value) {
  return rc::gen::exec([=] {
    Listed listed;
    const int rows = *rc::gen::inRange(1, max_rows + 1);
    for (int r = 0; r < rows; ++r) {
      listed.problem.target.push_back(*rc::gen::inRange(0, 1000));
      listed.problem.weight.push_back(*rc::gen::element(0.09, 1.0, 3.0));
    }
    const int columns = *rc::gen::inRange(0, max_columns + 1);
    for (int c = 0; c < columns; ++c) {
      NnlsColumn column;
      for (int r = 0; r < rows; ++r) {
        const int value = *rc::gen::weightedOneOf<int>({{2, rc::gen::just(0)}, {1, rc::gen::inRange(least_value, 4)}});
        if (value != 0) column.push_back({r, static_cast<double>(value)});
      }
      if (!column.empty()) listed.columns.push_back(column);
    }
    return listed;
  });
}

/// Least norm over all sets of columns whose least squares solution is not negative; dependent sets are skipped, for another set
/// without some of their columns does as well.
double least_norm(const Listed& listed) {
  double least = norm(listed.problem, listed.problem.target);
  for (unsigned set = 1; set < 1u << listed.columns.size(); ++set) {
    std::vector<const NnlsColumn*> chosen;
    for (std::size_t c = 0; c < listed.columns.size(); ++c) {
      if (set >> c & 1) chosen.push_back(&listed.columns[c]);
    }
    const std::size_t n = chosen.size();
    std::vector<std::vector<double>> equations(n, std::vector<double>(n + 1));  // normal equations, right side last
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<double> dense(listed.problem.target.size());
      for (const NnlsEntry& entry : *chosen[i]) {
        const auto row = static_cast<std::size_t>(entry.row);
        dense[row] = entry.value * listed.problem.weight[row] * listed.problem.weight[row];
      }
      for (std::size_t j = 0; j < n; ++j) equations[i][j] = product(*chosen[j], dense);
      for (std::size_t r = 0; r < dense.size(); ++r) equations[i][n] += dense[r] * listed.problem.target[r];
    }
    bool usable = true;
    for (std::size_t i = 0; i < n && usable; ++i) {
      std::size_t pivot = i;
      for (std::size_t k = i; k < n; ++k) {
        if (std::abs(equations[k][i]) > std::abs(equations[pivot][i])) pivot = k;
      }
      std::swap(equations[i], equations[pivot]);
      usable = std::abs(equations[i][i]) > 1e-9;
      for (std::size_t k = 0; k < n && usable; ++k) {
        if (k == i) continue;
        const double factor = equations[k][i] / equations[i][i];
        for (std::size_t j = i; j <= n; ++j) equations[k][j] -= factor * equations[i][j];
      }
    }
    if (!usable) continue;
    std::vector<double> residual = listed.problem.target;
    for (std::size_t i = 0; i < n; ++i) {
      const double x = equations[i][n] / equations[i][i];
      usable = usable && x >= -1e-9;
      for (const NnlsEntry& entry : *chosen[i]) residual[static_cast<std::size_t>(entry.row)] -= entry.value * x;
    }
    if (usable) least = std::min(least, norm(listed.problem, residual));
  }
  return least;
}
}  // namespace

TEST_CASE("nnls: no active set does better") {
  CHECK(rc::check([] {
    const Listed listed_problem = *problems(5, 7, -2);
    NnlsOptions options;
    options.columns_a_round = *rc::gen::element(1, 2, 32);
    const NnlsSolution solution = solve_nnls(listed_problem.problem, listed(listed_problem.columns), options, {});
    const double found = norm(listed_problem.problem, solution.residual), least = least_norm(listed_problem);
    RC_ASSERT(std::abs(found - least) <= 1e-6 * (1 + norm(listed_problem.problem, listed_problem.problem.target)));
  }));
}

TEST_CASE("nnls: the conditions of optimality hold") {
  CHECK(rc::check([] {
    const Listed listed_problem = *problems(40, 120, -1);
    const NnlsSolution solution = solve_nnls(listed_problem.problem, listed(listed_problem.columns), {}, {});
    RC_ASSERT(solution.optimal);
    RC_ASSERT(worst_violation(listed_problem.problem, listed_problem.columns, solution) < 1e-10);
  }));
}
