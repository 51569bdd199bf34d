#include "jobs/ltd_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/checked.h"
#include "base/units.h"
#include "io/file.h"
#include "io/ltd_files.h"
#include "jobs/deepspeed_config.h"
#include "shardpack/error.h"
#include "shardpack/lint.h"

namespace shardpack {

namespace {

using Number = std::optional<std::int64_t>;

constexpr std::int64_t kMaxLayers = 1 << 16;  // each is listed in every file of the folder that names layers

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::usage, message); }

std::int64_t required(const Number& flag, const Number& config, const char* option, const char* what) {
  if (flag) return *flag;
  if (config) return *config;
  refuse(fmt::format("{}? Give {} N, or a DeepSpeed config with --deepspeed", what, option));
}
Number first_of(const Number& flag, const Number& config) { return flag ? flag : config; }

/// rows a step = micro-batch x accumulation x ranks: what is missing follows from the rest, ranks and accumulation being 1 where
/// nothing tells.
void settle_batch(const LtdOptions& options, const DeepSpeedSettings& config, LtdSchedule& schedule) {
  const Number global = first_of(options.global_batch, config.global_batch);
  const Number micro = first_of(options.micro_batch, config.micro_batch);
  Number accumulation = first_of(options.accumulation, config.accumulation), world = options.world;
  for (const Number& given : {global, micro, accumulation, world}) {
    if (given && *given < 1) refuse("--micro-batch, --accumulation, --world and --global-batch count from 1");
  }
  if (!global && !micro)
    refuse("how many rows has a step? Give --micro-batch N (with --accumulation and --world) or --global-batch N");
  const auto product = [&](const Number& a, const Number& b) {
    return checked_mul(a.value_or(1), b.value_or(1), "rows of a step");
  };
  if (global && micro && !accumulation) {
    accumulation = *global / product(micro, world);
  } else if (global && micro && !world) {
    world = *global / product(micro, accumulation);
  }
  schedule.accumulation = accumulation.value_or(1);
  schedule.world = world.value_or(1);
  schedule.micro_batch = micro ? *micro : *global / product(accumulation, world);
  const std::int64_t rows = checked_mul(product(schedule.micro_batch, schedule.accumulation), schedule.world, "rows of a step");
  if (global && rows != *global) {
    refuse(fmt::format("the shape disagrees: micro-batch {} x accumulation {} x world {} is not the global batch {}",
                       micro ? std::to_string(*micro) : "N", schedule.accumulation, schedule.world, *global));
  }
  if (rows >= std::numeric_limits<std::uint32_t>::max()) refuse("a step of 2^32 rows or more");
}

/// The same from a batch plan, which has decided it: what else is given has to agree. Where its batches differ in size, those of
/// a config stand for nothing.
void settle_batch_plan(const LtdOptions& options, const DeepSpeedSettings& config, const LtdBatches& batches,
                       LtdSchedule& schedule) {
  const bool equal = batches.batch_size > 0;
  std::int64_t most = batches.batch_size;
  for (std::int64_t b = 0; b < batches.batches(); ++b) most = std::max(most, batches.size(b));
  schedule.micro_batch = most;
  schedule.accumulation = batches.accumulation;
  schedule.world = batches.world;
  const std::int64_t rows =
      checked_mul(checked_mul(most, batches.accumulation, "rows of a step"), batches.world, "rows of a step");
  if (rows >= std::numeric_limits<std::uint32_t>::max()) refuse("a step of 2^32 rows or more");
  const auto agree = [](const char* option, const Number& given, std::int64_t planned, std::string_view of) {
    if (given && *given != planned) {
      refuse(fmt::format("{} {}, but the batch plan has {} {}; make another plan with shardpack batch", option, *given,
                         with_commas(planned), of));
    }
  };
  agree("--world", options.world, batches.world, "ranks");
  agree("--accumulation", first_of(options.accumulation, config.accumulation), batches.accumulation, "micro-batches a step");
  agree("--micro-batch", first_of(options.micro_batch, equal ? config.micro_batch : std::nullopt), most,
        equal ? "rows in a batch" : "rows in its largest batch");
  agree("--global-batch", first_of(options.global_batch, equal ? config.global_batch : std::nullopt), rows,
        equal ? "rows in a step" : "rows in its largest step");
}

/// Layers 0 to layers - 1: those given, else the middle ones.
std::vector<std::int64_t> settle_layers(const LtdOptions& options, const DeepSpeedSettings& config, LtdSchedule& schedule) {
  std::vector<std::int64_t> ids = options.layer_ids;
  const bool from_config = ids.empty() && !options.ltd_layers && !options.layers;
  if (from_config) ids = config.layer_ids;
  Number count = options.ltd_layers;
  if (!count && ids.empty() && !options.layers) count = config.ltd_layers;
  if (count && !ids.empty() && *count != static_cast<std::int64_t>(ids.size())) {
    refuse(fmt::format("--ltd-layers {}, but --layer-ids lists {}", *count, ids.size()));
  }
  if (ids.empty()) {
    if (!count && schedule.layers <= 2) {
      refuse(fmt::format(
          "no layer drops tokens: the first and the last of {} are kept whole; give --layer-ids, or 3 layers and more",
          schedule.layers));
    }
    schedule.ltd_layers = count.value_or(schedule.layers - 2);
    if (schedule.ltd_layers < 0 || schedule.ltd_layers > schedule.layers) {
      refuse(fmt::format("--ltd-layers {} of --layers {}", schedule.ltd_layers, schedule.layers));
    }
    ids.resize(static_cast<std::size_t>(schedule.ltd_layers));
    std::iota(ids.begin(), ids.end(), ceil_div(schedule.layers - schedule.ltd_layers, 2));
    return ids;
  }
  std::sort(ids.begin(), ids.end());
  const auto refuse_ids = [&](const std::string& what) {
    if (!from_config) refuse("--layer-ids: " + what);
    throw Error(ErrorCode::bad_data, fmt::format("{}; see: shardpack lint {}", what, options.deepspeed), options.deepspeed,
                fmt::format("{}.random_ltd_layer_id", kRandomLtd));
  };
  if (const auto twice = std::adjacent_find(ids.begin(), ids.end()); twice != ids.end())
    refuse_ids(fmt::format("{} is listed twice", *twice));
  if (const std::int64_t wrong = ids.front() < 0 ? ids.front() : ids.back(); wrong < 0 || wrong >= schedule.layers)
    refuse_ids(fmt::format("{} is none of the {} layers (0 to {})", wrong, schedule.layers, schedule.layers - 1));
  schedule.ltd_layers = static_cast<std::int64_t>(ids.size());
  return ids;
}

/// What is refused is named as a flag; with a config it may be the config's.
template <class Check>
void saying_where_from(const std::optional<Json>& config, const std::string& path, Check check) {
  try {
    check();
  } catch (const Error& error) {
    if (!config) throw;
    throw Error(error.code(), fmt::format("{} (what no flag gives is taken from {})", error.message(), path));
  }
}

Budget settle_budget(const LtdOptions& options) {
  std::vector<Budget> given;
  if (options.total_steps) given.push_back({BudgetKind::steps, *options.total_steps});
  if (options.total_tokens) given.push_back({BudgetKind::tokens, *options.total_tokens});
  if (options.total_layer_tokens) given.push_back({BudgetKind::layer_tokens, *options.total_layer_tokens});
  if (given.empty()) refuse("when does the run end? Give --total-steps, --total-tokens or --total-layer-tokens");
  if (given.size() > 1) refuse("--total-steps, --total-tokens and --total-layer-tokens: one of them");
  return given.front();
}

LearningRate settle_rate(const LtdOptions& options, const LtdSetup& setup) {
  LearningRate rate = options.rate;
  if (rate.min > rate.peak) refuse(fmt::format("--min-lr {} is above --peak-lr {}", rate.min, rate.peak));
  if (rate.decay_layer_tokens == 0 && setup.budget.kind == BudgetKind::layer_tokens)
    rate.decay_layer_tokens = setup.budget.amount;
  if (rate.decay_layer_tokens == 0 && setup.budget.kind == BudgetKind::tokens) {
    rate.decay_layer_tokens = checked_mul(setup.budget.amount, setup.schedule.layers, "LayerTokens");
  }
  return rate;
}

/// A JSON path without the random-LTD section's own, which is long and known.
std::string_view inside_section(std::string_view path) {
  return path.starts_with(kRandomLtd) && path.size() > kRandomLtd.size() ? path.substr(kRandomLtd.size() + 1) : path;
}

}  // namespace

SettledLtd settle_ltd(const LtdOptions& options, const std::optional<LtdRows>& rows) {
  SettledLtd settled;
  DeepSpeedSettings config;
  if (!options.deepspeed.empty()) {
    settled.base = Json::parse(read_small_file(options.deepspeed), options.deepspeed);
    if (!settled.base->is_object())
      throw Error(ErrorCode::bad_data, "expected a DeepSpeed config, which is a JSON object", options.deepspeed);
    config = read_settings(*settled.base);
  }
  LtdSetup& setup = settled.setup;
  LtdSchedule& schedule = setup.schedule;
  schedule.layers = required(options.layers, config.layers, "--layers", "how many layers has the model");
  if (schedule.layers < 1 || schedule.layers > kMaxLayers)
    refuse(fmt::format("--layers counts from 1 to {}, found {}", with_commas(kMaxLayers), with_commas(schedule.layers)));
  setup.layer_ids = settle_layers(options, config, schedule);
  const LtdBatches* batches = rows && rows->table.in_batches() ? &rows->table.batches() : nullptr;
  saying_where_from(settled.base, options.deepspeed, [&] {
    if (batches != nullptr) {
      settle_batch_plan(options, config, *batches, schedule);
    } else {
      settle_batch(options, config, schedule);
    }
  });

  const Number kept_max = first_of(options.kept_max, config.kept_max);
  schedule.curriculum = options.curriculum.value_or(config.curriculum);
  if (options.curriculum_use) schedule.curriculum.use = *options.curriculum_use;
  Number seq_length = options.seq_length;
  if (!seq_length && rows) seq_length = rows->dataset.row_tokens;
  schedule.seq_length = required(seq_length, kept_max, "-L", "how long is a row");
  if (rows && schedule.seq_length != rows->dataset.row_tokens &&
      (batches == nullptr || schedule.seq_length < rows->dataset.row_tokens)) {
    refuse(batches == nullptr
               ? fmt::format("-L {}, but the dataset's rows have {} slots", schedule.seq_length, rows->dataset.row_tokens)
               : fmt::format("-L {}, but the plan pads batches to as many as {} tokens", schedule.seq_length,
                             rows->dataset.row_tokens));
  }
  schedule.kept_length = options.kept_length;
  if (schedule.kept_length == KeptLength::ratio && batches == nullptr)
    refuse("--kept-length ratio is for a batch plan, whose batches have different lengths; here all rows have one");
  schedule.count = options.count;
  schedule.growth.start = required(options.kept_start, config.kept_start, "--kept-start", "how many tokens are kept at first");
  schedule.growth.max = kept_max.value_or(schedule.seq_length);
  schedule.growth.granularity = first_of(options.kept_step, config.kept_step).value_or(8);
  schedule.growth.ramp_steps = required(options.ramp_steps, config.ramp_steps, "--ramp-steps", "in how many steps does it grow");
  saying_where_from(settled.base, options.deepspeed, [&] { check_schedule(schedule); });

  setup.budget = settle_budget(options);
  setup.rate = settle_rate(options, setup);
  setup.mode = options.mode.value_or(rows ? KeptMode::quota : KeptMode::uniform);
  setup.seed = options.seed;
  setup.hidden_size = options.hidden_size;
  return settled;
}

std::string settle_deepspeed(const SettledLtd& settled, bool packed, const std::string& path,
                             std::vector<std::string>& warnings) {
  const LtdSetup& setup = settled.setup;
  const std::string text = merged_config(setup.schedule, setup.layer_ids, settled.base);
  LintOptions options;
  options.packed = packed;
  options.world = setup.schedule.world;
  if (setup.hidden_size > 0) options.hidden_size = setup.hidden_size;
  for (const Finding& finding : lint_text(text, std::string(kDeepSpeedFile), options).findings) {
    if (finding.severity == Severity::error && settled.base) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("{}; {} ('shardpack lint' lists everything)", finding.consequence, finding.fix), path,
                  finding.path);
    }
    warnings.push_back(
        fmt::format("{}: {}: {}; {}", kDeepSpeedFile, inside_section(finding.path), finding.consequence, finding.fix));
  }
  return text;
}

}  // namespace shardpack
