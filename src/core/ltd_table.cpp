// The table of a run: every optimizer step with its LayerTokens, up to where the budget is reached.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "base/units.h"
#include "shardpack/error.h"
#include "shardpack/ltd_schedule.h"

namespace shardpack {

namespace {

/// What some rows cost, counted one way.
struct RowCost {
  std::int64_t layer_tokens = 0, dense_layer_tokens = 0, effective_tokens = 0;
};
/// Counted both ways; index = TokenCount.
using RowCosts = std::array<RowCost, 2>;

/// Costs of the rows that a run reads.
class CostTable {
 public:
  CostTable(const LtdSchedule& schedule, const LtdRowTable* rows) : schedule_(schedule), rows_(rows) {
    // No step costs more than this, so that no product below can overflow.
    const std::int64_t batch =
        checked_mul(checked_mul(schedule.micro_batch, schedule.accumulation, "rows of a step"), schedule.world, "rows of a step");
    checked_mul(checked_mul(batch, schedule.seq_length, "tokens of a step"), schedule.layers, "LayerTokens of a step");
  }

  RowCosts of_step(const StepShape& shape, std::int64_t step) const {
    return rows_ == nullptr ? full_rows(shape, schedule_.global_batch()) : of(shape, rows_->of_steps(schedule_, step));
  }
  RowCosts of_micro_step(const StepShape& shape, std::int64_t step, std::int64_t micro) const {
    return rows_ == nullptr ? full_rows(shape, schedule_.micro_batch * schedule_.world)
                            : of(shape, rows_->of_micro_step(schedule_, step, micro));
  }

 private:
  RowCosts full_rows(const StepShape& shape, std::int64_t count) const {
    RowCost cost;
    add(cost, shape.row_tokens, shape.kept, count * shape.pieces);
    return {cost, cost};
  }

  RowCosts of(const StepShape& shape, const LtdReads& reads) const {
    RowCosts costs;
    for (std::int64_t read = reads.first; read < reads.first + reads.count; ++read) {
      const LtdRow row = rows_->at(read);
      const std::int64_t kept = kept_in(schedule_, shape, row.width);
      if (row.counts) add(costs[static_cast<std::size_t>(TokenCount::real)], row.tokens, kept, 1);
      add(costs[static_cast<std::size_t>(TokenCount::padded)], row.width, kept, 1);
    }
    return costs;
  }

  void add(RowCost& cost, std::int64_t tokens, std::int64_t kept, std::int64_t times) const {
    const std::int64_t one = row_layer_tokens(schedule_, tokens, kept);
    cost.layer_tokens += times * one;
    cost.dense_layer_tokens += times * schedule_.layers * tokens;
    cost.effective_tokens += times * (one / schedule_.layers);
  }

  const LtdSchedule& schedule_;
  const LtdRowTable* rows_;
};

void check_rows(const LtdSchedule& schedule, const LtdRowTable& rows) {
  if (schedule.curriculum.kind != CurriculumKind::none) {
    throw Error(ErrorCode::usage, "--curriculum cuts rows, and packed rows and batches are whole; leave it or the dataset out");
  }
  if (rows.cycle() == 0) throw Error(ErrorCode::usage, "the dataset has no rows to schedule");
  if (rows.widest() > schedule.seq_length) {
    throw Error(ErrorCode::usage, fmt::format("rows of {} slots do not fit --seq-length {}", with_commas(rows.widest()),
                                              with_commas(schedule.seq_length)));
  }
  for (std::int64_t read = 0; read < rows.cycle(); ++read) {
    if (const LtdRow row = rows.at(read); row.counts && row.tokens > 0) return;
  }
  throw Error(ErrorCode::usage, "the dataset holds no token to schedule");
}

[[noreturn]] void refuse_steps() {
  throw Error(ErrorCode::limit, fmt::format("the run takes more than {} optimizer steps, the most that a table holds; end it "
                                            "earlier (--total-steps {}), or give a larger batch",
                                            with_commas(kMaxLtdSteps), kMaxLtdSteps));
}

/// A budget that takes more steps than a table holds is refused before it is made.
void check_budget(const LtdSchedule& schedule, const Budget& budget) {
  if (budget.amount < 1) {
    throw Error(ErrorCode::usage, "when does the run end? Give --total-steps, --total-tokens or --total-layer-tokens");
  }
  std::int64_t most = 1;  // that one step takes of it
  if (budget.kind != BudgetKind::steps) most = schedule.global_batch() * schedule.seq_length;
  if (budget.kind == BudgetKind::layer_tokens) most *= schedule.layers;
  if (ceil_div(budget.amount, most) > kMaxLtdSteps) refuse_steps();
}

void add_totals(LtdTotals& totals, const RowCost& cost) {
  totals.layer_tokens = checked_add(totals.layer_tokens, cost.layer_tokens, "LayerTokens");
  totals.dense_layer_tokens = checked_add(totals.dense_layer_tokens, cost.dense_layer_tokens, "LayerTokens");
}

std::int64_t amount_of(BudgetKind kind, std::int64_t effective_tokens, std::int64_t layer_tokens) {
  return kind == BudgetKind::tokens ? effective_tokens : layer_tokens;
}

/// The budget is reached within `step`, before which `before` was consumed: at which micro-step?
BudgetEnd find_end(const CostTable& costs, const LtdSchedule& schedule, const Budget& budget, const StepShape& shape,
                   std::int64_t step, const LtdStep& before) {
  BudgetEnd end{.micro_step = checked_mul(step, schedule.accumulation, "micro-steps"),
                .optimizer_step = step,
                .tokens = before.effective_tokens,
                .layer_tokens = before.cumulative};
  for (std::int64_t micro = 0; micro < schedule.accumulation; ++micro) {
    const RowCost cost = costs.of_micro_step(shape, step, micro)[static_cast<std::size_t>(schedule.count)];
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
  const CostTable costs(schedule, rows);
  check_budget(schedule, budget);

  LtdTable table;
  if (budget.kind == BudgetKind::steps) table.steps.reserve(static_cast<std::size_t>(budget.amount));
  LtdStep before;  // what was consumed so far
  RowCosts both;
  for (bool done = false; !done;) {
    const auto step = static_cast<std::int64_t>(table.steps.size());
    if (step == kMaxLtdSteps) refuse_steps();
    const StepShape shape = shape_at(schedule, step);
    const bool new_shape = table.plateaus.empty() || !(table.plateaus.back().shape == shape);
    if (new_shape || rows != nullptr) both = costs.of_step(shape, step);
    const RowCost& cost = both[static_cast<std::size_t>(schedule.count)];
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
    add_totals(table.real, both[static_cast<std::size_t>(TokenCount::real)]);
    add_totals(table.padded, both[static_cast<std::size_t>(TokenCount::padded)]);
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
