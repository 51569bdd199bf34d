// An order for sequences of which only the lengths are known.
#pragma once

#include <cstdint>
#include <vector>

#include "shardpack/length_histogram.h"

namespace shardpack {

/// Lengths of min(N, most) of the N non-empty sequences in a seeded random order. A sample is stratified: with the sequences
/// sorted by length, one is drawn from each of `most` runs of (nearly) equal size, so it has the histogram's own quantiles.
/// Pure; O(most + distinct lengths).
std::vector<std::int64_t> sample_in_order(const LengthHistogram& sequences, std::int64_t most, std::uint64_t seed);

}  // namespace shardpack
