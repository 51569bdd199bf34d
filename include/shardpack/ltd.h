// The random-LTD jobs: a schedule folder for a run, one set of kept slots, and what inspect shows of a folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shardpack/ltd_manifest.h"
#include "shardpack/run_context.h"

namespace shardpack {

/// As given: what is missing comes from the DeepSpeed config, else from the dataset, else from its default.
struct LtdOptions {
  std::optional<std::int64_t> kept_start, kept_max, kept_step, ramp_steps;
  std::optional<std::int64_t> layers, ltd_layers;
  std::vector<std::int64_t> layer_ids = {};  ///< empty = all but the first and the last, ltd_layers of them
  std::optional<std::int64_t> micro_batch, accumulation, world, global_batch, seq_length;
  std::optional<Curriculum> curriculum;
  std::optional<CurriculumUse> curriculum_use;
  KeptLength kept_length = KeptLength::absolute;
  TokenCount count = TokenCount::real;
  std::string deepspeed;  ///< path of a config; empty = none

  std::optional<std::int64_t> total_steps, total_tokens, total_layer_tokens;
  LearningRate rate;             ///< decay_layer_tokens 0 = to the end of the budget
  std::optional<KeptMode> mode;  ///< default: quota for packed rows, else uniform
  std::uint64_t seed = 0;
  std::int64_t hidden_size = 0;

  bool write_indices = false;
  std::optional<StepWindow> window;                ///< of the indices and boundaries; default: the whole run
  std::int64_t index_cap = std::int64_t{1} << 30;  ///< bytes
  bool force = false, dry_run = false;
};

struct LtdResult {
  LtdManifest manifest;
  std::vector<LtdPlateau> plateaus;
  std::int64_t bytes_written = 0;
};

/// \param rows  a packed dataset's folder; a batch plan's, and when it batches rows that packed dataset's too; or none: then
/// every row is full \throws Error{usage} for options that do not fit together, Error{limit} for indices above the cap, and what
/// the readers throw
LtdResult ltd(const std::vector<std::string>& rows, const std::string& output, const LtdOptions& options,
              const RunContext& context);

/// The kept slots at one place of the run.
struct KeptSlots {
  KeptPlace place;
  StepShape shape;
  std::vector<std::uint32_t> slots;
};
KeptSlots ltd_kept_at(const std::vector<std::string>& rows, const LtdOptions& options, const KeptPlace& place,
                      const RunContext& context);

}  // namespace shardpack
