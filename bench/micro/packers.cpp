// Time to plan, by packer and histogram, with the rows above the lower bound: speed means nothing without quality.
#include <benchmark/benchmark.h>

#include <cmath>
#include <string>

#include "shardpack/packer.h"
#include "support/shared_data.h"

namespace shardpack {
namespace {

/// What one million documents of web text look like: log-normal, cut off at the row length.
LengthHistogram web_text(Length row_tokens) {
  LengthHistogram histogram;
  std::int64_t left = 1'000'000;
  for (Length length = 1; length < row_tokens; ++length) {
    const double deviation = std::log(length / 180.0);
    const auto count = static_cast<std::int64_t>(1e6 / (length * 2.5066) * std::exp(-deviation * deviation / 2));
    histogram.add(length, count);
    left -= count;
  }
  histogram.add(row_tokens, left);
  return histogram;
}

/// Every length equally often: the most distinct lengths that there can be.
LengthHistogram uniform(Length row_tokens) {
  LengthHistogram histogram;
  for (Length length = 1; length <= row_tokens; ++length) histogram.add(length, 10);
  return histogram;
}

void plan_histogram(benchmark::State& state, const std::string& packer, const LengthHistogram& histogram, Length row_tokens) {
  const PackerOptions options{.row_tokens = row_tokens, .max_segments = 0, .nnls_weights = NnlsWeights::paper};
  PackingPlan plan;
  for (auto _ : state) {
    plan = plan_packs(histogram, packer, options);
    benchmark::DoNotOptimize(plan);
  }
  state.counters["rows"] = static_cast<double>(plan.rows());
  state.counters["gap"] = static_cast<double>(plan.gap());
  state.counters["tokens/s"] =
      benchmark::Counter(static_cast<double>(histogram.tokens()), benchmark::Counter::kIsIterationInvariantRate);
}

void add_benchmarks(const std::string& name, const LengthHistogram& histogram, Length row_tokens, bool nnls) {
  for (const PackerInfo& packer : packers()) {
    if (packer.input_order || (packer.name == "nnlshp" && !nnls)) continue;
    benchmark::RegisterBenchmark(("plan/" + std::string(packer.name) + "/" + name).c_str(), [packer = std::string(packer.name),
                                                                                             histogram, row_tokens](
                                                                                                benchmark::State& state) {
      plan_histogram(state, packer, histogram, row_tokens);
    })->Unit(benchmark::kMillisecond);
  }
}

const bool kRegistered = [] {
  add_benchmarks("web_text_2048", web_text(2048), 2048, false);
  add_benchmarks("web_text_131072", web_text(131072), 131072, false);
  add_benchmarks("uniform_8192", uniform(8192), 8192, false);
  if (const auto squad = published_histogram("squad_1_1_384.csv")) add_benchmarks("squad_384", *squad, 384, true);
  if (const auto wikipedia = published_histogram("wikipedia_bert_512.csv"))
    add_benchmarks("wikipedia_512", *wikipedia, 512, true);
  return true;
}();

}  // namespace
}  // namespace shardpack
