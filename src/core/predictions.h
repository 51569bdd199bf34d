// What other ways of batching would cost, from lengths alone.
#pragma once

#include <cstdint>

#include "shardpack/length_histogram.h"

namespace shardpack {

/// Expected slots of dynamic padding: random batches of `batch` sequences, each padded to its longest. For N sequences N *
/// E[max], E[max] = sum over l >= 0 of 1 - F(l)^batch (sampling with replacement; F = share of lengths <= l). Length 0 is
/// ignored.
std::int64_t expected_dynamic_slots(const LengthHistogram& lengths, std::int64_t batch);

}  // namespace shardpack
