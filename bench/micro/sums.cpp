// Each form of the scan's loops that this processor runs: XXH3, the fingerprint's sums over sequences of one length, the id
// range.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/hash_forms.h"
#include "base/rng.h"
#include "core/id_loops.h"

namespace shardpack {
namespace {

constexpr std::size_t kIds = 1 << 18;  // 1 MiB of u32 ids: what a scan reads at once

std::vector<std::uint64_t> draws(std::size_t count) {
  const RandomStream random(7, RandomPurpose::sample);
  std::vector<std::uint64_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = random.value(i);
  return values;
}

std::vector<std::uint32_t> some_ids() {
  std::vector<std::uint32_t> ids;
  for (const std::uint64_t value : draws(kIds)) ids.push_back(static_cast<std::uint32_t>(value % 50'257));
  return ids;
}

void count_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

void hashing(benchmark::State& state, const HashForm& form, std::size_t bytes) {
  const std::string text(bytes, 'x');
  StreamHash hash(form);
  for (auto _ : state) hash.update(text);
  benchmark::DoNotOptimize(hash.hex());
  count_bytes(state, bytes);
}

void summing(benchmark::State& state, const IdLoops& form, std::size_t length) {
  const std::vector<std::uint64_t> keys = draws(2 * length);
  const std::vector<std::uint32_t> ids = some_ids();
  const std::size_t sequences = kIds / length;
  for (auto _ : state) {
    for (std::size_t i = 0; i < sequences; ++i) {
      benchmark::DoNotOptimize(form.sums_u32(keys.data(), keys.data() + length, std::span(ids).subspan(i * length, length)));
    }
  }
  count_bytes(state, sequences * length * sizeof(std::uint32_t));
}

void ranging(benchmark::State& state, const IdLoops& form) {
  const std::vector<std::uint32_t> ids = some_ids();
  for (auto _ : state) benchmark::DoNotOptimize(form.range_u32(ids));
  count_bytes(state, kIds * sizeof(std::uint32_t));
}

const bool kRegistered = [] {
  for (const HashForm& form : hash_forms()) {
    for (const std::size_t bytes : {std::size_t{1} << 12, std::size_t{1} << 20}) {
      benchmark::RegisterBenchmark(("hash/" + std::string(form.name) + "/" + std::to_string(bytes)).c_str(), hashing, form,
                                   bytes);
    }
  }
  for (const IdLoops& form : id_loops()) {
    for (const std::size_t length : {16, 256, 2048}) {
      benchmark::RegisterBenchmark(("key_sums/" + std::string(form.name) + "/" + std::to_string(length)).c_str(), summing, form,
                                   length);
    }
    benchmark::RegisterBenchmark(("id_range/" + std::string(form.name)).c_str(), ranging, form);
  }
  return true;
}();

}  // namespace
}  // namespace shardpack
