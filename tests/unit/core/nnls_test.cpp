// The solver against all active sets of tiny problems, and against the optimality conditions of larger ones, both computed here
// from the listed columns alone.
#include "core/nnls.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stop_token>
#include <vector>

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
  options.max_rounds = 0;
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
