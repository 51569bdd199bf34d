// Time to plan an epoch of ten million sequences, by strategy, on one core.
#include <benchmark/benchmark.h>

#include <string>

#include "base/rng.h"
#include "shardpack/batch_plan.h"
#include "support/xnli_stand_in.h"

namespace shardpack {
namespace {

constexpr std::int64_t kSequences = 10'000'000;

const BatchItems& items() {
  static const BatchItems kItems = [] {
    BatchItems made{.lengths = xnli_stand_in(493, kSequences), .costs = {}, .tokens = {}};
    RandomStream(1, RandomPurpose::sample).shuffle(std::span(made.lengths));
    return made;
  }();
  return kItems;
}

void plan(benchmark::State& state, const std::string& strategy) {
  BatchOptions options;
  options.strategy = parse_batch_strategy(strategy);
  if (!options.strategy.has_budget()) options.batch_size = 64;
  options.world = 8;
  BatchEpoch epoch;
  for (auto _ : state) {
    epoch = plan_batches(items(), options, 0);
    benchmark::DoNotOptimize(epoch);
  }
  const BatchStats stats = batch_stats(items(), options, epoch);
  state.counters["padding"] = stats.padding();
  state.counters["imbalance"] = stats.imbalance;
  state.counters["sequences/s"] =
      benchmark::Counter(static_cast<double>(kSequences), benchmark::Counter::kIsIterationInvariantRate);
}

const bool kRegistered = [] {
  for (const char* strategy : {"sorted", "tokens:8192", "dynamic", "buckets:auto:8", "mega:50", "gist"}) {
    benchmark::RegisterBenchmark(("batch/" + std::string(strategy)).c_str(), [strategy](benchmark::State& state) {
      plan(state, strategy);
    })->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace shardpack
