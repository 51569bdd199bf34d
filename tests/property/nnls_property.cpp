// Non-negative least squares on random problems: the optimality conditions hold, and no active set of a tiny problem does better.
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/nnls.h"
#include "core/strategy_pricing.h"
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

TEST_CASE("strategy pricing: the best of all, as found by listing every strategy") {
  CHECK(rc::check([] {
    const auto row_tokens = *rc::gen::inRange<Length>(1, 24);
    const auto max_segments = *rc::gen::inRange<std::int32_t>(0, 6);
    std::vector<Length> lengths;
    std::vector<std::int64_t> value;
    for (Length length = 1; length <= row_tokens; ++length) {
      if (!*rc::gen::weightedElement<bool>({{2, true}, {1, false}})) continue;
      lengths.push_back(length);
      value.push_back(*rc::gen::inRange<std::int64_t>(-5, 30));
    }
    // most[s]: by every way to add one more length
    const std::int32_t limit = max_segments == 0 ? row_tokens : max_segments;
    std::vector<std::int64_t> most(static_cast<std::size_t>(row_tokens) + 1, 0);
    for (std::int32_t n = 0; n < limit; ++n) {
      for (Length s = row_tokens; s >= 0; --s) {
        for (std::size_t i = 0; i < lengths.size(); ++i) {
          if (lengths[i] > s) continue;
          auto& here = most[static_cast<std::size_t>(s)];
          here = std::max(here, most[static_cast<std::size_t>(s - lengths[i])] + value[i]);
        }
      }
    }
    StrategyPricing<std::int64_t> exact(lengths, row_tokens, max_segments);
    StrategyPricing<double> approximate(lengths, row_tokens, max_segments);
    const auto strategies = exact.best(value, 0, 10);
    const auto same = approximate.best(std::vector<double>(value.begin(), value.end()), 0, 10);
    RC_ASSERT(strategies.empty() == (most.back() == 0));
    RC_ASSERT(same.size() == strategies.size());
    std::vector<bool> taken(lengths.size(), false);
    for (std::size_t k = 0; k < strategies.size(); ++k) {
      const auto& strategy = strategies[k];
      RC_ASSERT(strategy.parts == same[k].parts);
      RC_ASSERT(strategy.worth == (k == 0 ? most.back() : strategy.worth));
      RC_ASSERT(std::ssize(strategy.parts) <= limit);
      RC_ASSERT(std::is_sorted(strategy.parts.rbegin(), strategy.parts.rend()));
      std::int64_t slots = 0, worth = 0;
      for (const std::int32_t part : strategy.parts) {
        RC_ASSERT(!taken[static_cast<std::size_t>(part)]);
        slots += lengths[static_cast<std::size_t>(part)];
        worth += value[static_cast<std::size_t>(part)];
      }
      for (const std::int32_t part : strategy.parts) taken[static_cast<std::size_t>(part)] = true;
      RC_ASSERT(slots <= row_tokens);
      RC_ASSERT(worth == strategy.worth);
    }
  }));
}
