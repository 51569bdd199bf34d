// What a batching strategy would cost, from a histogram of lengths alone: no plan, no data.
#pragma once

#include <cstdint>

#include "shardpack/batch_cost.h"
#include "shardpack/batch_plan.h"
#include "shardpack/length_histogram.h"

namespace shardpack {

/// Of one epoch.
struct BatchPrediction {
  double batches = 0;
  double real_tokens = 0;  ///< with what --tail repeat counts again
  double padded_tokens = 0, padded_squares = 0;
  double shapes = 0;                         ///< different (size, padded length) pairs
  double repeat_share = 0;                   ///< of pairs that share a batch, those that share one in the next epoch too: about
  double imbalance = 1, free_imbalance = 1;  ///< in rank groups, and shuffled freely: about
  bool exact = false;                        ///< batches, tokens and squares are those of every plan; expected values otherwise

  double padding() const { return padded_tokens > 0 ? 1 - real_tokens / padded_tokens : 0; }
  BatchWork work() const { return {padded_tokens, padded_squares, batches}; }
};

/// `sorted`, `tokens`, `quad` and `fixed` are exact unless the tail is dropped; `gist` is simulated on at most 2^18 lengths; the
/// others are expected values. Length 0 is ignored. Time depends on the distinct lengths and never on the number of sequences.
/// \throws Error{usage} for options that contradict each other, Error{bad_data} for a length that no batch can hold
BatchPrediction predict_batches(const LengthHistogram& lengths, const BatchOptions& options);

}  // namespace shardpack
