// lint: one function a rule, in one table. A rule looks at the parsed config and says what will happen, and what to write
// instead.
#include "shardpack/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/checked.h"
#include "base/nearest.h"
#include "base/units.h"
#include "io/file.h"
#include "jobs/deepspeed_config.h"
#include "shardpack/error.h"
#include "shardpack/ltd_schedule.h"

namespace shardpack {

namespace {

std::string ltd_path(std::string_view key) { return fmt::format("{}.{}", kRandomLtd, key); }
std::string schedule_path(std::string_view key) { return fmt::format("{}.{}", kLtdSchedule, key); }
std::string own_rate_path() { return ltd_path("layer_token_lr_schedule.enabled"); }
std::string config_path(std::string_view key) { return fmt::format("{}.{}", kLtdScheduleConfig, key); }

/// What a rule sees, and where it says what it found.
class Check {
 public:
  Check(const Json& text, const LintOptions& known, std::vector<Finding>& findings)
      : config(text), options(known), settings(read_settings_or_none(text)), findings_(findings) {}

  void rule(std::string_view name) { rule_ = name; }
  void error(std::string path, std::string consequence, std::string fix) {
    findings_.push_back({Severity::error, rule_, std::move(path), std::move(consequence), std::move(fix)});
  }
  void warn(std::string path, std::string consequence, std::string fix) {
    findings_.push_back({Severity::warning, rule_, std::move(path), std::move(consequence), std::move(fix)});
  }
  std::optional<std::int64_t> whole(const std::string& path) const { return find_whole(config, path); }

  const Json& config;
  const LintOptions& options;
  const DeepSpeedSettings settings;

 private:
  /// A curriculum that is not understood has a rule of its own.
  static DeepSpeedSettings read_settings_or_none(const Json& text) {
    try {
      return read_settings(text);
    } catch (const Error&) {
      return {};
    }
  }

  std::string rule_;
  std::vector<Finding>& findings_;
};

// ---- the shape of the section -------------------------------------------------------------------------------------------------

/// Keys that the trainer reads without a default, and keys that it knows.
void check_keys(Check& check) {
  for (const std::string& path : {ltd_path("total_layer_num"), ltd_path("random_ltd_layer_num"), schedule_path("min_value"),
                                  schedule_path("max_value"), config_path("require_steps"), config_path("seq_per_step")}) {
    if (check.whole(path)) continue;
    const std::optional<Json> value = find_value(check.config, path);
    check.error(path,
                value ? fmt::format("the trainer computes with a whole number here, and finds {}", value->dump())
                      : "the trainer stops at the missing key",
                "give a whole number");
  }
  if (!find_list(check.config, ltd_path("random_ltd_layer_id"))) {
    check.error(ltd_path("random_ltd_layer_id"), "the trainer stops without a list of layer numbers",
                "list them, as in [1, 2, 3]");
  }
  const auto unknown = [&](std::string_view folder, const std::vector<std::string>& known) {
    const std::optional<Json> section = find_value(check.config, folder);
    if (!section || !section->is_object()) return;
    for (const auto& [key, value] : section->members()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const std::string meant = nearest(key, known);
      check.warn(fmt::format("{}.{}", folder, key), "the trainer ignores a key that it does not know",
                 meant.empty() ? "remove it" : fmt::format("did you mean {}?", meant));
    }
  };
  unknown(kRandomLtd, {"enabled", "total_layer_num", "random_ltd_layer_num", "random_ltd_layer_id", "model_mask_name",
                       "model_type", "hidden_state_order", "random_ltd_schedule", "layer_token_lr_schedule"});
  unknown(kLtdSchedule, {"min_value", "max_value", "schedule_type", "schedule_config"});
  unknown(kLtdScheduleConfig, {"require_steps", "seq_per_step"});
}

void check_choices(Check& check) {
  const auto one_of = [&](const std::string& path, const std::vector<std::string>& choices) {
    const std::optional<std::string> text = find_text(check.config, path);
    if (!text || std::find(choices.begin(), choices.end(), *text) != choices.end()) return;
    check.error(path, fmt::format("the trainer does not know '{}' and stops, or takes the other layout", *text),
                fmt::format("write {}", fmt::join(choices, " or ")));
  };
  one_of(ltd_path("model_type"), {"encoder", "decoder"});
  one_of(ltd_path("hidden_state_order"), {"batch_seq_dim", "seq_batch_dim"});
}

void check_switches(Check& check) {
  constexpr std::string_view kOuter[] = {"data_efficiency.enabled", "data_efficiency.data_routing.enabled"};
  for (const std::string& path : {std::string(kOuter[0]), std::string(kOuter[1]), ltd_path("enabled"), own_rate_path()}) {
    const std::optional<Json> value = find_value(check.config, path);
    if (!value || value->dump() == "true" || value->dump() == "false") continue;
    check.warn(path,
               fmt::format("{} is no truth value; the trainer takes it for {}", value->dump(),
                           is_truthy(check.config, path) ? "true" : "false"),
               "write true or false");
  }
  for (const std::string_view outer : kOuter) {
    if (is_truthy(check.config, outer)) continue;
    check.warn(std::string(outer), fmt::format("tokens are dropped all the same: the engine reads only {}.enabled", kRandomLtd),
               "set it to true, or switch random_ltd.enabled off as well");
  }
}

void check_lr_schedule(Check& check) {
  if (!is_truthy(check.config, own_rate_path())) return;
  check.error(own_rate_path(), "the trainer raises NotImplementedError",
              "set it to false; 'shardpack ltd' writes the learning rate of every step into steps.npy");
}

void check_schedule_type(Check& check) {
  const std::optional<std::string> type = find_text(check.config, schedule_path("schedule_type"));
  if (type == "fixed_linear") return;
  check.error(schedule_path("schedule_type"),
              type ? fmt::format("the trainer knows no schedule '{}' and stops", *type) : "the trainer stops at the missing key",
              "write \"fixed_linear\", the only one that there is");
}

// ---- layers -------------------------------------------------------------------------------------------------------------------

void check_layer_count(Check& check) {
  const auto& ids = check.settings.layer_ids;
  const std::optional<std::int64_t> count = check.settings.ltd_layers;
  if (ids.empty() || !count || static_cast<std::int64_t>(ids.size()) == *count) return;
  check.error(ltd_path("random_ltd_layer_num"),
              fmt::format("the trainer raises ValueError: {} layers are listed and {} are announced", ids.size(), *count),
              fmt::format("write {}, or list {} layers", ids.size(), *count));
}

void check_layer_ids(Check& check) {
  const std::optional<std::int64_t> layers = check.settings.layers;
  const std::set<std::int64_t> ids(check.settings.layer_ids.begin(), check.settings.layer_ids.end());
  if (ids.size() != check.settings.layer_ids.size()) {
    check.error(ltd_path("random_ltd_layer_id"), "a layer is listed twice: it is bound once, and the trainer raises ValueError",
                "list each layer once");
  }
  if (!layers) return;
  for (const std::int64_t id : ids) {
    if (id >= 0 && id < *layers) continue;
    check.error(ltd_path("random_ltd_layer_id"),
                fmt::format("layer {} is none of the {}: it is never bound, and the trainer raises ValueError", id, *layers),
                fmt::format("layers count from 0 to {}", *layers - 1));
  }
  for (const std::int64_t id : {std::int64_t{0}, *layers - 1}) {
    if (!ids.contains(id)) continue;
    check.warn(
        ltd_path("random_ltd_layer_id"),
        fmt::format("the {} layer drops tokens; the method keeps the first and the last one whole, since the loss needs every "
                    "token",
                    id == 0 ? "first" : "last"),
        fmt::format("take {} out of the list", id));
  }
}

/// The trainer walks over the modules in order and binds the smallest unbound number to the first whose name contains its digits.
void check_layer_binding(Check& check) {
  const std::optional<std::int64_t> layers = check.settings.layers;
  constexpr std::int64_t kMostLayers = 100'000;
  if (check.options.layer_prefix.empty() || !layers || *layers > kMostLayers) return;
  std::vector<std::int64_t> queue = check.settings.layer_ids;
  std::sort(queue.begin(), queue.end());
  std::size_t next = 0;
  for (std::int64_t layer = 0; layer < *layers && next < queue.size(); ++layer) {
    const std::string name = check.options.layer_prefix + std::to_string(layer);
    if (name.find(std::to_string(queue[next])) == std::string::npos) continue;
    if (queue[next] != layer) {
      check.warn(ltd_path("random_ltd_layer_id"),
                 fmt::format("number {} is found in the name '{}', so layer {} drops tokens in its place, and so on for the rest",
                             queue[next], name, layer),
                 "wrap the model so that the names of its layers hold no other digits than their number");
      return;
    }
    ++next;
  }
}

// ---- kept lengths
// ---------------------------------------------------------------------------------------------------------------

void check_kept(Check& check) {
  const DeepSpeedSettings& s = check.settings;
  if (s.kept_step && *s.kept_step < 1) {
    check.error(config_path("seq_per_step"), "the trainer divides by it", "write 16 (8 at least)");
    return;
  }
  if (s.ramp_steps && *s.ramp_steps < 1) {
    check.error(config_path("require_steps"), "the trainer divides by it", "write the optimizer steps that the growth takes");
  }
  if (s.kept_start && s.kept_max && *s.kept_start > *s.kept_max) {
    check.error(schedule_path("min_value"), fmt::format("it is above max_value {}: the kept length never grows", *s.kept_max),
                "write the smaller one here");
  }
  if (!s.kept_start || !s.kept_step) return;
  const std::int64_t first = *s.kept_start - *s.kept_start % *s.kept_step;
  if (first < 1) {
    check.error(schedule_path("min_value"),
                fmt::format("the first steps keep 0 tokens: {} is rounded down to a multiple of seq_per_step {}", *s.kept_start,
                            *s.kept_step),
                fmt::format("write a multiple of {}", *s.kept_step));
  } else if (first != *s.kept_start) {
    check.warn(
        schedule_path("min_value"),
        fmt::format("the first steps keep {} tokens, fewer than the minimum: {} is rounded down to a multiple of seq_per_step {}",
                    first, *s.kept_start, *s.kept_step),
        fmt::format("write {} or {}", first, first + *s.kept_step));
  }
}

void check_granularity(Check& check) {
  const std::optional<std::int64_t> step = check.settings.kept_step;
  if (!step || *step < 1 || *step % 8 == 0) return;
  check.warn(config_path("seq_per_step"),
             fmt::format("kept lengths that are no multiples of 8 keep tensor cores idle; it is {}", *step),
             "write a multiple of 8 (16 for INT8)");
}

void check_kernel_limit(Check& check) {
  constexpr std::int64_t kMostKept = 2048;
  const std::optional<std::int64_t> most = check.settings.kept_max;
  if (!most || *most <= kMostKept) return;
  check.error(
      schedule_path("max_value"),
      fmt::format("the trainer's kernel sorts at most {} kept tokens and stops above; the schedule grows to {}",
                  with_commas(kMostKept), with_commas(*most)),
      fmt::format("write {} or less, or drop tokens with shardpack's indices instead of the trainer's kernels", kMostKept));
}

void check_hidden_bytes(Check& check) {
  if (!check.options.hidden_size) return;
  const bool half = is_on(check.config, "fp16.enabled") || is_on(check.config, "bf16.enabled");
  const std::int64_t bytes = *check.options.hidden_size * (half ? 2 : 4);
  if (bytes % 16 == 0) return;
  check.error(ltd_path("enabled"),
              fmt::format("the trainer's kernels copy 16 bytes at a time, and a hidden state of {} has {} bytes",
                          *check.options.hidden_size, bytes),
              "take a hidden size that is a multiple of 8");
}

// ---- masks and parallelism
// ------------------------------------------------------------------------------------------------------

void check_mask(Check& check) {
  const bool encoder = find_text(check.config, ltd_path("model_type")) == "encoder";
  const std::optional<std::string> mask = find_text(check.config, ltd_path("model_mask_name"));
  if (encoder && !mask) {
    check.error(ltd_path("model_mask_name"),
                "an encoder's mask is gathered for every layer, and the trainer stops without its name",
                "write the name of the mask argument of the model's layers, as in \"attention_mask\"");
  }
  if (!encoder && check.options.packed) {
    check.warn(
        ltd_path("model_type"),
        "the trainer's own dropping is wrong for packed or padded rows: it gathers neither a decoder's mask nor position ids",
        "drop tokens by the kept slots and cu_seqlens.npy of 'shardpack ltd'");
  }
}

void check_pipeline(Check& check) {
  const std::optional<Json> pipeline = find_value(check.config, "pipeline");
  if (!pipeline) return;
  const std::optional<std::int64_t> stages = find_whole(check.config, "pipeline.stages");
  if (stages && *stages <= 1) return;
  check.error("pipeline", "random-LTD does not work with pipeline parallel training: its scheduler lives in one engine",
              "train without pipeline stages");
}

/// Data-parallel ranks, as given or as the batch sizes imply; nothing when they do not multiply.
std::optional<std::int64_t> world_of(const Check& check) {
  if (check.options.world) return check.options.world;
  const DeepSpeedSettings& s = check.settings;
  if (!s.global_batch || !s.micro_batch || !s.accumulation || *s.micro_batch < 1 || *s.accumulation < 1) return std::nullopt;
  const std::int64_t rows_of_rank = checked_mul(*s.micro_batch, *s.accumulation, "rows of a step");
  if (*s.global_batch % rows_of_rank != 0) return std::nullopt;
  return *s.global_batch / rows_of_rank;
}

void check_rank_seeds(Check& check) {
  if (world_of(check).value_or(1) <= 1) return;
  check.warn(
      ltd_path("enabled"),
      fmt::format("the {} ranks may all drop the same tokens: the sampler draws from torch's generator, which launchers often "
                  "seed alike",
                  *world_of(check)),
      "seed torch by rank, or use shardpack's indices, which count rows of the global batch");
}

// ---- batches
// --------------------------------------------------------------------------------------------------------------------

void check_batch(Check& check) {
  const DeepSpeedSettings& s = check.settings;
  const auto positive = [&](const char* path, const std::optional<std::int64_t>& value) {
    if (value && *value < 1) check.error(path, "a step without rows", "write a number from 1");
    // "auto" is filled in by the trainers that wrap this one.
    if (const std::optional<Json> given = find_value(check.config, path); given && !value && given->dump() != "\"auto\"") {
      check.error(path, fmt::format("the trainer computes with a whole number here, and finds {}", given->dump()),
                  "give a whole number from 1");
    }
    return value && *value >= 1;
  };
  const bool batch = positive("train_batch_size", s.global_batch),
             micro = positive("train_micro_batch_size_per_gpu", s.micro_batch),
             accumulation = positive("gradient_accumulation_steps", s.accumulation);
  if (!batch) return;
  std::int64_t known = 1;
  bool complete = true;
  const auto factor = [&](bool given, const std::optional<std::int64_t>& value, const char* name) {
    complete = complete && given;
    if (!given) return std::string(name);
    known = checked_mul(known, *value, "rows of a step");
    return std::to_string(*value);
  };
  const std::string of_micro = factor(micro, s.micro_batch, "micro-batch"),
                    of_accumulation = factor(accumulation, s.accumulation, "accumulation"),
                    of_ranks = factor(check.options.world.has_value(), check.options.world, "ranks");
  if (*s.global_batch % known != 0 || (complete && *s.global_batch != known)) {
    const std::int64_t below = *s.global_batch - *s.global_batch % known;
    check.error("train_batch_size",
                fmt::format("the trainer stops: {} is not {} x {} x {}", *s.global_batch, of_micro, of_accumulation, of_ranks),
                complete || below == 0 ? fmt::format("write {}", known) : fmt::format("write {} or {}", below, below + known));
  }
  if (check.options.loader_batch && *check.options.loader_batch != *s.global_batch) {
    check.warn("train_batch_size",
               fmt::format("the loader gives {} rows a step: LayerTokens are counted {:g}-fold", *check.options.loader_batch,
                           static_cast<double>(*s.global_batch) / static_cast<double>(*check.options.loader_batch)),
               fmt::format("write {}, or let the loader give {}", *check.options.loader_batch, *s.global_batch));
  }
}

void check_curriculum(Check& check) {
  try {
    read_settings(check.config);
  } catch (const Error& error) {
    check.error(error.position(), "the trainer's curriculum scheduler stops: " + error.message(),
                "see the curriculum section of the trainer's manual");
  }
}

// ---- the table
// ------------------------------------------------------------------------------------------------------------------

struct Rule {
  const char* name;
  bool only_with_ltd;  ///< nothing to say while random-LTD is off
  void (*check)(Check&);
};
constexpr Rule kRules[] = {
    {"keys", true, check_keys},
    {"choices", true, check_choices},
    {"switches", true, check_switches},
    {"lr-schedule", true, check_lr_schedule},
    {"schedule-type", true, check_schedule_type},
    {"layer-count", true, check_layer_count},
    {"layer-ids", true, check_layer_ids},
    {"layer-binding", true, check_layer_binding},
    {"kept", true, check_kept},
    {"granularity", true, check_granularity},
    {"kernel-limit", true, check_kernel_limit},
    {"hidden-bytes", true, check_hidden_bytes},
    {"mask", true, check_mask},
    {"pipeline", true, check_pipeline},
    {"rank-seeds", true, check_rank_seeds},
    {"batch", false, check_batch},
    {"curriculum", false, check_curriculum},
};

}  // namespace

std::int64_t LintResult::count(Severity severity) const {
  return std::count_if(findings.begin(), findings.end(), [&](const Finding& finding) { return finding.severity == severity; });
}

LintResult lint_text(const std::string& text, const std::string& shown, const LintOptions& options) {
  const Json config = Json::parse(text, shown);
  if (!config.is_object()) throw Error(ErrorCode::bad_data, "expected a DeepSpeed config, which is a JSON object", shown);
  LintResult result;
  result.random_ltd = is_truthy(config, ltd_path("enabled"));
  Check check(config, options, result.findings);
  for (const Rule& rule : kRules) {
    if (rule.only_with_ltd && !result.random_ltd) continue;
    check.rule(rule.name);
    rule.check(check);
    ++result.rules;
  }
  std::stable_sort(result.findings.begin(), result.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
  return result;
}

LintResult lint(const std::string& path, const LintOptions& options) { return lint_text(read_small_file(path), path, options); }

}  // namespace shardpack
