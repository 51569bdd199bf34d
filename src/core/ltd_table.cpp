// The table of a run: every optimizer step with its LayerTokens, up to where the budget is reached.
#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/units.h"
#include "shardpack/error.h"
#include "shardpack/ltd_schedule.h"

namespace shardpack {

namespace {

constexpr std::int64_t kMaxSteps = std::int64_t{1} << 28;  // 10 GiB of table

/// What some rows cost.
struct RowCost {
  std::int64_t layer_tokens = 0, dense_layer_tokens = 0, effective_tokens = 0;
};

/// Costs of the rows that a run reads.
class RowCosts {
 public:
  RowCosts(const LtdSchedule& schedule, const LtdRowTable* rows) : schedule_(schedule), rows_(rows) {
    // No step costs more than this, so that no product below can overflow.
    const std::int64_t batch =
        checked_mul(checked_mul(schedule.micro_batch, schedule.accumulation, "rows of a step"), schedule.world, "rows of a step");
    checked_mul(checked_mul(batch, schedule.seq_length, "tokens of a step"), schedule.layers, "LayerTokens of a step");
  }

  /// The rows [first, first + count) of a step's global batch.
  RowCost of(const StepShape& shape, std::int64_t step, std::int64_t first, std::int64_t count) const {
    RowCost cost;
    if (rows_ == nullptr) {
      const std::int64_t one = row_layer_tokens(schedule_, shape.row_tokens, shape.kept), pieces = count * shape.pieces;
      return {pieces * one, pieces * schedule_.layers * shape.row_tokens, pieces * (one / schedule_.layers)};
    }
    std::int64_t row = rows_->row_of(step, schedule_.global_batch(), first);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t tokens = rows_->tokens[static_cast<std::size_t>(row)];
      const std::int64_t one = row_layer_tokens(schedule_, tokens, shape.kept);
      cost.layer_tokens += one;
      cost.dense_layer_tokens += schedule_.layers * tokens;
      cost.effective_tokens += one / schedule_.layers;
      if (++row == rows_->rows()) row = 0;
    }
    return cost;
  }

 private:
  const LtdSchedule& schedule_;
  const LtdRowTable* rows_;
};

void check_rows(const LtdSchedule& schedule, const LtdRowTable& rows) {
  if (schedule.curriculum.kind != CurriculumKind::none) {
    throw Error(ErrorCode::usage, "--curriculum cuts rows, and packed rows are whole; leave it or the dataset out");
  }
  if (rows.rows() == 0) throw Error(ErrorCode::usage, "the dataset has no rows to schedule");
  const Length widest = *std::max_element(rows.width.begin(), rows.width.end());
  if (widest > schedule.seq_length) {
    throw Error(ErrorCode::usage, fmt::format("rows of {} slots do not fit --seq-length {}", with_commas(widest),
                                              with_commas(schedule.seq_length)));
  }
  if (std::all_of(rows.tokens.begin(), rows.tokens.end(), [](Length tokens) { return tokens == 0; })) {
    throw Error(ErrorCode::usage, "the dataset holds no token to schedule");
  }
}

/// A budget that takes more steps than a table holds is refused before it is made.
void check_budget(const LtdSchedule& schedule, const Budget& budget) {
  if (budget.amount < 1) {
    throw Error(ErrorCode::usage, "when does the run end? Give --total-steps, --total-tokens or --total-layer-tokens");
  }
  std::int64_t most = 1;  // that one step takes of it
  if (budget.kind != BudgetKind::steps) most = schedule.global_batch() * schedule.seq_length;
  if (budget.kind == BudgetKind::layer_tokens) most *= schedule.layers;
  if (budget.amount / most > kMaxSteps) {
    throw Error(ErrorCode::limit, fmt::format("the run takes more than {} optimizer steps", with_commas(kMaxSteps)));
  }
}

std::int64_t amount_of(BudgetKind kind, std::int64_t effective_tokens, std::int64_t layer_tokens) {
  return kind == BudgetKind::tokens ? effective_tokens : layer_tokens;
}

/// The budget is reached within `step`, before which `before` was consumed: at which micro-step?
BudgetEnd find_end(const RowCosts& costs, const LtdSchedule& schedule, const Budget& budget, const StepShape& shape,
                   std::int64_t step, const LtdStep& before) {
  const std::int64_t rows = schedule.micro_batch * schedule.world;
  BudgetEnd end{.micro_step = checked_mul(step, schedule.accumulation, "micro-steps"),
                .optimizer_step = step,
                .tokens = before.effective_tokens,
                .layer_tokens = before.cumulative};
  for (std::int64_t micro = 0; micro < schedule.accumulation; ++micro) {
    const RowCost cost = costs.of(shape, step, micro * rows, rows);
    end.tokens += cost.effective_tokens;
    end.layer_tokens += cost.layer_tokens;
    ++end.micro_step;
    if (amount_of(budget.kind, end.tokens, end.layer_tokens) >= budget.amount) break;
  }
  end.optimizer_step = end.micro_step / schedule.accumulation;
  return end;
}

}  // namespace

double LtdTable::saving() const {
  if (dense_layer_tokens == 0) return 0;
  return 1 - static_cast<double>(layer_tokens) / static_cast<double>(dense_layer_tokens);
}

LtdTable make_ltd_table(const LtdSchedule& schedule, const Budget& budget, const LearningRate& rate, const LtdRowTable* rows) {
  check_schedule(schedule);
  if (rows != nullptr) check_rows(schedule, *rows);
  const RowCosts costs(schedule, rows);
  check_budget(schedule, budget);

  LtdTable table;
  LtdStep before;  // what was consumed so far
  RowCost cost;
  for (bool done = false; !done;) {
    const auto step = static_cast<std::int64_t>(table.steps.size());
    if (step == kMaxSteps) {
      throw Error(ErrorCode::limit, fmt::format("the run takes more than {} optimizer steps", with_commas(kMaxSteps)));
    }
    const StepShape shape = shape_at(schedule, step);
    const bool new_shape = table.plateaus.empty() || !(table.plateaus.back().shape == shape);
    if (new_shape || rows != nullptr) cost = costs.of(shape, step, 0, schedule.global_batch());
    if (new_shape) {
      table.plateaus.push_back(
          {.shape = shape, .first_step = step, .layer_tokens_per_step = rows == nullptr ? cost.layer_tokens : -1});
    }
    LtdPlateau& plateau = table.plateaus.back();
    ++plateau.steps;
    plateau.layer_tokens += cost.layer_tokens;

    LtdStep now{.kept = shape.kept, .layer_tokens = cost.layer_tokens};
    now.cumulative = checked_add(before.cumulative, cost.layer_tokens, "LayerTokens");
    now.effective_tokens = before.effective_tokens + cost.effective_tokens;
    table.dense_layer_tokens = checked_add(table.dense_layer_tokens, cost.dense_layer_tokens, "LayerTokens");
    if (budget.kind == BudgetKind::steps) {
      done = step + 1 == budget.amount;
      if (done)
        table.budget = {checked_mul(step + 1, schedule.accumulation, "micro-steps"), step + 1, now.effective_tokens,
                        now.cumulative};
    } else {
      done = amount_of(budget.kind, now.effective_tokens, now.cumulative) >= budget.amount;
      if (done) table.budget = find_end(costs, schedule, budget, shape, step, before);
    }
    table.steps.push_back(now);
    before = now;
  }
  table.layer_tokens = before.cumulative;
  table.effective_tokens = before.effective_tokens;

  LearningRate settled = rate;
  if (settled.decay_layer_tokens == 0) settled.decay_layer_tokens = table.layer_tokens;
  for (std::size_t s = 0; s < table.steps.size(); ++s) {
    const std::size_t counted = s - std::min(s, static_cast<std::size_t>(settled.lag));  // steps whose LayerTokens count
    table.steps[s].learning_rate = learning_rate(settled, counted == 0 ? 0 : table.steps[counted - 1].cumulative);
  }
  return table;
}

}  // namespace shardpack
