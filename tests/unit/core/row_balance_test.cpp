// Orders, exchanges and figures of attention cost, against trying everything on small cases and against measured gains on large
// ones.
#include "shardpack/row_balance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "shardpack/packer.h"
#include "support/catch.h"

using namespace shardpack;

namespace {

constexpr TrainingShape kShapes[] = {{1, 1, 1}, {2, 1, 1}, {8, 1, 1}, {4, 2, 1}, {3, 1, 2}, {2, 3, 4}, {8, 4, 2}};

OrderedRows rows_of(const std::vector<std::vector<Length>>& rows) {
  OrderedRows result;
  for (const std::vector<Length>& row : rows) {
    for (const Length length : row) {
      result.rows.items.push_back(static_cast<std::int32_t>(result.items.size()));
      result.items.push_back({.sequence = static_cast<SequenceId>(result.items.size()), .tokens = length, .slots = length});
    }
    result.rows.begin.push_back(static_cast<std::int64_t>(result.rows.items.size()));
  }
  return result;
}

std::vector<std::vector<Length>> lengths_of(const OrderedRows& rows) {
  std::vector<std::vector<Length>> result;
  for (std::int64_t r = 0; r < rows.rows.rows(); ++r) {
    result.emplace_back();
    for (const std::int32_t i : rows.rows.row(r)) result.back().push_back(rows.items[static_cast<std::size_t>(i)].slots);
  }
  return result;
}

/// Sequences of log-normal length, packed.
OrderedRows packed(std::int64_t sequences, double mu, double sigma, Length row_tokens) {
  const RandomStream random(3, RandomPurpose::sample);
  const auto uniform = [&](std::uint64_t i) { return (static_cast<double>(random.value(i) >> 11) + 0.5) / 9007199254740992.0; };
  OrderedRows rows;
  for (std::int64_t i = 0; i < sequences; ++i) {
    const auto draw = 2 * static_cast<std::uint64_t>(i);
    const double normal = std::sqrt(-2 * std::log(uniform(draw))) * std::cos(6.283185307179586 * uniform(draw + 1));
    const auto length = static_cast<Length>(std::clamp(std::exp(mu + sigma * normal), 1.0, static_cast<double>(row_tokens)));
    rows.items.push_back({.sequence = i, .tokens = length, .slots = length});
  }
  PackerOptions packing;
  packing.row_tokens = row_tokens;
  rows.rows = assign(rows.items, plan_packs(histogram(rows.items), "lpfhp", packing), {.order = RowOrder::by_strategy});
  return rows;
}

/// By the definition: rows of a rank and micro-step, one after the other.
double imbalance_by_definition(const std::vector<std::int64_t>& costs, const TrainingShape& shape) {
  double longest = 0, mean = 0;
  const std::int64_t micro_steps = std::ssize(costs) / (shape.world * shape.micro_batch);
  for (std::int64_t micro = 0; micro < micro_steps; ++micro) {
    double worst = 0;
    for (std::int64_t rank = 0; rank < shape.world; ++rank) {
      double cost = 0;
      for (std::int64_t i = 0; i < shape.micro_batch; ++i) {
        cost += static_cast<double>(costs[static_cast<std::size_t>((micro * shape.world + rank) * shape.micro_batch + i)]);
      }
      worst = std::max(worst, cost);
      mean += cost / static_cast<double>(shape.world);
    }
    longest += worst;
  }
  return mean > 0 ? longest / mean : 1;
}

template <class Order>
std::vector<std::int64_t> in_order(const std::vector<std::int64_t>& costs, const Order& order) {
  std::vector<std::int64_t> result;
  for (const std::int32_t r : order) result.push_back(costs[static_cast<std::size_t>(r)]);
  return result;
}

RankWaits waits_of(const std::vector<std::int64_t>& costs, const TrainingShape& shape, std::int64_t first_row = 0) {
  RankWaits waits(shape, first_row);
  for (const std::int64_t cost : costs) waits.add(cost);
  return waits;
}

std::vector<std::int64_t> random_costs(std::uint64_t draw, std::size_t count, std::int64_t most) {
  const RandomStream random(draw, RandomPurpose::sample);
  std::vector<std::int64_t> costs(count);
  for (std::size_t i = 0; i < count; ++i) {
    costs[i] = 1 + static_cast<std::int64_t>(random.bounded(i, static_cast<std::uint64_t>(most)));
  }
  return costs;
}

/// Is `after` a result of moving cost from dearer to cheaper rows? Then no sum of dearest rows has risen.
bool nearer_together(std::vector<std::int64_t> before, std::vector<std::int64_t> after) {
  std::ranges::sort(before, std::greater<>());
  std::ranges::sort(after, std::greater<>());
  std::int64_t of_before = 0, of_after = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    of_before += before[i];
    of_after += after[i];
    if (of_after > of_before) return false;
  }
  return of_before == of_after;
}

}  // namespace

TEST_CASE("rank waits: the definition, micro-step by micro-step") {
  for (const TrainingShape& shape : kShapes) {
    for (const std::size_t rows : {0U, 1U, 7U, 96U, 101U}) {
      const std::vector<std::int64_t> costs = random_costs(rows, rows, 1000);
      const RankWaits waits = waits_of(costs, shape);
      CHECK(waits.imbalance() == Approx(imbalance_by_definition(costs, shape)));
      CHECK(waits.micro_steps() == static_cast<std::int64_t>(rows) / shape.micro_step_rows());
    }
  }
  RankWaits begun({4, 1, 1}, 6);  // two rows of the micro-step are elsewhere, and so these two are left out
  for (const std::int64_t cost : {100, 100, 1, 3, 2, 2}) begun.add(cost);
  CHECK(begun.imbalance() == Approx(1.5));
}

TEST_CASE("balanced order: a permutation, steps of neighbours, whatever row it begins with") {
  const std::vector<std::int64_t> costs = random_costs(1, 1003, 1'000'000);
  std::vector<std::int64_t> sorted = costs;
  std::ranges::sort(sorted);
  for (const TrainingShape& shape : kShapes) {
    for (const std::int64_t first_row : {0, 1, 7, 64}) {
      INFO(shape.world << " x " << shape.accumulation << " x " << shape.micro_batch << " from row " << first_row);
      const AssignOptions options{.seed = 5, .shape = shape, .first_row = first_row};
      const std::vector<std::int32_t> order = balanced_order(costs, options);
      std::vector<std::int32_t> all = order;
      std::ranges::sort(all);
      std::vector<std::int32_t> rows(costs.size());
      std::iota(rows.begin(), rows.end(), 0);
      CHECK(all == rows);

      // Every whole step holds neighbours in cost, and both ends rows from the middle third.
      const std::int64_t step = shape.step_rows(), head = step - first_row % step;
      const std::vector<std::int64_t> written = in_order(costs, order);
      for (std::int64_t at = head % step; at + step <= std::ssize(written); at += step) {
        const auto [least, most] = std::minmax_element(written.begin() + at, written.begin() + at + step);
        CHECK(std::ranges::lower_bound(sorted, *most) - std::ranges::lower_bound(sorted, *least) == step - 1);
      }
      for (std::int64_t at = 0; at < std::ssize(written); ++at) {
        if (at >= head && at < std::ssize(written) - (std::ssize(written) - head) % step) continue;
        CHECK(written[static_cast<std::size_t>(at)] > sorted[costs.size() / 3]);
        CHECK(written[static_cast<std::size_t>(at)] < sorted[costs.size() * 2 / 3]);
      }
      CHECK(waits_of(written, shape, first_row).imbalance() <= 1.02);
      // DistributedSampler deals single rows to the ranks instead of micro-batches.
      if (first_row == 0 && shape.accumulation == 1) {
        std::vector<std::int64_t> dealt;
        for (std::int64_t micro = 0; (micro + 1) * step <= std::ssize(written); ++micro) {
          for (std::int64_t rank = 0; rank < shape.world; ++rank) {
            for (std::int64_t i = 0; i < shape.micro_batch; ++i) {
              dealt.push_back(written[static_cast<std::size_t>(micro * step + i * shape.world + rank)]);
            }
          }
        }
        CHECK(waits_of(dealt, shape).imbalance() <= 1.02);
      }
    }
  }
  CHECK(balanced_order({}, {}).empty());
  CHECK(balanced_order(std::vector<std::int64_t>{5}, {.shape = {8, 1, 1}}) == std::vector<std::int32_t>{0});
}

TEST_CASE("balanced order: steps are shuffled, by the seed and the partition") {
  const std::vector<std::int64_t> costs = random_costs(2, 800, 1'000'000);
  const auto order = [&](std::uint64_t seed, std::int32_t partition) {
    return balanced_order(costs, {.seed = seed, .partition = partition, .shape = {8, 1, 1}});
  };
  CHECK(order(1, 0) == order(1, 0));
  CHECK(order(1, 0) != order(2, 0));
  CHECK(order(1, 0) != order(1, 1));
  const std::vector<std::int64_t> written = in_order(costs, order(1, 0));
  std::int64_t rising = 0;
  for (std::size_t at = 8; at < written.size(); at += 8) rising += written[at] > written[at - 8];
  CHECK(rising > 30);
  CHECK(rising < 70);
}

TEST_CASE("balanced order: partitions that meet within a step do not spoil it") {
  for (const TrainingShape& shape : {TrainingShape{8, 1, 1}, TrainingShape{4, 2, 2}}) {
    RankWaits waits(shape);
    AssignOptions options{.shape = shape};
    for (std::int32_t partition = 0; partition < 40; ++partition) {  // of 50 to 89 rows
      const std::vector<std::int64_t> costs =
          random_costs(static_cast<std::uint64_t>(partition), 50 + static_cast<std::size_t>(partition), 1'000'000);
      options.partition = partition;
      for (const std::int64_t cost : in_order(costs, balanced_order(costs, options))) waits.add(cost);
      options.first_row += std::ssize(costs);
    }
    CHECK(waits.imbalance() <= 1.15);  // 1.6 when the steps of a partition begin at its first row
  }
}

TEST_CASE("balanced order: no other order has ranks that wait less") {
  // Every way to deal rows into micro-steps of `world`: by the first row left and who joins it.
  std::function<std::int64_t(std::vector<std::int64_t>, std::size_t)> least = [&](std::vector<std::int64_t> left,
                                                                                  std::size_t world) -> std::int64_t {
    if (left.empty()) return 0;
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    for (std::uint32_t mask = 0; mask < (1U << (left.size() - 1)); ++mask) {
      if (__builtin_popcount(mask) != static_cast<int>(world) - 1) continue;
      std::int64_t dearest = left[0];
      std::vector<std::int64_t> others;
      for (std::size_t i = 1; i < left.size(); ++i) {
        if ((mask >> (i - 1) & 1) != 0) {
          dearest = std::max(dearest, left[i]);
        } else {
          others.push_back(left[i]);
        }
      }
      best = std::min(best, dearest + least(others, world));
    }
    return best;
  };
  for (std::uint64_t draw = 0; draw < 40; ++draw) {
    for (const std::int64_t world : {2, 3, 4}) {
      const std::vector<std::int64_t> costs = random_costs(draw, static_cast<std::size_t>(world) * (2 + draw % 2), 50);
      const TrainingShape shape{world, 1, 1};
      const RankWaits waits = waits_of(in_order(costs, balanced_order(costs, {.seed = draw, .shape = shape})), shape);
      CHECK(waits.imbalance() * waits.mean() == Approx(static_cast<double>(least(costs, static_cast<std::size_t>(world)))));
    }
  }
}

TEST_CASE("exchange: two rows meet in the middle") {
  OrderedRows rows = rows_of({{6, 6}, {3, 3, 3, 3}});
  exchange_items(rows, {.max_segments = 4});
  CHECK(lengths_of(rows) == std::vector<std::vector<Length>>{{6, 3, 3}, {6, 3, 3}});

  rows = rows_of({{6, 6}, {3, 3, 3, 3}});
  exchange_items(rows, {.max_segments = 2});  // three segments are too many
  CHECK(lengths_of(rows) == std::vector<std::vector<Length>>{{6, 6}, {3, 3, 3, 3}});

  rows = rows_of({{6, 6}, {3, 3, 3, 3}});
  exchange_items(rows, {.untouched = 1});
  CHECK(lengths_of(rows) == std::vector<std::vector<Length>>{{6, 6}, {3, 3, 3, 3}});

  rows = rows_of({{6, 6}, {3, 3, 3, 3}, {6, 6}, {4, 2, 4, 2}});
  exchange_items(rows, {}, std::vector<std::int32_t>{0, 1, 1, 0});
  for (const std::int64_t cost : row_costs(rows.rows, rows.items)) CHECK((cost == 54 || cost == 56));
  CHECK(lengths_of(rows)[1] == std::vector<Length>{6, 3, 3});
  CHECK(lengths_of(rows)[3] == std::vector<Length>{6, 4, 2});

  rows = rows_of({{5, 1, 5, 1}, {3, 3, 3, 3}});  // units {5, 1} and {3, 3}: 6 slots each
  exchange_items(rows, {.keep_together = 2});
  const std::vector<std::int64_t> costs = row_costs(rows.rows, rows.items);
  CHECK(costs == std::vector<std::int64_t>{44, 44});
  for (std::int64_t r = 0; r < 2; ++r) {
    for (std::size_t i = 0; i < 4; i += 2) CHECK(rows.rows.row(r)[i + 1] == rows.rows.row(r)[i] + 1);
  }

  rows = rows_of({});
  exchange_items(rows, {});
  CHECK(rows.rows.rows() == 0);
}

TEST_CASE("exchange: as near to each other as rows of these segments can come, in most small cases") {
  // The least sum of squared costs over all ways to fill rows of these slots, found by placing item after item.
  std::function<double(const std::vector<Length>&, std::size_t, std::vector<Length>&, std::vector<double>&)> least =
      [&](const std::vector<Length>& items, std::size_t next, std::vector<Length>& room, std::vector<double>& costs) -> double {
    if (next == items.size()) return std::inner_product(costs.begin(), costs.end(), costs.begin(), 0.0);
    double best = std::numeric_limits<double>::max();
    for (std::size_t r = 0; r < room.size(); ++r) {
      if (room[r] < items[next]) continue;
      const double square = static_cast<double>(items[next]) * items[next];
      room[r] -= items[next];
      costs[r] += square;
      best = std::min(best, least(items, next + 1, room, costs));
      room[r] += items[next];
      costs[r] -= square;
    }
    return best;
  };
  const RandomStream random(9, RandomPurpose::sample);
  int cases = 0, best_found = 0, improved = 0;
  double excess = 0, excess_before = 0;
  for (std::uint64_t draw = 0; draw < 60; ++draw) {
    // Three rows of 24 slots, one with long segments, one with middling ones, one with short ones.
    std::vector<std::vector<Length>> lengths(3);
    for (std::size_t r = 0; r < 3; ++r) {
      const std::array<Length, 3> most{12, 8, 5};
      Length left = 24;
      for (std::uint64_t i = 0; left > 0 && lengths[r].size() < 6; ++i) {
        const auto drawn = static_cast<Length>(2 + random.bounded(100 * draw + 10 * r + i, static_cast<std::uint64_t>(most[r])));
        lengths[r].push_back(std::min(left, drawn));
        left -= lengths[r].back();
      }
    }
    OrderedRows rows = rows_of(lengths);
    std::vector<Length> items, room;
    for (const std::vector<Length>& row : lengths) {
      items.insert(items.end(), row.begin(), row.end());
      room.push_back(std::accumulate(row.begin(), row.end(), Length{0}));
    }
    std::vector<double> none(3, 0);
    const double optimum = least(items, 0, room, none);
    const auto squares = [](const std::vector<std::int64_t>& costs) {
      double sum = 0;
      for (const std::int64_t cost : costs) sum += static_cast<double>(cost) * static_cast<double>(cost);
      return sum;
    };
    const std::vector<std::int64_t> before = row_costs(rows.rows, rows.items);
    exchange_items(rows, {.max_segments = static_cast<std::int32_t>(items.size())});
    const std::vector<std::int64_t> after = row_costs(rows.rows, rows.items);
    CHECK(squares(after) >= optimum - 0.5);
    CHECK(nearer_together(before, after));
    ++cases;
    best_found += squares(after) <= optimum * 1.02;
    improved += squares(after) < squares(before);
    excess += squares(after) / optimum - 1;
    excess_before += squares(before) / optimum - 1;
  }
  CHECK(improved >= cases * 8 / 10);
  CHECK(best_found >= cases / 2);
  CHECK(excess < excess_before / 4);
}

TEST_CASE("exchange: rows keep place, slots and limit, items keep their number, and equal input gives equal output") {
  OrderedRows rows = packed(30'000, 5.5, 0.8, 2048);
  std::size_t deepest = 0;
  std::vector<std::int32_t> groups;
  for (std::int64_t r = 0; r < rows.rows.rows(); ++r) {
    deepest = std::max(deepest, rows.rows.row(r).size());
    groups.push_back(static_cast<std::int32_t>(r % 3));
  }
  const OrderedRows planned = rows;
  for (const bool grouped : {false, true}) {
    for (const std::size_t limit : {deepest, std::size_t{0}, std::size_t{200}}) {
      rows = planned;
      const std::span<const std::int32_t> of_rows =
          grouped ? std::span<const std::int32_t>(groups) : std::span<const std::int32_t>();
      exchange_items(rows, {.max_segments = static_cast<std::int32_t>(limit)}, of_rows);
      OrderedRows again = planned;
      exchange_items(again, {.max_segments = static_cast<std::int32_t>(limit)}, of_rows);
      CHECK(again.rows.items == rows.rows.items);
      REQUIRE(rows.rows.rows() == planned.rows.rows());
      std::vector<std::int32_t> place_of(rows.items.size(), -1), group_of(rows.items.size());
      bool kept = true, whole = true;
      for (std::int64_t r = 0; r < rows.rows.rows(); ++r) {
        for (const std::int32_t i : planned.rows.row(r))
          group_of[static_cast<std::size_t>(i)] = groups[static_cast<std::size_t>(r)];
      }
      for (std::int64_t r = 0; r < rows.rows.rows(); ++r) {
        std::int64_t slots = 0, planned_slots = 0;
        for (const std::int32_t i : planned.rows.row(r)) planned_slots += planned.items[static_cast<std::size_t>(i)].slots;
        for (const std::int32_t i : rows.rows.row(r)) {
          slots += rows.items[static_cast<std::size_t>(i)].slots;
          kept &= std::exchange(place_of[static_cast<std::size_t>(i)], 1) == -1;
          whole &= !grouped || group_of[static_cast<std::size_t>(i)] == groups[static_cast<std::size_t>(r)];
        }
        kept &= slots == planned_slots && rows.rows.row(r).size() <= (limit == 0 ? deepest : limit);
      }
      CHECK(kept);
      CHECK(whole);
      CHECK(std::ranges::count(place_of, 1) == std::ssize(rows.items));
      CHECK(nearer_together(row_costs(planned.rows, planned.items), row_costs(rows.rows, rows.items)));
    }
  }
}

TEST_CASE("exchange and order on log-normal lengths: what is gained") {
  OrderedRows rows = packed(40'000, 5.5, 0.8, 8192);
  const TrainingShape shape{8, 1, 1};
  AssignOptions options{.seed = 1, .shape = shape};
  struct Gain {
    double shuffled, balanced;
  };
  const auto measure = [&] {
    const std::vector<std::int64_t> costs = row_costs(rows.rows, rows.items);
    return Gain{waits_of(in_order(costs, shuffled_order(rows.rows.rows(), options)), shape).imbalance(),
                waits_of(in_order(costs, balanced_order(costs, options)), shape).imbalance()};
  };
  const Gain planned = measure();
  exchange_items(rows, {});
  const Gain exchanged = measure();
  CHECK(planned.shuffled > 2.4);
  CHECK(planned.balanced < 1.04);
  CHECK(exchanged.shuffled < 1.5);
  CHECK(exchanged.balanced < 1.04);
}

TEST_CASE("imbalance bound: below everything that could be done, and met where one segment decides") {
  // All ways to put items into rows of at most `slots`, and rows into micro-steps.
  const auto least_of = [](const std::vector<Length>& items, std::size_t rows, Length slots, std::int64_t world) {
    double least = std::numeric_limits<double>::max();
    std::vector<Length> used(rows, 0);
    std::vector<std::int64_t> costs(rows, 0);
    std::function<void(std::size_t)> place = [&](std::size_t next) {
      if (next == items.size()) {
        std::vector<std::int64_t> sorted = costs;  // sorted steps are the best ones: shown above
        std::ranges::sort(sorted, std::greater<>());
        double longest = 0;
        for (std::size_t at = 0; at < rows; at += static_cast<std::size_t>(world)) longest += static_cast<double>(sorted[at]);
        least = std::min(least, longest);
        return;
      }
      for (std::size_t r = 0; r < rows; ++r) {
        if (used[r] + items[next] > slots) continue;
        used[r] += items[next];
        costs[r] += std::int64_t{items[next]} * items[next];
        place(next + 1);
        used[r] -= items[next];
        costs[r] -= std::int64_t{items[next]} * items[next];
      }
    };
    place(0);
    return least;
  };
  const RandomStream random(4, RandomPurpose::sample);
  double tightest = 0;
  for (std::uint64_t draw = 0; draw < 60; ++draw) {
    const std::int64_t world = 2;
    const Length slots = 12;
    std::vector<Length> items;
    for (std::uint64_t i = 0; i < 8; ++i) items.push_back(static_cast<Length>(1 + random.bounded(10 * draw + i, i < 2 ? 12 : 4)));
    const OrderedRows rows = [&] {  // first fit into four rows
      std::vector<std::vector<Length>> fit(4);
      for (const Length length : items) {
        for (std::vector<Length>& row : fit) {
          if (std::accumulate(row.begin(), row.end(), length) > slots) continue;
          row.push_back(length);
          break;
        }
      }
      return rows_of(fit);
    }();
    if (rows.items.size() != items.size()) continue;
    const TrainingShape shape{world, 1, 1};
    const RankWaits waits = waits_of(row_costs(rows.rows, rows.items), shape);
    LengthHistogram segments;
    for (const Length length : items) segments.add(length);
    const double bound = imbalance_bound(waits, shape, segments, slots, 4);
    const double best = least_of(items, 4, slots, world) / waits.mean();
    CHECK(bound >= 1);
    CHECK(bound <= best + 1e-9);
    CHECK(bound <= waits.imbalance() + 1e-9);
    if (best > 1.01) tightest = std::max(tightest, bound / best);
  }
  CHECK(tightest > 0.95);

  // One full row beside rows of little: its step waits for it, whatever is done.
  LengthHistogram segments;
  segments.add(100, 1);
  segments.add(10, 30);
  std::vector<std::int64_t> costs(4, 1000);
  costs[0] = 10'000;
  CHECK(imbalance_bound(waits_of(costs, {2, 1, 1}), {2, 1, 1}, segments, 100, 4) == Approx(11'000 / 6'500.0));
  // Three more rows that are in no step: the full one may be among them.
  CHECK(imbalance_bound(waits_of(costs, {2, 1, 1}), {2, 1, 1}, segments, 100, 7) == 1);
  CHECK(imbalance_bound(RankWaits({2, 1, 1}), {2, 1, 1}, {}, 100, 0) == 1);
}
