// The solver against all active sets of tiny problems, and against the optimality conditions of larger ones, both computed here
// from the listed columns alone.
#include "core/nnls.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stop_token>
#include <vector>

#include "core/strategy_pricing.h"
#include "shardpack/error.h"
#include "support/catch.h"
#include "support/listed_columns.h"
#include "support/shared_data.h"

using namespace shardpack;

TEST_CASE("least squares of one, two and no columns") {
  const NnlsProblem problem{{3, 4}, {1, 1}};
  {
    const NnlsSolution solution = solve_nnls(problem, listed({{{0, 1}, {1, 1}}}), {}, {});
    REQUIRE(solution.columns.size() == 1);
    CHECK(solution.x[0] == Approx(3.5));
    CHECK(solution.residual[0] == Approx(-0.5));
    CHECK(solution.residual[1] == Approx(0.5));
    CHECK(solution.optimal);
  }
  {
    const NnlsSolution solution = solve_nnls(problem, listed({{{0, 1}}, {{0, 1}, {1, 2}}}), {}, {});
    CHECK(value_of(solution, {{0, 1}}) == Approx(1));
    CHECK(value_of(solution, {{0, 1}, {1, 2}}) == Approx(2));
  }
  {
    const NnlsSolution solution = solve_nnls(problem, listed({{{0, -1}}, {{1, -2}}}), {}, {});
    CHECK(solution.columns.empty());
    CHECK(solution.residual == std::vector<double>{3, 4});
    CHECK(solution.optimal);
  }
  CHECK(solve_nnls({}, listed({}), {}, {}).optimal);
}

TEST_CASE("weights say which row matters") {
  const NnlsSolution solution = solve_nnls({{10, 20}, {1, 3}}, listed({{{0, 1}, {1, 1}}}), {}, {});
  REQUIRE(solution.columns.size() == 1);
  CHECK(solution.x[0] == Approx((10 + 9 * 20) / 10.0));
}

TEST_CASE("equal and dependent columns do no harm") {
  const std::vector<NnlsColumn> columns{{{0, 1}}, {{0, 1}}, {{1, 1}}, {{0, 1}, {1, 1}}, {{0, 2}, {1, 2}}};
  const NnlsProblem problem{{5, 7}, {1, 1}};
  const NnlsSolution solution = solve_nnls(problem, listed(columns), {}, {});
  CHECK(worst_violation(problem, columns, solution) < 1e-9);
  CHECK(norm(problem, solution.residual) < 1e-9);
}

TEST_CASE("a full passive set ends the search with what it has") {
  NnlsOptions options;
  options.max_columns = 2;
  const NnlsSolution solution = solve_nnls({{1, 2, 3}, {1, 1, 1}}, listed({{{0, 1}}, {{1, 1}}, {{2, 1}}}), options, {});
  CHECK(solution.columns.size() == 2);
  CHECK_FALSE(solution.optimal);
  CHECK(value_of(solution, {{2, 1}}) == Approx(3));

  options.max_columns = 100;
  options.max_work = 0;
  CHECK(solve_nnls({{1}, {1}}, listed({{{0, 1}}}), options, {}).columns.empty());
}

TEST_CASE("a stop is obeyed") {
  std::stop_source source;
  source.request_stop();
  CHECK_THROWS_AS(solve_nnls({{1}, {1}}, listed({{{0, 1}}}), {}, source.get_token()), Error);
}

TEST_CASE("equal problems have equal solutions, bit for bit") {
  const std::vector<NnlsColumn> columns = exact_strategies(90);
  NnlsProblem problem;
  for (int length = 1; length <= 90; ++length) {
    problem.target.push_back(1000.0 * (length * 37 % 91));
    problem.weight.push_back(length <= 8 ? 0.09 : 1);
  }
  const NnlsSolution first = solve_nnls(problem, listed(columns), {}, {}), second = solve_nnls(problem, listed(columns), {}, {});
  CHECK(first.columns == second.columns);
  CHECK(first.x == second.x);
  CHECK(worst_violation(problem, columns, first) < 1e-10);
}

// The problem as Krell et al. (2021) publish it: all strategies of at most three lengths that fill a row of 512 tokens exactly.
TEST_CASE("the published problem on Wikipedia's histogram is solved to optimality", "[published]") {
  const std::vector<NnlsColumn> columns = exact_strategies(512);
  CHECK(columns.size() == 22'102);
  const std::optional<LengthHistogram> wikipedia = published_histogram("wikipedia_bert_512.csv");
  if (!wikipedia) {
    WARN(kNoSharedData);
    return;
  }
  NnlsProblem problem;
  for (int length = 1; length <= 512; ++length) {
    problem.target.push_back(static_cast<double>(wikipedia->count(length)));
    problem.weight.push_back(length <= 8 ? 0.09 : 1);
  }
  const NnlsSolution solution = solve_nnls(problem, listed(columns), {}, {});
  CHECK(solution.optimal);
  CHECK(worst_violation(problem, columns, solution) < 1e-11);
}

// Rows of 2,048 slots have 1.4 thousand million strategies of three lengths: no test can list their columns. The best of all is
// found here from pairs alone: with two lengths given, the third is the best that still fits.
TEST_CASE("columns priced on demand: at the end no strategy of three lengths is worth anything") {
  const Length row_tokens = 2048;
  std::vector<Length> lengths;
  NnlsProblem problem;
  for (Length length = 5; length < row_tokens; length += 7) {
    lengths.push_back(length);
    problem.target.push_back(1 + (length * 7919 % 997) * std::exp(-length / 400.0));
    problem.weight.push_back(length <= 8 ? 0.09 : 1);
  }
  StrategyPricing<double> pricing(lengths, row_tokens, 3);
  const auto price = [&](std::span<const double> gradient, std::size_t limit) {
    std::vector<NnlsColumn> columns;
    for (const auto& strategy : pricing.best(gradient, 0, limit, 1).strategies) {
      NnlsColumn column;
      for (auto part = strategy.parts.rbegin(); part != strategy.parts.rend(); ++part) {
        if (column.empty() || column.back().row != *part) column.push_back({*part, 0});
        column.back().value += 1;
      }
      columns.push_back(column);
    }
    return columns;
  };
  const NnlsSolution solution = solve_nnls(problem, price, {}, {});
  CHECK(solution.optimal);
  CHECK(worst_violation(problem, {}, solution) < 1e-10);  // of the columns in use

  std::vector<double> gradient = solution.residual;
  for (std::size_t r = 0; r < gradient.size(); ++r) gradient[r] *= problem.weight[r] * problem.weight[r];
  std::vector<double> best_up_to(lengths.size());  // of a single length, or none
  for (std::size_t i = 0; i < lengths.size(); ++i) best_up_to[i] = std::max(i == 0 ? 0 : best_up_to[i - 1], gradient[i]);
  const auto best_within = [&](Length space) {
    const auto fitting = std::upper_bound(lengths.begin(), lengths.end(), space) - lengths.begin();
    return fitting == 0 ? 0 : best_up_to[static_cast<std::size_t>(fitting) - 1];
  };
  double most = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    most = std::max(most, gradient[i] + best_within(row_tokens - lengths[i]));
    for (std::size_t j = i; j < lengths.size() && lengths[i] + lengths[j] <= row_tokens; ++j) {
      most = std::max(most, gradient[i] + gradient[j] + best_within(row_tokens - lengths[i] - lengths[j]));
    }
  }
  CHECK(most < 1e-9 * norm(problem, problem.target));
}
