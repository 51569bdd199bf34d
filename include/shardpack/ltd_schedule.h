// Random layerwise token dropping (random-LTD), the schedule: how many tokens the middle layers keep at every optimizer step, the
// LayerTokens that this costs, and the learning rate that follows them. Pure functions of the step; docs/ltd.md has the formulas.
//
// One LayerToken is one token that one layer works on. Optimizer steps count from 0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shardpack/ltd_row_table.h"
#include "shardpack/ltd_selection.h"

namespace shardpack {

/// Monotonic growth of the kept length: start + step * (max - start) / ramp_steps, rounded down to a multiple of `granularity`,
/// at most max.
struct KeptGrowth {
  std::int64_t start = 0, max = 0;  ///< tokens
  std::int64_t granularity = 1;     ///< tokens; --kept-step
  std::int64_t ramp_steps = 0;      ///< optimizer steps from start to max
};
std::int64_t kept_at(const KeptGrowth& growth, std::int64_t step);

/// A curriculum of sequence lengths that composes with the dropping.
enum class CurriculumKind : std::uint8_t { none, fixed_linear, fixed_root, fixed_discrete };
inline constexpr std::string_view kCurriculumKinds[] = {"none", "fixed_linear", "fixed_root", "fixed_discrete"};
enum class CurriculumUse : std::uint8_t {
  truncate,  ///< rows are cut to the length, the rest of their tokens is not trained on
  reshape,   ///< each row is cut into as many rows of the length as it holds
};
inline constexpr std::string_view kCurriculumUses[] = {"truncate", "reshape"};

struct Curriculum {
  CurriculumKind kind = CurriculumKind::none;
  CurriculumUse use = CurriculumUse::truncate;
  std::int64_t start = 0, max = 0, granularity = 1, ramp_steps = 0;  ///< linear and root
  std::int64_t root_degree = 2;                                      ///< root
  std::vector<std::int64_t> lengths = {};                            ///< discrete
  std::vector<std::int64_t> until = {};  ///< discrete: last count of each length but the last; one entry fewer than lengths
};
/// \param count  of the optimizer step, from 1: the released scheduler is updated before the first one
std::int64_t curriculum_length(const Curriculum& curriculum, std::int64_t count);

/// What the kept length means for a batch that is padded to fewer tokens than a row may have.
enum class KeptLength : std::uint8_t {
  absolute,  ///< so many tokens: a shorter batch drops none
  ratio,     ///< so many of a full row: a shorter batch keeps the same share, rounded down to the granularity
};
inline constexpr std::string_view kKeptLengths[] = {"absolute", "ratio"};

/// Which tokens LayerTokens and effective tokens count. Without a dataset every slot is a real token.
enum class TokenCount : std::uint8_t {
  real,    ///< those of the rows, without padding and without rows of weight 0: what is trained on
  padded,  ///< every slot of every row: what the layers compute
};
inline constexpr std::string_view kTokenCounts[] = {"real", "padded"};

struct LtdSchedule {
  KeptGrowth growth;
  KeptLength kept_length = KeptLength::absolute;
  TokenCount count = TokenCount::real;
  Curriculum curriculum;
  std::int64_t layers = 0, ltd_layers = 0;
  std::int64_t micro_batch = 0, accumulation = 1, world = 1;  ///< rows a rank and micro-step (the most); micro-steps; ranks
  std::int64_t seq_length = 0;                                ///< tokens of a row; of the longest where batches differ

  std::int64_t global_batch() const { return micro_batch * accumulation * world; }  ///< rows an optimizer step (the most)
};

/// Names the field as its option ("--kept-start"). \throws Error{usage} for what cannot be trained, above all a first step that
/// keeps no token
void check_schedule(const LtdSchedule& schedule);

/// What a step works on. With a reshaping curriculum a row of the batch is `pieces` rows.
struct StepShape {
  std::int64_t row_tokens = 0, pieces = 1, kept = 0;  ///< kept <= row_tokens; equal = nothing is dropped
  friend bool operator==(const StepShape&, const StepShape&) = default;
};
StepShape shape_at(const LtdSchedule& schedule, std::int64_t step);

/// Slots that a row of `width` slots keeps in a step of that shape.
std::int64_t kept_in(const LtdSchedule& schedule, const StepShape& shape, std::int64_t width);

/// LayerTokens of one row of `tokens`: the middle layers see at most `kept` of them.
constexpr std::int64_t row_layer_tokens(const LtdSchedule& schedule, std::int64_t tokens, std::int64_t kept) {
  return (schedule.layers - schedule.ltd_layers) * tokens + schedule.ltd_layers * (kept < tokens ? kept : tokens);
}

// ---- learning rate ----------------------------------------------------------------------------------------------------------
enum class LrDecay : std::uint8_t { cosine, linear, constant };
inline constexpr std::string_view kLrDecays[] = {"cosine", "linear", "constant"};

struct LearningRate {
  double peak = 1, min = 0;
  std::int64_t warmup_layer_tokens = 0;
  std::int64_t decay_layer_tokens = 0;  ///< where the decay ends, counted from the start of the run
  LrDecay decay = LrDecay::cosine;
  int lag = 0;  ///< steps by which the consumed count lags behind: 0 = all steps before this one, 1 = all but the last of them
};
double learning_rate(const LearningRate& rate, std::int64_t consumed_layer_tokens);

// ---- the run ----------------------------------------------------------------------------------------------------------------
enum class BudgetKind : std::uint8_t { steps, tokens, layer_tokens };
inline constexpr std::string_view kBudgetKinds[] = {"steps", "tokens", "layer_tokens"};

/// When the run ends: after so many optimizer steps, effective tokens (LayerTokens / layers, rounded down row by row as the
/// trainers do) or LayerTokens.
struct Budget {
  BudgetKind kind = BudgetKind::steps;
  std::int64_t amount = 0;
};

/// Where the budget was reached. Trainers that count inside an accumulation stop there; the table holds whole optimizer steps.
struct BudgetEnd {
  std::int64_t micro_step = 0;      ///< micro-steps done
  std::int64_t optimizer_step = 0;  ///< optimizer steps finished by then
  std::int64_t tokens = 0;          ///< effective tokens consumed
  std::int64_t layer_tokens = 0;
};

struct LtdStep {
  std::int64_t kept = 0, layer_tokens = 0;
  std::int64_t cumulative = 0;        ///< LayerTokens of this step and all before
  std::int64_t effective_tokens = 0;  ///< the same in effective tokens
  double learning_rate = 0;
};

/// A run of steps of one shape.
struct LtdPlateau {
  StepShape shape;
  std::int64_t first_step = 0, steps = 0, layer_tokens = 0;
  std::int64_t layer_tokens_per_step = -1;  ///< -1 where the rows differ from step to step
};

/// LayerTokens of a run, and those of the same steps without dropping.
struct LtdTotals {
  std::int64_t layer_tokens = 0, dense_layer_tokens = 0;
};

struct LtdTable {
  std::vector<LtdStep> steps;
  std::vector<LtdPlateau> plateaus;
  BudgetEnd budget;
  std::int64_t layer_tokens = 0, dense_layer_tokens = 0, effective_tokens = 0;  ///< as the schedule counts
  LtdTotals real, padded;                                                       ///< counted either way

  double saving() const;  ///< of LayerTokens against the same steps without dropping
};

/// A table takes 40 bytes a step, in memory and about as many on disk: 640 MiB at most. The longest published run has 3 million.
inline constexpr std::int64_t kMaxLtdSteps = std::int64_t{1} << 24;

/// \param rows  the rows that the run reads in turn, for exact counts; null = every row is full
/// \throws Error{usage} for what check_schedule() refuses and for rows with a curriculum, Error{limit} for more steps than
/// kMaxLtdSteps or totals above 2^63
LtdTable make_ltd_table(const LtdSchedule& schedule, const Budget& budget, const LearningRate& rate, const LtdRowTable* rows);

/// Query-key pairs that attention works on, summed over layers, rows and steps, and what else only the rows' segments tell.
/// Expected values over the selection's random numbers; exact where rows have one segment.
struct LtdAttention {
  double pairs = 0;               ///< with dropping, inside segments
  double dense_pairs = 0;         ///< the same steps without dropping, inside segments
  double full_row_pairs = 0;      ///< without dropping and without segments: every slot of the row with every other
  double empty_segments = 0;      ///< (step, layer, segment) without a kept token
  double segments = 0;            ///< (step, layer, segment) in all
  std::int64_t kept_padding = 0;  ///< (step, layer, slot): padding that fills rows with fewer tokens than are kept
  double max_inclusion = 1;       ///< largest chance of a token to be kept, over kept / tokens of its row; 1 unless quota-min1

  double saving() const { return dense_pairs > 0 ? 1 - pairs / dense_pairs : 0; }
};
LtdAttention ltd_attention(const LtdSchedule& schedule, const LtdTable& table, KeptMode mode, const LtdRowTable* rows);

/// Share of the forward FLOPs saved, layers of 24 h^2 a token and 4 h a pair.
double flop_saving(const LtdTable& table, const LtdAttention& attention, std::int64_t hidden_size);

}  // namespace shardpack
