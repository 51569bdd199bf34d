// Items to rows, against the rule written down in docs/formats.md, carried out here item by item.
#include "shardpack/assignment.h"

#include <algorithm>
#include <map>
#include <numeric>
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

template <class T>
void shuffle(std::vector<T>& values, const RandomStream& random, std::uint64_t first_index) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.bounded(first_index + i - 1, i)]);
}

Rows by_the_rule(const std::vector<Item>& items, const PackingPlan& plan, const AssignOptions& options) {
  std::map<Length, std::vector<std::int32_t>> members;
  for (std::size_t i = 0; i < items.size(); ++i) members[items[i].slots].push_back(static_cast<std::int32_t>(i));
  std::uint64_t before = 0;  // items of shorter lengths
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

Rows rows_of(const Assignment& assignment) {
  Rows rows;
  for (std::int64_t r = 0; r < assignment.rows(); ++r) rows.emplace_back(assignment.row(r).begin(), assignment.row(r).end());
  return rows;
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
        const AssignOptions options{seed, partition, order};
        CHECK(rows_of(assign(items, plan, options)) == by_the_rule(items, plan, options));
      }
    }
  }
  CHECK(rows_of(assign({}, {}, {})).empty());
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
