// The strategies that pricing finds, against the best of all by listing every one.
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <ostream>
#include <vector>

#include "core/bounded_pricing.h"
#include "core/strategy_pricing.h"
#include "support/catch.h"

using namespace shardpack;

namespace {
struct Problem {
  Length row_tokens = 1;
  std::int32_t max_segments = 0;  // 0 = no limit
  std::vector<Length> lengths;
  std::vector<std::int64_t> values, items;

  std::int32_t segments() const { return max_segments == 0 ? row_tokens : max_segments; }
  std::vector<double> real_values() const { return {values.begin(), values.end()}; }
};

std::ostream& operator<<(std::ostream& out, const Problem& problem) {
  out << "rows of " << problem.row_tokens << ", at most " << problem.max_segments << " segments:";
  for (std::size_t i = 0; i < problem.lengths.size(); ++i) {
    out << " " << problem.lengths[i] << " worth " << problem.values[i] << " (" << problem.items[i] << ")";
  }
  return out;
}

rc::Gen<Problem> problems() {
  return rc::gen::exec([] {
    Problem problem;
    problem.row_tokens = *rc::gen::inRange<Length>(1, 22);
    problem.max_segments = *rc::gen::inRange<std::int32_t>(0, 7);
    for (Length length = 1; length <= problem.row_tokens; ++length) {
      if (!*rc::gen::weightedElement<bool>({{2, true}, {1, false}})) continue;
      problem.lengths.push_back(length);
      problem.values.push_back(*rc::gen::inRange<std::int64_t>(-5, 30));
      problem.items.push_back(*rc::gen::inRange<std::int64_t>(0, 4));
    }
    return problem;
  });
}

/// The most that a strategy is worth, by trying every number of every length.
std::int64_t most(const Problem& problem, bool bounded) {
  const std::function<std::int64_t(std::size_t, Length, std::int32_t)> try_from = [&](std::size_t i, Length space,
                                                                                      std::int32_t segments) -> std::int64_t {
    if (i == problem.lengths.size()) return 0;
    std::int64_t best = try_from(i + 1, space, segments);
    if (problem.values[i] <= 0) return best;
    const std::int64_t copies = bounded ? problem.items[i] : std::numeric_limits<std::int64_t>::max();
    for (std::int32_t n = 1; n <= std::min<std::int64_t>(copies, segments) && n * problem.lengths[i] <= space; ++n) {
      best = std::max(best, n * problem.values[i] + try_from(i + 1, space - n * problem.lengths[i], segments - n));
    }
    return best;
  };
  return try_from(0, problem.row_tokens, problem.segments());
}

/// Is it a strategy, is its worth right, and does it keep the bounds?
void check(const Problem& problem, const std::vector<std::int32_t>& parts, double worth, std::vector<int>& uses) {
  RC_ASSERT(!parts.empty());
  RC_ASSERT(std::ssize(parts) <= problem.segments());
  RC_ASSERT(std::is_sorted(parts.rbegin(), parts.rend()));
  Length slots = 0;
  double sum = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const auto i = static_cast<std::size_t>(parts[p]);
    slots += problem.lengths[i];
    sum += static_cast<double>(problem.values[i]);
    if (p == 0 || parts[p] != parts[p - 1]) ++uses[i];
  }
  RC_ASSERT(slots <= problem.row_tokens);
  RC_ASSERT(sum == worth);
}

template <class Value>
void check_found(const Problem& problem, StrategyPricing<Value>& pricing, const std::vector<Value>& values) {
  const auto best = static_cast<Value>(most(problem, false));
  const auto above = *rc::gen::inRange<std::int64_t>(0, 40);
  const int max_uses = *rc::gen::inRange(1, 3);
  RC_ASSERT(pricing.most(values) == best);
  const auto found = pricing.best(values, static_cast<Value>(above), 10, max_uses);
  RC_ASSERT(found.most >= best);  // a bound
  RC_ASSERT(found.strategies.empty() == (best <= static_cast<Value>(above)));
  std::vector<int> uses(problem.lengths.size(), 0);
  for (const auto& strategy : found.strategies) {
    RC_ASSERT(strategy.worth > static_cast<Value>(above));
    RC_ASSERT(strategy.worth <= best);
    check(problem, strategy.parts, static_cast<double>(strategy.worth), uses);
  }
  RC_ASSERT(std::all_of(uses.begin(), uses.end(), [&](int n) { return n <= max_uses; }));
  // half of what there is to gain, at least
  if (!found.strategies.empty()) {
    const Value gain = found.strategies.front().worth - static_cast<Value>(above);
    RC_ASSERT(2 * gain + 1 >= found.most - static_cast<Value>(above));
  }
}
}  // namespace

TEST_CASE("pricing: the most, and strategies near it") {
  CHECK(rc::check([] {
    const Problem problem = *problems();
    StrategyPricing<std::int64_t> exact(problem.lengths, problem.row_tokens, problem.max_segments);
    StrategyPricing<double> real(problem.lengths, problem.row_tokens, problem.max_segments);
    for (int call = 0; call < 3; ++call) {  // what it learns from one call must not make the next one wrong
      check_found(problem, exact, problem.values);
      check_found(problem, real, problem.real_values());
    }
  }));
}

TEST_CASE("bounded pricing: the best strategy of the items that there are") {
  CHECK(rc::check([] {
    const Problem problem = *problems();
    const BoundedPricing pricing(problem.lengths, problem.row_tokens, problem.max_segments);
    const auto best = static_cast<double>(most(problem, true));
    const auto above = static_cast<double>(*rc::gen::inRange(0, 40));
    const auto found = pricing.best(problem.real_values(), problem.items, above, 10, 2);
    RC_ASSERT(found.most == best);
    RC_ASSERT(found.strategies.empty() == (best <= above));
    if (!found.strategies.empty()) RC_ASSERT(found.strategies.front().worth == best);
    std::vector<int> uses(problem.lengths.size(), 0);
    for (const auto& strategy : found.strategies) {
      RC_ASSERT(strategy.worth > above);
      check(problem, strategy.parts, strategy.worth, uses);
      for (std::size_t i = 0; i < problem.lengths.size(); ++i) {
        RC_ASSERT(std::count(strategy.parts.begin(), strategy.parts.end(), static_cast<std::int32_t>(i)) <= problem.items[i]);
      }
    }
    RC_ASSERT(std::all_of(uses.begin(), uses.end(), [](int n) { return n <= 2; }));
  }));
}
