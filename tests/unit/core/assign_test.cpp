// Items to rows, against the rule written down in docs/formats.md, carried out here item by item.
#include "shardpack/assignment.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "shardpack/error.h"
#include "shardpack/packer.h"
#include "support/catch.h"

using namespace shardpack;

namespace {
std::vector<Item> items_of(const std::vector<Length>& slots) {
  std::vector<Item> items(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) items[i].tokens = items[i].slots = slots[i];
  return items;
}

using Rows = std::vector<std::vector<std::int32_t>>;

template <class Values>
void shuffle(Values& values, const RandomStream& random, std::uint64_t first_index) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.bounded(first_index + i - 1, i)]);
}

Rows by_the_rule(const std::vector<Item>& items, const PackingPlan& plan, const AssignOptions& options) {
  std::map<Length, std::vector<std::int32_t>> members;
  for (std::size_t i = 0; i < items.size(); ++i) members[items[i].slots].push_back(static_cast<std::int32_t>(i));
  auto before = static_cast<std::uint64_t>(options.first_item);  // items of shorter lengths
  const auto partition = static_cast<std::uint32_t>(options.partition);
  for (auto& [slots, class_members] : members) {
    if (options.order != RowOrder::input) {
      shuffle(class_members, RandomStream(options.seed, RandomPurpose::members, partition), before);
    }
    before += class_members.size();
    std::reverse(class_members.begin(), class_members.end());  // the next one is the last
  }
  Rows rows;
  for (std::int64_t s = 0; s < plan.strategies(); ++s) {
    for (std::int64_t row = 0; row < plan.count[static_cast<std::size_t>(s)]; ++row) {
      rows.emplace_back();
      for (const Length slots : plan.strategy(s)) {
        rows.back().push_back(members[slots].back());
        members[slots].pop_back();
      }
    }
  }
  if (options.order == RowOrder::shuffled) shuffle(rows, RandomStream(options.seed, RandomPurpose::row_order, partition), 0);
  if (options.order == RowOrder::input) {
    for (std::vector<std::int32_t>& row : rows) std::sort(row.begin(), row.end());
    std::sort(rows.begin(), rows.end());
  }
  return rows;
}

constexpr std::int64_t kMiSlots = 1'048'576;

std::int64_t windows_by_the_rule(const PackingPlan& plan) {
  const std::int64_t slots = plan.rows() * plan.row_tokens;
  return std::min((slots + 2 * kMiSlots - 1) / (2 * kMiSlots), plan.rows());
}

/// The window of the input that each item begins in: windows begin at equal parts of the slots, rounded down.
std::vector<std::int64_t> windows_of(const std::vector<Item>& items, std::int64_t windows) {
  std::int64_t total = 0, before = 0;
  for (const Item& item : items) total += item.slots;
  std::vector<std::int64_t> of_item;
  for (const Item& item : items) {
    std::int64_t window = 0;
    while (window + 1 < windows && total * (window + 1) / windows <= before) ++window;
    of_item.push_back(window);
    before += item.slots;
  }
  return of_item;
}

Rows shuffled_in_windows(const Rows& rows, std::int64_t windows, const AssignOptions& options) {
  Rows ordered;
  const auto count = static_cast<std::int64_t>(rows.size());
  for (std::int64_t window = 0; window < windows; ++window) {
    const auto begin = count * window / windows;
    Rows part(rows.begin() + begin, rows.begin() + count * (window + 1) / windows);
    shuffle(part, RandomStream(options.seed, RandomPurpose::row_order, static_cast<std::uint32_t>(options.partition)),
            static_cast<std::uint64_t>(begin));
    ordered.insert(ordered.end(), part.begin(), part.end());
  }
  return ordered;
}

/// The rows of each window, ascending: row by row of a strategy, half of the windows at a time.
std::vector<std::vector<std::size_t>> dealt_by_the_rule(const std::vector<Item>& items, const PackingPlan& plan,
                                                        std::int64_t windows) {
  std::vector<std::map<Length, std::int64_t>> left(static_cast<std::size_t>(windows));
  const std::vector<std::int64_t> window_of = windows_of(items, windows);
  for (std::size_t i = 0; i < items.size(); ++i) ++left[static_cast<std::size_t>(window_of[i])][items[i].slots];
  std::vector<std::vector<std::size_t>> rows(left.size());
  const auto room = [&](std::size_t w) {
    const auto window = static_cast<std::int64_t>(w);
    return plan.rows() * (window + 1) / windows - plan.rows() * window / windows - std::ssize(rows[w]);
  };
  std::size_t row = 0;
  for (std::int64_t s = 0; s < plan.strategies(); ++s) {
    std::map<Length, std::int64_t> needs;
    for (const Length slots : plan.strategy(s)) ++needs[slots];
    for (std::int64_t more = plan.count[static_cast<std::size_t>(s)]; more > 0;) {
      using Choice = std::tuple<std::int64_t, std::int64_t, std::size_t>;  // ascending: the best comes first
      std::vector<Choice> choices;
      for (std::size_t w = 0; w < left.size(); ++w) {
        std::int64_t found = 0;
        for (const auto& [slots, places] : needs) found += std::min(left[w][slots], places);
        if (room(w) > 0) choices.emplace_back(-found, -room(w), w);
      }
      std::ranges::sort(choices);
      choices.resize(static_cast<std::size_t>(std::min({std::ssize(choices), more, (windows + 1) / 2})));
      std::set<std::size_t> chosen;
      for (const Choice& choice : choices) chosen.insert(std::get<2>(choice));
      for (const std::size_t w : chosen) {
        rows[w].push_back(row++);
        for (const auto& [slots, places] : needs) left[w][slots] = std::max<std::int64_t>(left[w][slots] - places, 0);
      }
      more -= std::ssize(choices);
    }
  }
  return rows;
}

/// Several windows.
Rows by_the_windowed_rule(const std::vector<Item>& items, const PackingPlan& plan, const AssignOptions& options) {
  const std::int64_t windows = windows_by_the_rule(plan);
  const std::vector<std::int64_t> window_of = windows_of(items, windows);
  std::map<std::pair<Length, std::int64_t>, std::deque<std::int32_t>> members;  // by length and window
  for (std::size_t i = 0; i < items.size(); ++i) members[{items[i].slots, window_of[i]}].push_back(static_cast<std::int32_t>(i));
  auto before = static_cast<std::uint64_t>(options.first_item);
  const auto partition = static_cast<std::uint32_t>(options.partition);
  for (auto& [key, some] : members) {
    shuffle(some, RandomStream(options.seed, RandomPurpose::members, partition), before);
    before += some.size();
  }
  const auto take = [&](Length slots, std::int64_t window) -> std::int32_t {
    std::deque<std::int32_t>& some = members[{slots, window}];
    if (some.empty()) return -1;
    const std::int32_t item = some.front();
    some.pop_front();
    return item;
  };

  std::vector<std::vector<Length>> lengths;  // of each row of the plan
  for (std::int64_t s = 0; s < plan.strategies(); ++s) {
    const auto strategy = plan.strategy(s);
    lengths.insert(lengths.end(), static_cast<std::size_t>(plan.count[static_cast<std::size_t>(s)]),
                   {strategy.begin(), strategy.end()});
  }
  const std::vector<std::vector<std::size_t>> dealt_rows = dealt_by_the_rule(items, plan, windows);
  Rows rows(lengths.size());
  for (std::int64_t window = 0; window < windows; ++window) {
    for (const std::size_t r : dealt_rows[static_cast<std::size_t>(window)]) {
      for (const Length slots : lengths[r]) rows[r].push_back(take(slots, window));
    }
  }
  for (std::int64_t window = 0; window < windows; ++window) {  // what their windows could not give
    for (const std::size_t r : dealt_rows[static_cast<std::size_t>(window)]) {
      for (std::size_t place = 0; place < rows[r].size(); ++place) {
        for (std::int64_t from = 0; from < windows && rows[r][place] < 0; ++from) rows[r][place] = take(lengths[r][place], from);
      }
    }
  }

  Rows dealt;
  for (const std::vector<std::size_t>& of_window : dealt_rows) {
    for (const std::size_t r : of_window) dealt.push_back(rows[r]);
  }
  return shuffled_in_windows(dealt, windows, options);
}

/// Rows that are not dealt.
Rows by_the_middle_rule(Rows rows, std::int64_t windows, const AssignOptions& options) {
  std::ranges::sort(rows, {}, [](std::vector<std::int32_t> row) {
    std::ranges::sort(row);
    return row[row.size() / 2];
  });
  return shuffled_in_windows(rows, windows, options);
}

Rows rows_of(const Assignment& assignment) {
  Rows rows;
  for (std::int64_t r = 0; r < assignment.rows(); ++r) rows.emplace_back(assignment.row(r).begin(), assignment.row(r).end());
  return rows;
}

/// Items of `step`, 2 * step ... longest, in random order, and rows of them.
struct Packed {
  Packed(std::size_t count, Length step, Length longest, Length row_tokens) {
    const RandomStream random(7, RandomPurpose::sample);
    std::vector<Length> slots;
    for (std::uint64_t i = 0; i < count; ++i)
      slots.push_back(step * static_cast<Length>(1 + random.bounded(i, static_cast<std::uint64_t>(longest / step))));
    items = items_of(slots);
    PackerOptions packing;
    packing.row_tokens = row_tokens;
    plan = plan_packs(histogram(items), "lpfhp", packing);
  }
  std::vector<Item> items;
  PackingPlan plan;
};

/// Of the items of an order's rows: the share that the same window of the input holds.
double share_in_window(const Packed& packed, const AssignOptions& options) {
  const std::int64_t windows = windows_by_the_rule(packed.plan);
  const std::vector<std::int64_t> window_of = windows_of(packed.items, windows);
  const Rows rows = rows_of(assign(packed.items, packed.plan, options));
  std::int64_t inside = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::int64_t window = static_cast<std::int64_t>(r) * windows / static_cast<std::int64_t>(rows.size());
    for (const std::int32_t item : rows[r]) inside += window_of[static_cast<std::size_t>(item)] == window ? 1 : 0;
  }
  return static_cast<double>(inside) / static_cast<double>(packed.items.size());
}
}  // namespace

TEST_CASE("assign: rows are those of the rule, for every order, seed and partition") {
  const RandomStream random(1, RandomPurpose::sample);
  std::vector<Length> slots;
  for (std::uint64_t i = 0; i < 3'000; ++i) slots.push_back(static_cast<Length>(1 + random.bounded(i, 1 + i % 60)));
  const std::vector<Item> items = items_of(slots);
  PackerOptions packing;
  packing.row_tokens = 64;
  const PackingPlan plan = plan_packs(histogram(items), "lpfhp", packing);
  for (const RowOrder order : {RowOrder::shuffled, RowOrder::by_strategy, RowOrder::input}) {
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1} << 40}) {
      for (const std::int32_t partition : {0, 3}) {
        const AssignOptions options{.seed = seed, .partition = partition, .order = order, .first_item = 77, .row_tokens = 64};
        CHECK(rows_of(assign(items, plan, options)) == by_the_rule(items, plan, options));
      }
    }
  }
  // A single window is the whole partition.
  AssignOptions options{.seed = 9, .partition = 1, .row_tokens = 64};
  const Rows shuffled = rows_of(assign(items, plan, options));
  options.order = RowOrder::windowed;
  CHECK(rows_of(assign(items, plan, options)) == shuffled);
  CHECK(rows_of(assign({}, {}, {})).empty());
  CHECK(rows_of(assign({}, {}, options)).empty());
}

TEST_CASE("assign: rows of several windows are those of the rule, for every seed and partition") {
  struct Size {
    std::size_t items;
    Length step, longest, row_tokens;
  };
  // Few lengths, so that windows have most of what their rows ask for, and many, so that they have little of it; rows of as many
  // slots as a window, and of more; items that fill a row.
  for (const Size& size :
       {Size{2'000, 1 << 13, 1 << 17, 1 << 18}, Size{1'500, 1, 1 << 14, 1 << 15}, Size{90, 1 << 14, 1 << 20, 1 << 21},
        Size{60, 1 << 15, 1 << 22, 1 << 22}, Size{3'000, 1 << 12, 1 << 12, 1 << 12}, Size{700, 1 << 14, 1 << 16, 200'001}}) {
    const Packed packed(size.items, size.step, size.longest, size.row_tokens);
    INFO(size.items << " items, " << packed.plan.rows() << " rows");
    const std::int64_t windows = windows_by_the_rule(packed.plan);
    REQUIRE(windows > 1);
    REQUIRE(windows == window_count(packed.plan.rows(), size.row_tokens));
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1} << 40}) {
      for (const std::int32_t partition : {0, 3}) {
        const AssignOptions options{.seed = seed,
                                    .partition = partition,
                                    .order = RowOrder::windowed,
                                    .first_item = partition * 100,
                                    .row_tokens = size.row_tokens};
        const Rows rows = rows_of(assign(packed.items, packed.plan, options));
        CHECK(rows == by_the_windowed_rule(packed.items, packed.plan, options));

        // Ordered later, as rows of equal cost are: the same. Rows of groups and of packers in input order go by their middle.
        AssignOptions later = options;
        later.ordered = false;
        Assignment unordered = assign(packed.items, packed.plan, later);
        CHECK(rows_of(order_rows(unordered, packed.items, later)) == rows);
        unordered.windows.clear();
        CHECK(rows_of(order_rows(unordered, packed.items, later)) == by_the_middle_rule(rows_of(unordered), windows, options));
        CHECK(check_exact_cover(derive_plan({packed.items, unordered}, "lpfhp", {.row_tokens = size.row_tokens}, 0),
                                histogram(packed.items))
                  .empty());
      }
    }
  }
}

TEST_CASE("assign: rows of a window find most of their items in it") {
  const Packed packed(12'000, 1 << 10, 1 << 13, 1 << 14);  // 8 lengths
  REQUIRE(windows_by_the_rule(packed.plan) > 20);
  for (const std::uint64_t seed : {1, 2, 3}) {
    AssignOptions options{.seed = seed, .order = RowOrder::windowed, .row_tokens = packed.plan.row_tokens};
    CHECK(share_in_window(packed, options) > 0.85);
    options.order = RowOrder::shuffled;
    CHECK(share_in_window(packed, options) < 0.1);
  }
}

TEST_CASE("assign: windows of two Mi slots, of equal size, and no more than rows") {
  CHECK(window_count(0, 2048) == 1);
  CHECK(window_count(1, 2048) == 1);
  CHECK(window_count(1024, 2048) == 1);
  CHECK(window_count(1025, 2048) == 2);
  CHECK(window_count(2049, 2048) == 3);
  CHECK(window_count(3, 1 << 21) == 3);
  CHECK(window_count(3, 1 << 24) == 3);
  CHECK(window_count(std::int64_t{1} << 31, 1 << 20) == std::int64_t{1} << 30);
}

TEST_CASE("assign: a plan of other items is refused") {
  PackingPlan plan;
  plan.row_tokens = 8;
  plan.add(std::vector<Length>{4, 4}, 1);
  CHECK_THROWS_AS(assign(items_of({4}), plan, {}), Error);
  CHECK_THROWS_AS(assign(items_of({4, 4, 4}), plan, {}), Error);
  CHECK_THROWS_AS(assign(items_of({4, 4, 2}), plan, {}), Error);
  CHECK_THROWS_AS(assign(items_of({4, 9}), plan, {}), Error);
  CHECK_THROWS_AS(assign(items_of({4, 0}), plan, {}), Error);
  CHECK(assign(items_of({4, 4}), plan, {}).rows() == 1);
}
