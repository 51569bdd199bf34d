// A DeepSpeed JSON config: where its random-LTD, curriculum and batch settings lie, and a config with ours merged in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "shardpack/ltd_schedule.h"

namespace shardpack {

inline constexpr std::string_view kRandomLtd = "data_efficiency.data_routing.random_ltd";
inline constexpr std::string_view kLtdSchedule = "data_efficiency.data_routing.random_ltd.random_ltd_schedule";
inline constexpr std::string_view kLtdScheduleConfig =
    "data_efficiency.data_routing.random_ltd.random_ltd_schedule.schedule_config";

/// The value at a path of keys joined by dots; nothing where a key is missing or null, or not in an object.
std::optional<Json> find_value(const Json& root, std::string_view path);

/// The same as a whole number, a truth value or a text; nothing when it is something else, such as "auto".
std::optional<std::int64_t> find_whole(const Json& root, std::string_view path);
bool is_on(const Json& root, std::string_view path);  ///< true, and no other value
/// Anything that Python takes for true: 1, or a text such as "false".
bool is_truthy(const Json& root, std::string_view path);
std::optional<std::string> find_text(const Json& root, std::string_view path);
/// Whole numbers of a list; nothing when it is no such list.
std::optional<std::vector<std::int64_t>> find_list(const Json& root, std::string_view path);

/// The settings that make a schedule, as far as the config has them.
struct DeepSpeedSettings {
  std::optional<std::int64_t> kept_start, kept_max, kept_step, ramp_steps, layers, ltd_layers;
  std::vector<std::int64_t> layer_ids;
  std::optional<std::int64_t> global_batch, micro_batch, accumulation;
  Curriculum curriculum;
};
/// \throws Error{bad_data} for a curriculum of sequence lengths that is not understood
DeepSpeedSettings read_settings(const Json& config);

/// The schedule as a config, merged into `base` (objects key by key, ours winning); without a base, a fragment.
std::string merged_config(const LtdSchedule& schedule, const std::vector<std::int64_t>& layer_ids,
                          const std::optional<Json>& base);

}  // namespace shardpack
