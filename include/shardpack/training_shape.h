// How a trainer consumes rows: over how many ranks, in how many micro-steps, how many at a time.
#pragma once

#include <cstdint>

namespace shardpack {

/// Row ((step x accumulation + micro-step) x world + rank) x micro_batch + i of the dataset is the i-th of a rank in a
/// micro-step.
struct TrainingShape {
  std::int64_t world = 1;         ///< data-parallel ranks
  std::int64_t accumulation = 1;  ///< micro-steps of an optimizer step
  std::int64_t micro_batch = 1;   ///< rows of a rank and micro-step

  std::int64_t micro_step_rows() const { return world * micro_batch; }  ///< over all ranks
  std::int64_t step_rows() const { return micro_step_rows() * accumulation; }
};

}  // namespace shardpack
