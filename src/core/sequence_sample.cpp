#include "core/sequence_sample.h"

#include <algorithm>
#include <span>

#include "base/rng.h"
#include "base/wide.h"

namespace shardpack {

std::vector<std::int64_t> sample_in_order(const LengthHistogram& sequences, std::int64_t most, std::uint64_t seed) {
  const std::int64_t all = sequences.sequences() - sequences.empty();
  const std::int64_t drawn = std::min(all, most);
  const RandomStream place(seed, RandomPurpose::sample, 0), order(seed, RandomPurpose::sample, 1);

  std::vector<std::int64_t> lengths;
  lengths.reserve(static_cast<std::size_t>(drawn));
  const std::vector<LengthCount> counts = sequences.counts();
  std::size_t at = sequences.empty() > 0 ? 1 : 0;  // counts[at] covers the sorted sequences up to `covered`
  std::int64_t covered = drawn > 0 ? counts[at].count : 0;
  const auto run_begin = [&](std::int64_t run) {
    return static_cast<std::int64_t>(Uint128(run) * Uint128(all) / Uint128(drawn));
  };
  for (std::int64_t run = 0; run < drawn; ++run) {
    const std::int64_t begin = run_begin(run), size = run_begin(run + 1) - begin;
    const auto offset = place.bounded(static_cast<std::uint64_t>(run), static_cast<std::uint64_t>(size));
    const std::int64_t chosen = begin + static_cast<std::int64_t>(offset);
    while (covered <= chosen) covered += counts[++at].count;
    lengths.push_back(counts[at].length);
  }
  order.shuffle(std::span(lengths));
  return lengths;
}

}  // namespace shardpack
