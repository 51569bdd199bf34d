// Time to plan, by packer and histogram, with the rows above the lower bound: speed means nothing without quality.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "shardpack/assignment.h"
#include "shardpack/packer.h"
#include "support/shared_data.h"
#include "support/web_text.h"

namespace shardpack {
namespace {

/// Every length equally often: the most distinct lengths that there can be.
LengthHistogram uniform(Length row_tokens) {
  LengthHistogram histogram;
  for (Length length = 1; length <= row_tokens; ++length) histogram.add(length, 10);
  return histogram;
}

PackerOptions packing(Length row_tokens, std::int32_t max_segments) {
  PackerOptions options;
  options.row_tokens = row_tokens;
  options.max_segments = max_segments;
  return options;
}

struct Input {
  std::string name;
  Length row_tokens;
  std::function<LengthHistogram()> make;
  std::vector<std::int32_t> max_segments;  // 0 = no limit
  std::int64_t largest_search;             // row length times distinct lengths times segments up to which `optimal` is timed
};

/// Made when first used: most runs are of a few benchmarks.
const LengthHistogram& histogram_of(const Input& input) {
  static std::map<std::string, LengthHistogram> made;
  const auto found = made.find(input.name);
  return found != made.end() ? found->second : made.emplace(input.name, input.make()).first->second;
}

void plan_histogram(benchmark::State& state, const std::string& packer, const Input& input, std::int32_t max_segments) {
  const LengthHistogram& histogram = histogram_of(input);
  const PackerOptions options = packing(input.row_tokens, max_segments);
  PackingPlan plan;
  for (auto _ : state) {
    plan = plan_packs(histogram, packer, options);
    benchmark::DoNotOptimize(plan);
  }
  state.SetLabel("by " + plan.packer);
  state.counters["lengths"] = static_cast<double>(histogram.counts().size());
  state.counters["rows"] = static_cast<double>(plan.rows());
  state.counters["gap"] = static_cast<double>(plan.gap());
}

/// From lengths in memory to the members of every row.
void lengths_to_rows(benchmark::State& state) {
  const auto stream = static_cast<std::uint32_t>(state.range(0));
  std::vector<Item> items;
  for (const std::int64_t length : log_normal_lengths(stream, 1'000'000, {})) {
    Item item;
    item.sequence = static_cast<SequenceId>(items.size());
    item.tokens = item.slots = static_cast<Length>(length);
    items.push_back(item);
  }
  std::int64_t gap = 0;
  for (auto _ : state) {
    const PackingPlan plan = plan_packs(histogram(items), "auto", packing(2048, 0));
    const Assignment rows = assign(items, plan, {});
    benchmark::DoNotOptimize(rows.items.data());
    gap = plan.gap();
  }
  state.counters["gap"] = static_cast<double>(gap);
}
BENCHMARK(lengths_to_rows)->Name("lengths_to_rows/web_text_2048")->DenseRange(0, 4)->Unit(benchmark::kMillisecond);

void add_benchmarks(const Input& input) {
  for (const PackerInfo& packer : packers()) {
    if (packer.input_order) continue;
    for (const std::int32_t max_segments : input.max_segments) {
      const std::string name =
          "plan/" + std::string(packer.name) + "/" + input.name + (max_segments == 0 ? "" : "/K" + std::to_string(max_segments));
      benchmark::RegisterBenchmark(name.c_str(), [packer = std::string(packer.name), input,
                                                  max_segments](benchmark::State& state) {
        const std::int64_t size = std::ssize(histogram_of(input).counts()) * input.row_tokens * std::max(max_segments, 1);
        if (packer == "optimal" && size > input.largest_search) {
          state.SkipWithError("takes minutes");
          return;
        }
        plan_histogram(state, packer, input, max_segments);
      })->Unit(benchmark::kMillisecond);
    }
  }
}

const bool kRegistered = [] {
  const std::int64_t some_seconds = 5'000'000;
  std::vector<Input> inputs{
      {"web_text_2048", 2048, [] { return web_text(0, 1'000'000); }, {0, 3}, some_seconds},
      {"web_text_8192",
       8192,
       [] {
         return web_text(0, 1'000'000, {5.3, 0.9, 8, 8192});
       },
       {0, 3},
       some_seconds},
      {"long_text_131072",
       131'072,
       [] {
         return web_text(0, 2'000'000, {8.0, 1.5, 8, 131'072});
       },
       {0},
       some_seconds},
      {"uniform_8192", 8192, [] { return uniform(8192); }, {0}, some_seconds},
      {"uniform_1048576", 1'048'576, [] { return uniform(1'048'576); }, {0}, some_seconds},
  };
  if (published_histogram("squad_1_1_384.csv")) {
    inputs.push_back({"squad_384", 384, [] { return *published_histogram("squad_1_1_384.csv"); }, {0, 3}, some_seconds});
    inputs.push_back({"wikipedia_512", 512, [] { return *published_histogram("wikipedia_bert_512.csv"); }, {0, 3}, some_seconds});
  }
  for (const Input& input : inputs) add_benchmarks(input);
  return true;
}();

}  // namespace
}  // namespace shardpack
