// sweep --batching: what every batching strategy would cost, predicted from the lengths.
#pragma once

#include <string>
#include <vector>

#include "shardpack/batch_cost.h"
#include "shardpack/batch_prediction.h"
#include "shardpack/formats.h"
#include "shardpack/item.h"
#include "shardpack/run_context.h"

namespace shardpack {

struct BatchSweepOptions {
  LengthPolicy policy;  ///< row_tokens = the longest that a batch takes (0 = no limit), overlong, min_tokens
  BatchOptions plan;    ///< all but the strategy, which is tried in turn; batch_size is needed
  CostModel cost = published_cost_model();
};

struct BatchSweepRow {
  BatchStrategy strategy;
  BatchPrediction prediction;
  double minutes = 0;
};

struct BatchSweepResult {
  std::int64_t source_sequences = 0, source_tokens = 0;
  std::int64_t sequences = 0, tokens = 0;  ///< batched
  RemovedCounts removed{};
  BatchSweepOptions options;
  std::vector<BatchSweepRow> rows;  ///< the costliest kind first: fixed, dynamic, ..., sorted, tokens, quad
};

/// The strategies that are tried for batches of `batch_size` sequences of at most `longest` tokens, padded: budgets as large as a
/// batch of the longest.
std::vector<BatchStrategy> swept_strategies(std::int64_t batch_size, Length longest);

/// Inputs: one histogram file (CSV, JSON, list, .npy of lengths), or shards.
/// \throws Error{usage} without a batch size, Error{bad_data} for over-long sequences under Overlong::error
BatchSweepResult sweep_batching(const std::vector<std::string>& inputs, const ReadOptions& read, const BatchSweepOptions& options,
                                const RunContext& context);

}  // namespace shardpack
