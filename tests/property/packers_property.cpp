// Any histogram through any packer: an exact cover within its limits, bounded from below, the same for equal histograms. Where an
// item-by-item rule says what a packer does on counts, its whole plan must be the rule's; where instances are small, the optimum
// is known by trying everything.
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "core/refill.h"
#include "shardpack/packer.h"
#include "support/catch.h"

using namespace shardpack;

namespace {
/// A packing problem. `counts` may name a length several times.
struct Problem {
  Length row_tokens = 1;
  std::int32_t max_segments = 0;  // 0 = no limit
  std::vector<LengthCount> counts;

  LengthHistogram histogram() const { return LengthHistogram(counts); }
  PackerOptions options() const {
    PackerOptions result;
    result.row_tokens = row_tokens;
    result.max_segments = max_segments;
    return result;
  }
};

std::ostream& operator<<(std::ostream& out, const Problem& problem) {
  out << "rows of " << problem.row_tokens << ", at most " << problem.max_segments << " segments:";
  for (const LengthCount& entry : problem.counts) out << " " << entry.count << "x" << entry.length;
  return out;
}

/// Up to `max_kinds` lengths of up to `max_count` items each in rows of up to `max_row_tokens`.
rc::Gen<Problem> problems(Length max_row_tokens, int max_kinds, std::int64_t max_count) {
  return rc::gen::exec([=] {
    Problem problem;
    problem.row_tokens = *rc::gen::inRange<Length>(1, max_row_tokens + 1);
    problem.max_segments =
        *rc::gen::weightedElement<std::int32_t>({{4, 0}, {1, 1}, {2, 2}, {2, 3}, {1, 4}, {1, 6}, {1, 1'000'000}});
    problem.counts.resize(static_cast<std::size_t>(*rc::gen::inRange(0, max_kinds + 1)));
    for (LengthCount& entry : problem.counts) {
      entry.length = *rc::gen::inRange<std::int64_t>(1, std::int64_t{problem.row_tokens} + 1);
      entry.count = *rc::gen::inRange<std::int64_t>(1, max_count + 1);
    }
    return problem;
  });
}

std::vector<std::string> histogram_packers() {
  std::vector<std::string> names;
  for (const PackerInfo& packer : packers()) {
    if (!packer.input_order) names.emplace_back(packer.name);
  }
  return names;
}

/// One row while items are put in one by one.
struct Row {
  std::vector<Length> lengths;
  Length free = 0;
  std::int64_t touched = 0;  // when it last got an item
};

using Better = std::function<bool(const Row&, const Row&)>;

bool least_free(const Row& a, const Row& b) { return a.free < b.free; }
bool least_free_then_latest(const Row& a, const Row& b) { return a.free != b.free ? a.free < b.free : a.touched > b.touched; }
bool most_free_then_latest(const Row& a, const Row& b) { return a.free != b.free ? a.free > b.free : a.touched > b.touched; }
bool never(const Row&, const Row&) { return false; }  // the row opened first stays the best

enum class NewRows { shared, own };  // own: once an item has opened a row, so does every later one of its length

std::vector<Length> items_of(const Problem& problem) {
  std::vector<Length> items;
  for (const LengthCount& entry : problem.counts) {
    items.insert(items.end(), static_cast<std::size_t>(entry.count), static_cast<Length>(entry.length));
  }
  std::sort(items.rbegin(), items.rend());
  return items;
}

PackingPlan plan_of(const std::vector<Row>& rows) {
  PackingPlan plan;
  for (const Row& row : rows) plan.add(row.lengths, 1);
  plan.canonicalize();
  return plan;
}

bool has_room(const Row& row, Length item, const Problem& problem) {
  return row.free >= item && (problem.max_segments == 0 || std::ssize(row.lengths) < problem.max_segments);
}

/// Put the items into rows one by one, longest first, each into the best row that has room.
PackingPlan item_by_item(const Problem& problem, const Better& better, NewRows new_rows) {
  std::vector<Row> rows;  // in the order of opening
  std::int64_t now = 0;
  Length opened_for = 0;  // the length that opened the last row
  for (const Length item : items_of(problem)) {
    Row* best = nullptr;
    if (new_rows == NewRows::shared || item != opened_for) {
      for (Row& row : rows) {
        if (has_room(row, item, problem) && (best == nullptr || better(row, *best))) best = &row;
      }
    }
    if (best == nullptr) {
      rows.push_back({{}, problem.row_tokens, 0});
      best = &rows.back();
      opened_for = item;
    }
    best->lengths.push_back(item);
    best->free -= item;
    best->touched = now++;
  }
  return plan_of(rows);
}

PackingPlan next_fit_item_by_item(const Problem& problem) {
  std::vector<Row> rows;
  for (const Length item : items_of(problem)) {
    if (rows.empty() || !has_room(rows.back(), item, problem)) rows.push_back({{}, problem.row_tokens, 0});
    rows.back().lengths.push_back(item);
    rows.back().free -= item;
  }
  return plan_of(rows);
}

bool same_rows(const PackingPlan& a, const PackingPlan& b) {
  return a.lengths == b.lengths && a.begin == b.begin && a.count == b.count;
}

/// Fewest rows, by trying every set of items for every row: best[s] for each subset s of the items.
std::int64_t optimum(const Problem& problem) {
  const std::vector<Length> items = items_of(problem);
  const std::size_t subsets = std::size_t{1} << items.size();
  std::vector<std::int64_t> best(subsets, std::numeric_limits<std::int64_t>::max());
  std::vector<char> fits(subsets);
  for (std::size_t s = 0; s < subsets; ++s) {
    std::int64_t slots = 0, segments = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (s >> i & 1) {
        slots += items[i];
        ++segments;
      }
    }
    fits[s] = slots <= problem.row_tokens && (problem.max_segments == 0 || segments <= problem.max_segments);
  }
  best[0] = 0;
  for (std::size_t s = 1; s < subsets; ++s) {
    for (std::size_t row = s; row > 0; row = (row - 1) & s) {
      if (fits[row]) best[s] = std::min(best[s], best[s & ~row] + 1);
    }
  }
  return best[subsets - 1];
}
}  // namespace

TEST_CASE("any histogram through any packer is covered exactly, within the limits and not below the bound") {
  for (const std::string& packer : histogram_packers()) {
    INFO(packer);
    for (const std::int64_t max_count : {std::int64_t{5}, std::int64_t{1'000'000'000'000}}) {
      CHECK(rc::check(packer + " covers any histogram", [&] {
        const Problem problem = *problems(200, 30, max_count);
        const LengthHistogram histogram = problem.histogram();
        const PackingPlan plan = plan_packs(histogram, packer, problem.options());

        LengthHistogram placed;
        for (std::int64_t s = 0; s < plan.strategies(); ++s) {
          const std::span<const Length> strategy = plan.strategy(s);
          RC_ASSERT(std::accumulate(strategy.begin(), strategy.end(), std::int64_t{0}) <= problem.row_tokens);
          RC_ASSERT(problem.max_segments == 0 || std::ssize(strategy) <= problem.max_segments);
          for (const Length length : strategy) placed.add(length, plan.count[static_cast<std::size_t>(s)]);
        }
        RC_ASSERT(placed == histogram);
        RC_ASSERT(check_exact_cover(plan, histogram).empty());
        RC_ASSERT(plan.rows() >= plan.bound.rows);
        RC_ASSERT(plan.bound.rows >= lower_bound(histogram, problem.row_tokens, plan.max_segments).rows);
      }));
    }
  }
}

TEST_CASE("equal histograms give equal plans, however they came about") {
  for (const std::string& packer : histogram_packers()) {
    INFO(packer);
    CHECK(rc::check(packer + " depends on the histogram alone", [&] {
      const Problem problem = *problems(200, 30, 100);
      std::vector<LengthCount> pieces;
      for (const LengthCount& entry : problem.counts) {
        const std::int64_t first = *rc::gen::inRange<std::int64_t>(0, entry.count + 1);
        pieces.push_back({entry.length, first});
        pieces.push_back({entry.length, entry.count - first});
      }
      for (std::size_t i = pieces.size(); i > 1; --i) std::swap(pieces[i - 1], pieces[*rc::gen::inRange<std::size_t>(0, i)]);

      const PackingPlan expected = plan_packs(problem.histogram(), packer, problem.options());
      const PackingPlan plan = plan_packs(LengthHistogram(pieces), packer, problem.options());
      RC_ASSERT(same_rows(plan, expected));
      RC_ASSERT(plan.packer == expected.packer);
      RC_ASSERT(plan.bound.rows == expected.bound.rows);
    }));
  }
}

TEST_CASE("plans made on counts are those of the rule item by item") {
  struct Rule {
    std::string packer;
    std::function<PackingPlan(const Problem&)> plan;
  };
  const std::vector<Rule> rules{
      {"lpfhp", [](const Problem& p) { return item_by_item(p, least_free_then_latest, NewRows::shared); }},
      {"bfd", [](const Problem& p) { return item_by_item(p, least_free, NewRows::shared); }},
      {"ffd", [](const Problem& p) { return item_by_item(p, never, NewRows::shared); }},
      {"spfhp", [](const Problem& p) { return item_by_item(p, most_free_then_latest, NewRows::own); }},
      {"sorted-greedy", next_fit_item_by_item},
  };
  for (const Rule& rule : rules) {
    INFO(rule.packer);
    CHECK(rc::check(rule.packer + " is its rule", [&] {
      const Problem problem = *problems(120, 25, 12);
      RC_ASSERT(same_rows(plan_packs(problem.histogram(), rule.packer, problem.options()), rule.plan(problem)));
    }));
  }
}

TEST_CASE("without a segment limit ties do not matter to best fit") {
  CHECK(rc::check("lpfhp and bfd need equally many rows", [] {
    Problem problem = *problems(200, 40, 1'000'000);
    problem.max_segments = 0;
    RC_ASSERT(plan_packs(problem.histogram(), "lpfhp", problem.options()).rows() ==
              plan_packs(problem.histogram(), "bfd", problem.options()).rows());
  }));
}

TEST_CASE("rows filled anew hold the same items, within the limits, and are never more") {
  for (const std::int64_t max_count : {std::int64_t{8}, std::int64_t{1'000'000'000'000}}) {
    CHECK(rc::check("refill keeps the cover", [&] {
      const Problem problem = *problems(200, 30, max_count);
      const std::string packer = *rc::gen::element<std::string>("lpfhp", "spfhp", "sorted-greedy", "none");
      const PackingPlan before = plan_packs(problem.histogram(), packer, problem.options());
      PackingPlan plan = before, again = before;
      const bool saved = refill(plan, before.bound.rows, {});
      RC_ASSERT(check_exact_cover(plan, problem.histogram()).empty());
      RC_ASSERT(saved == (plan.rows() < before.rows()));
      RC_ASSERT(saved || same_rows(plan, before));
      RC_ASSERT(plan.rows() >= before.bound.rows);
      RC_ASSERT(refill(again, before.bound.rows, {}) == saved);
      RC_ASSERT(same_rows(plan, again));
    }));
  }
}

namespace {
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed, RandomPurpose::sample) {}

  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random_.bounded(next_++, static_cast<std::uint64_t>(most - least + 1)));
  }

  /// Small enough for optimum().
  Problem instance() {
    Problem problem;
    problem.row_tokens = static_cast<Length>(between(1, 40));
    problem.max_segments = static_cast<std::int32_t>(between(0, 5));
    const std::int64_t longest = between(1, problem.row_tokens);  // some instances have short items alone
    for (std::int64_t items = between(0, 9); items > 0; --items) problem.counts.push_back({between(1, longest), 1});
    return problem;
  }

 private:
  RandomStream random_;
  std::uint64_t next_ = 0;
};
}  // namespace

TEST_CASE("bound <= optimum <= rows on ten thousand small instances") {
  Draws draws(1);
  int not_optimal = 0;  // of optimal
  for (int instance = 0; instance < 10'000; ++instance) {
    const Problem problem = draws.instance();
    const std::int64_t fewest_within_limit = optimum(problem);
    const LengthHistogram histogram = problem.histogram();
    for (const std::string& packer : histogram_packers()) {
      const PackingPlan plan = plan_packs(histogram, packer, problem.options());
      if (packer == "optimal" && plan.rows() > fewest_within_limit) ++not_optimal;
      std::int64_t fewest = fewest_within_limit;
      if (plan.max_segments != problem.max_segments) {  // the packer's own limit, where none was given
        Problem limited = problem;
        limited.max_segments = plan.max_segments;
        fewest = optimum(limited);
      }
      if (plan.bound.rows <= fewest && fewest <= plan.rows()) continue;
      FAIL_CHECK(packer << ", " << problem << ": bound " << plan.bound.rows << ", optimum " << fewest << ", rows "
                        << plan.rows());
    }
  }
  CHECK(not_optimal <= 10);
}

TEST_CASE("optimal in coarse lengths: bound <= optimum <= rows") {
  // In rows of 5 million slots, where lengths have no divisor in common: one item of length 1 sees to that, and every row has the
  // one slot to spare that makes it cost nothing. So the optimum is that of the small instance, and no bound may exceed it.
  Draws draws(2);
  for (int instance = 0; instance < 300; ++instance) {
    Problem small = draws.instance();
    small.max_segments = 0;
    if (small.counts.empty()) continue;
    Problem large = small;
    const std::int64_t factor = draws.between(4'500'000, 6'000'000) / small.row_tokens;
    large.row_tokens = static_cast<Length>(small.row_tokens * factor + 1);
    for (LengthCount& items : large.counts) items.length *= factor;
    large.counts.push_back({1, 1});
    const PackingPlan plan = plan_packs(large.histogram(), "optimal", large.options());
    INFO(large << ": bound " << plan.bound.rows << ", rows " << plan.rows());
    CHECK(plan.bound.rows <= optimum(small));
    CHECK(optimum(small) <= plan.rows());
  }
}

TEST_CASE("optimal: full rows cut in pieces are put together again") {
  // The optimum is known, whatever the size: as many rows as were cut.
  Draws draws(3);
  int above = 0;
  for (int instance = 0; instance < 200; ++instance) {
    Problem problem;
    problem.row_tokens = static_cast<Length>(draws.between(20, 300));
    const std::int64_t rows = draws.between(1, 40);
    const std::int64_t most_pieces = draws.between(2, 6);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::int64_t left = problem.row_tokens;
      for (std::int64_t pieces = draws.between(2, most_pieces); pieces > 1 && left > 1; --pieces) {
        const std::int64_t piece = draws.between(1, std::max<std::int64_t>(2 * left / pieces - 1, 1));
        problem.counts.push_back({piece, 1});
        left -= piece;
      }
      problem.counts.push_back({left, 1});
    }
    const PackingPlan plan = plan_packs(problem.histogram(), "optimal", problem.options());
    INFO(problem);
    CHECK(plan.bound.rows == rows);
    CHECK(plan.rows() <= rows + 1);
    above += plan.rows() > rows ? 1 : 0;
  }
  CHECK(above <= 4);
}
