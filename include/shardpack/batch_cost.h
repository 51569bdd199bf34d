// Minutes of training from three figures of a batch plan: padded tokens, padded tokens times padded length, and micro-batches.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace shardpack {

/// What is paid for: the work that grows with tokens, with attention, and with every launch.
struct BatchWork {
  double padded_tokens = 0;   ///< sum of size x padded length
  double padded_squares = 0;  ///< sum of size x padded length squared
  double batches = 0;         ///< micro-batches
};

struct CostModel {
  std::string name;  ///< "published", "calibrated"
  double minutes_per_token = 0, minutes_per_square = 0, minutes_per_batch = 0;

  double minutes(const BatchWork& work) const {
    return minutes_per_token * work.padded_tokens + minutes_per_square * work.padded_squares + minutes_per_batch * work.batches;
  }
};

/// Fitted to the times of the published work on smart batching (BERT base on an RTX 2080 Ti): in single precision, and mixed.
CostModel published_cost_model();
CostModel published_mixed_precision_model();

struct TimedWork {
  BatchWork work;
  double minutes = 0;  ///< measured, above 0
};

/// Non-negative least squares of the relative errors. \throws Error{bad_data} for no or impossible measurements
CostModel fit_cost_model(std::span<const TimedWork> measured);

}  // namespace shardpack
