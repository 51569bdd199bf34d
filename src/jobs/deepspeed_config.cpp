#include "jobs/deepspeed_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "shardpack/error.h"

namespace shardpack {

namespace {

/// The value as what `read` makes of it; nothing when it is of another kind.
template <class Read>
auto value_as(const Json& root, std::string_view path, Read read) -> std::optional<decltype(read(root))> {
  const std::optional<Json> value = find_value(root, path);
  if (!value) return std::nullopt;
  try {
    return read(*value);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<CurriculumKind> curriculum_kind(const std::string& name) {
  for (std::size_t kind = 1; kind < std::size(kCurriculumKinds); ++kind) {
    if (name == kCurriculumKinds[kind]) return static_cast<CurriculumKind>(kind);
  }
  return std::nullopt;
}

/// One metric of a curriculum: its bounds and schedule.
Curriculum read_curriculum(const Json& metric) {
  Curriculum curriculum;
  const Json type = metric.at("schedule_type");
  const std::optional<CurriculumKind> kind = curriculum_kind(type.as_string());
  if (!kind) type.fail(fmt::format("expected fixed_linear, fixed_root or fixed_discrete, found '{}'", type.as_string()));
  curriculum.kind = *kind;
  const Json config = metric.at("schedule_config");
  if (*kind == CurriculumKind::fixed_discrete) {
    const auto numbers = [](const Json& list) {
      std::vector<std::int64_t> values;
      for (std::size_t i = 0; i < list.size(); ++i) values.push_back(list.at(i).as_int());
      return values;
    };
    curriculum.lengths = numbers(config.at("difficulty"));
    curriculum.until = numbers(config.at("max_step"));
    return curriculum;
  }
  curriculum.start = metric.at("min_difficulty").as_int();
  curriculum.max = metric.at("max_difficulty").as_int();
  curriculum.ramp_steps = config.at("total_curriculum_step").as_int();
  curriculum.granularity = config.at("difficulty_step").as_int();
  if (*kind == CurriculumKind::fixed_root) curriculum.root_degree = config.at("root_degree").as_int();
  return curriculum;
}

void write_merged(JsonWriter& json, const Json& base, const Json& over) {
  if (!base.is_object() || !over.is_object()) {
    json.raw(over.dump());
    return;
  }
  json.begin_object();
  for (const auto& [key, value] : base.members()) {
    json.key(key);
    if (over.has(key)) {
      write_merged(json, value, over.at(key));
    } else {
      write_merged(json, value, value);
    }
  }
  for (const auto& [key, value] : over.members()) {
    if (base.has(key)) continue;
    json.key(key);
    write_merged(json, value, value);
  }
  json.end_object();
}

/// Only what the schedule decides.
std::string schedule_config(const LtdSchedule& schedule, const std::vector<std::int64_t>& layer_ids) {
  JsonWriter json;
  json.begin_object();
  json.member("train_batch_size", schedule.global_batch()).member("train_micro_batch_size_per_gpu", schedule.micro_batch);
  json.member("gradient_accumulation_steps", schedule.accumulation);
  json.key("data_efficiency").begin_object().member("enabled", true);
  json.key("data_routing").begin_object().member("enabled", true);
  json.key("random_ltd").begin_object().member("enabled", true);
  json.member("total_layer_num", schedule.layers).member("random_ltd_layer_num", schedule.ltd_layers);
  json.key("random_ltd_layer_id").begin_array(true);
  for (const std::int64_t id : layer_ids) json.value(id);
  json.end_array();
  json.key("random_ltd_schedule").begin_object();
  json.member("min_value", schedule.growth.start).member("max_value", schedule.growth.max);
  json.member("schedule_type", "fixed_linear");
  json.key("schedule_config").begin_object();
  json.member("require_steps", schedule.growth.ramp_steps).member("seq_per_step", schedule.growth.granularity);
  json.end_object().end_object().end_object().end_object().end_object().end_object();
  return json.take();
}

/// What a fragment without a base needs besides: the trainer's own defaults, spelled out to be edited.
constexpr std::string_view kModelDefaults = R"({"data_efficiency": {"data_routing": {"random_ltd": {
  "model_mask_name": "attention_mask", "model_type": "decoder", "hidden_state_order": "batch_seq_dim"}}}})";

}  // namespace

std::optional<Json> find_value(const Json& root, std::string_view path) {
  Json at = root;
  while (true) {
    const std::size_t dot = path.find('.');
    if (!at.is_object() || !at.has(path.substr(0, dot))) return std::nullopt;
    at = at.at(path.substr(0, dot));
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
  }
  if (at.is_null()) return std::nullopt;
  return at;
}

std::optional<std::int64_t> find_whole(const Json& root, std::string_view path) {
  return value_as(root, path, [](const Json& value) { return value.as_int(); });
}

bool is_on(const Json& root, std::string_view path) {
  return value_as(root, path, [](const Json& value) { return value.as_bool(); }).value_or(false);
}

bool is_truthy(const Json& root, std::string_view path) {
  const std::optional<Json> value = find_value(root, path);
  if (!value) return false;
  constexpr std::string_view kFalse[] = {"false", "0", "0.0", "\"\"", "[]", "{}"};
  return std::find(std::begin(kFalse), std::end(kFalse), value->dump()) == std::end(kFalse);
}

std::optional<std::string> find_text(const Json& root, std::string_view path) {
  return value_as(root, path, [](const Json& value) { return value.as_string(); });
}

std::optional<std::vector<std::int64_t>> find_list(const Json& root, std::string_view path) {
  return value_as(root, path, [](const Json& value) {
    std::vector<std::int64_t> numbers;
    for (std::size_t i = 0; i < value.size(); ++i) numbers.push_back(value.at(i).as_int());
    return numbers;
  });
}

DeepSpeedSettings read_settings(const Json& config) {
  const auto whole = [&](std::string_view folder, std::string_view key) {
    return find_whole(config, folder.empty() ? std::string(key) : fmt::format("{}.{}", folder, key));
  };
  DeepSpeedSettings settings;
  settings.kept_start = whole(kLtdSchedule, "min_value");
  settings.kept_max = whole(kLtdSchedule, "max_value");
  settings.kept_step = whole(kLtdScheduleConfig, "seq_per_step");
  settings.ramp_steps = whole(kLtdScheduleConfig, "require_steps");
  settings.layers = whole(kRandomLtd, "total_layer_num");
  settings.ltd_layers = whole(kRandomLtd, "random_ltd_layer_num");
  settings.layer_ids = find_list(config, fmt::format("{}.random_ltd_layer_id", kRandomLtd)).value_or(std::vector<std::int64_t>{});
  settings.global_batch = whole("", "train_batch_size");
  settings.micro_batch = whole("", "train_micro_batch_size_per_gpu");
  settings.accumulation = whole("", "gradient_accumulation_steps");

  constexpr std::string_view kSampling = "data_efficiency.data_sampling.curriculum_learning";
  if (is_on(config, fmt::format("{}.enabled", kSampling))) {
    for (const auto& [name, use] :
         {std::pair{"seqlen", CurriculumUse::truncate}, std::pair{"seqlen_truncate", CurriculumUse::truncate},
          std::pair{"seqlen_reshape", CurriculumUse::reshape}}) {
      const std::optional<Json> metric = find_value(config, fmt::format("{}.curriculum_metrics.{}", kSampling, name));
      if (!metric) continue;
      settings.curriculum = read_curriculum(*metric);
      settings.curriculum.use = use;
    }
  } else if (is_on(config, "curriculum_learning.enabled") &&
             find_text(config, "curriculum_learning.curriculum_type") == "seqlen") {
    settings.curriculum = read_curriculum(*find_value(config, "curriculum_learning"));
  }
  return settings;
}

std::string merged_config(const LtdSchedule& schedule, const std::vector<std::int64_t>& layer_ids,
                          const std::optional<Json>& base) {
  const Json ours = Json::parse(schedule_config(schedule, layer_ids), "ds_config.json");
  JsonWriter json;
  write_merged(json, base ? *base : Json::parse(kModelDefaults, "ds_config.json"), ours);
  return json.take() + "\n";
}

}  // namespace shardpack
