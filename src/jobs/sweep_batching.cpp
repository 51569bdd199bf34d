#include <algorithm>
#include <optional>

#include "base/checked.h"
#include "io/histogram_file.h"
#include "io/source.h"
#include "jobs/index_views.h"
#include "shardpack/batch_sweep.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

LengthHistogram read_lengths_of(const std::vector<std::string>& inputs, const ReadOptions& read, const RunContext& context) {
  if (inputs.size() == 1 && read.format.empty() && !read.eos_id) {
    if (std::optional<LengthHistogram> histogram = read_histogram(inputs[0])) return *std::move(histogram);
  }
  return lengths_of(open_source(inputs, read, {.random_access = false, .columns = false}, context).source->index());
}

}  // namespace

std::vector<BatchStrategy> swept_strategies(std::int64_t batch_size, Length longest) {
  constexpr std::int64_t kQuadratic = 512;  // tokens whose attention costs as much as the rest of the layer
  const std::int64_t budget = checked_mul(batch_size, longest, "padded tokens of a batch");
  const std::int64_t whole_longest = longest + ceil_div(checked_mul(longest, longest, "a squared length"), kQuadratic);
  std::vector<BatchStrategy> strategies;
  for (const char* text : {"fixed", "dynamic", "buckets:auto:8", "mega:10", "mega:50", "pool:100", "gist", "sorted"}) {
    strategies.push_back(parse_batch_strategy(text));
  }
  strategies.push_back({.kind = BatchKind::tokens, .amount = budget});
  strategies.push_back({.kind = BatchKind::quad, .amount = std::max(budget, whole_longest), .quadratic = kQuadratic});
  return strategies;
}

BatchSweepResult sweep_batching(const std::vector<std::string>& inputs, const ReadOptions& read, const BatchSweepOptions& options,
                                const RunContext& context) {
  check_batch_options(options.plan);
  const LengthHistogram lengths = read_lengths_of(inputs, read, context);
  BatchLengths selection = select_batch_lengths(lengths, options.policy);
  BatchSweepResult result;
  result.source_sequences = lengths.sequences();
  result.source_tokens = lengths.tokens();
  result.sequences = selection.lengths.sequences();
  result.tokens = selection.lengths.tokens();
  result.removed = selection.removed;
  result.options = options;
  if (result.sequences == 0) return result;

  const Length longest = options.plan.pad.padded(selection.lengths.max_length());
  for (const BatchStrategy& strategy : swept_strategies(options.plan.batch_size, longest)) {
    BatchOptions plan = options.plan;
    plan.strategy = strategy;
    plan.fixed_length = options.policy.row_tokens;
    if (strategy.has_budget()) plan.batch_size = 0;
    BatchSweepRow row{.strategy = strategy, .prediction = predict_batches(selection.lengths, plan)};
    row.minutes = options.cost.minutes(row.prediction.work());
    result.rows.push_back(row);
  }
  return result;
}

}  // namespace shardpack
