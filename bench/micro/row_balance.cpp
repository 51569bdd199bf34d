// Time to exchange items between the rows of a million sequences, and what it gains, on one core.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/rng.h"
#include "shardpack/packer.h"
#include "shardpack/row_balance.h"

namespace shardpack {
namespace {

constexpr std::int64_t kSequences = 1'000'000;

/// Log-normal lengths: median 245 tokens, sigma 0.8.
OrderedRows packed(Length row_tokens) {
  const RandomStream random(7, RandomPurpose::sample);
  const auto uniform = [&](std::uint64_t i) { return (static_cast<double>(random.value(i) >> 11) + 0.5) / 9007199254740992.0; };
  OrderedRows rows;
  for (std::int64_t i = 0; i < kSequences; ++i) {
    const auto draw = 2 * static_cast<std::uint64_t>(i);
    const double normal = std::sqrt(-2 * std::log(uniform(draw))) * std::cos(6.283185307179586 * uniform(draw + 1));
    const auto length = static_cast<Length>(std::clamp(std::exp(5.5 + 0.8 * normal), 1.0, static_cast<double>(row_tokens)));
    rows.items.push_back({.sequence = i, .tokens = length, .slots = length});
  }
  PackerOptions packing;
  packing.row_tokens = row_tokens;
  rows.rows = assign(rows.items, plan_packs(histogram(rows.items), "lpfhp", packing), {.order = RowOrder::by_strategy});
  return rows;
}

double imbalance(const std::vector<std::int64_t>& costs, const std::vector<std::int32_t>& order, const TrainingShape& shape) {
  RankWaits waits(shape);
  for (const std::int32_t r : order) waits.add(costs[static_cast<std::size_t>(r)]);
  return waits.imbalance();
}

void exchange(benchmark::State& state, Length row_tokens) {
  const OrderedRows planned = packed(row_tokens);
  OrderedRows rows;
  for (auto _ : state) {
    state.PauseTiming();
    rows = planned;
    state.ResumeTiming();
    exchange_items(rows, {});
  }
  const AssignOptions options{.shape = {8, 1, 1}};
  for (const auto& [name, of] :
       {std::pair{"planned", &planned}, std::pair{"exchanged", static_cast<const OrderedRows*>(&rows)}}) {
    const std::vector<std::int64_t> costs = row_costs(of->rows, of->items);
    state.counters[std::string(name) + "_shuffled"] = imbalance(costs, shuffled_order(of->rows.rows(), options), options.shape);
    state.counters[std::string(name) + "_balanced"] = imbalance(costs, balanced_order(costs, options), options.shape);
  }
}

void order(benchmark::State& state, Length row_tokens) {
  const OrderedRows rows = packed(row_tokens);
  const std::vector<std::int64_t> costs = row_costs(rows.rows, rows.items);
  for (auto _ : state) benchmark::DoNotOptimize(balanced_order(costs, {.shape = {8, 1, 1}}));
}

const bool kRegistered = [] {
  for (const Length row_tokens : {2048, 8192}) {
    const std::string name = "/" + std::to_string(row_tokens);
    benchmark::RegisterBenchmark(("exchange" + name).c_str(), [row_tokens](benchmark::State& state) {
      exchange(state, row_tokens);
    })->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("balanced_order" + name).c_str(), [row_tokens](benchmark::State& state) {
      order(state, row_tokens);
    })->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace shardpack
