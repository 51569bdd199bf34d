// Scan, pack and verify of a generated Megatron shard on a warm page cache, and the inner loops that they consist of.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "base/rng.h"
#include "core/fingerprint_keys.h"
#include "shardpack/jobs.h"
#include "shardpack/packed_row.h"
#include "shardpack/thread_pool.h"

namespace shardpack {
namespace {

constexpr Length kRowTokens = 2048;

/// A shard of about 20 M tokens in a temporary folder that goes with the process.
class GeneratedShard {
 public:
  GeneratedShard() : folder_(std::filesystem::temp_directory_path() / ("shardpack-bench-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
    const RandomStream random(0, RandomPurpose::sample);
    std::vector<std::int32_t> lengths(70'000);
    for (std::size_t i = 0; i < lengths.size(); ++i) {  // many short, few long: the square of a uniform number, 1 to 900
      const double u = static_cast<double>(random.value(i) >> 11) * 0x1p-53;
      lengths[i] = 1 + static_cast<std::int32_t>(u * u * 899);
    }
    tokens_ = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    std::vector<std::uint16_t> ids(static_cast<std::size_t>(tokens_));
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::uint16_t>(random.bounded(i, 50'257));
    write(lengths, ids);
  }
  ~GeneratedShard() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string input() const { return folder_ / "shard.bin"; }
  std::string output() const { return folder_ / "packed"; }
  std::int64_t tokens() const { return tokens_; }

 private:
  void write(const std::vector<std::int32_t>& lengths, const std::vector<std::uint16_t>& ids) const {
    const auto put = [](std::ofstream& out, const auto* values, std::size_t count) {
      out.write(reinterpret_cast<const char*>(values), static_cast<std::streamsize>(count * sizeof *values));
    };
    std::ofstream data(input(), std::ios::binary), index(folder_ / "shard.idx", std::ios::binary);
    put(data, ids.data(), ids.size());

    const std::uint64_t version = 1, sequences = lengths.size(), documents = lengths.size() + 1;
    const std::uint8_t u16 = 8;
    std::vector<std::int64_t> pointers{0}, document_begin(lengths.size() + 1);
    for (std::size_t i = 0; i + 1 < lengths.size(); ++i) pointers.push_back(pointers.back() + 2 * lengths[i]);
    std::iota(document_begin.begin(), document_begin.end(), 0);
    put(index, "MMIDIDX\0", 9);
    put(index, &version, 1);
    put(index, &u16, 1);
    put(index, &sequences, 1);
    put(index, &documents, 1);
    put(index, lengths.data(), lengths.size());
    put(index, pointers.data(), pointers.size());
    put(index, document_begin.data(), document_begin.size());
  }

  std::filesystem::path folder_;
  std::int64_t tokens_ = 0;
};

const GeneratedShard& shard() {
  static const GeneratedShard kShard;
  return kShard;
}

void count_tokens(benchmark::State& state, std::int64_t tokens) {
  state.counters["tokens/s"] = benchmark::Counter(static_cast<double>(tokens), benchmark::Counter::kIsIterationInvariantRate);
}

/// Runs job(context) on as many threads as the benchmark's argument says.
template <class Job>
void run(benchmark::State& state, Job job) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  NoProgress progress;
  NoDiagnostics diagnostics;
  const RunContext context{.pool = pool,
                           .stop = {},
                           .progress = progress,
                           .diagnostics = diagnostics,
                           .memory_bytes = std::int64_t{256} << 20,
                           .temp_dir = {}};
  for (auto _ : state) job(context);
  count_tokens(state, shard().tokens());
}

PackOptions pack_options() {
  PackOptions options;
  options.policy.row_tokens = options.packing.row_tokens = kRowTokens;
  options.force = true;
  return options;
}

void bench_scan(benchmark::State& state) {
  run(state, [](const RunContext& context) { benchmark::DoNotOptimize(scan({shard().input()}, {}, context)); });
}
BENCHMARK(bench_scan)
    ->Name("scan/megatron_u16")
    ->Arg(1)
    ->Arg(2)
    ->ArgName("threads")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void bench_pack(benchmark::State& state) {
  run(state, [](const RunContext& context) { pack({shard().input()}, shard().output(), pack_options(), context); });
}
BENCHMARK(bench_pack)
    ->Name("pack/megatron_u16")
    ->Arg(1)
    ->Arg(2)
    ->ArgName("threads")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void bench_verify(benchmark::State& state) {
  run(state, [first = true](const RunContext& context) mutable {
    if (first) pack({shard().input()}, shard().output(), pack_options(), context);
    first = false;
    benchmark::DoNotOptimize(verify(shard().output(), {}, context));
  });
}
BENCHMARK(bench_verify)
    ->Name("verify/native_u16")
    ->Arg(1)
    ->Arg(2)
    ->ArgName("threads")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void bench_fingerprint(benchmark::State& state) {
  const FingerprintKeys keys(kRowTokens);
  std::vector<std::uint16_t> ids(kRowTokens);
  std::iota(ids.begin(), ids.end(), std::uint16_t{0});
  SequenceId record = 0;
  for (auto _ : state) benchmark::DoNotOptimize(keys.of(++record, 0, std::span<const std::uint16_t>(ids)));
  count_tokens(state, kRowTokens);
}
BENCHMARK(bench_fingerprint)->Name("inner/fingerprint_u16");

void bench_derived(benchmark::State& state) {
  const std::vector<RowSegment> segments(8, {.file = 0, .record = 0, .first_token = 0, .tokens = 250, .slots = 250, .added = 0});
  std::vector<std::uint16_t> out(kRowTokens);
  for (auto _ : state) {
    fill_segment_ids<std::uint16_t>(segments, out);
    benchmark::DoNotOptimize(out.data());
    fill_position_ids<std::uint16_t>(segments, 0, out);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  count_tokens(state, kRowTokens);
}
BENCHMARK(bench_derived)->Name("inner/segment_and_position_ids");

}  // namespace
}  // namespace shardpack
