#include "shardpack/ltd_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "io/json.h"
#include "io/ltd_files.h"
#include "io/manifest_parts.h"
#include "io/safe_name.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kFormatVersion = 1;
constexpr bool kOnOneLine = true;

// ---- writing ----------------------------------------------------------------------------------------------------------------

/// The shortest text that reads back as the same number.
std::string exact(double value) { return fmt::format("{}", value); }

void write_curriculum(JsonWriter& json, const Curriculum& curriculum) {
  json.key("curriculum");
  if (curriculum.kind == CurriculumKind::none) {
    json.null();
    return;
  }
  const auto list = [&](std::string_view key, const std::vector<std::int64_t>& values) {
    json.key(key).begin_array();
    for (const std::int64_t value : values) json.value(value);
    json.end_array();
  };
  json.begin_object(kOnOneLine).member("schedule_type", kCurriculumKinds[static_cast<std::size_t>(curriculum.kind)]);
  json.member("use", kCurriculumUses[static_cast<std::size_t>(curriculum.use)]);
  if (curriculum.kind == CurriculumKind::fixed_discrete) {
    list("lengths", curriculum.lengths);
    list("until", curriculum.until);
  } else {
    json.member("start", curriculum.start).member("max", curriculum.max).member("step", curriculum.granularity);
    json.member("ramp_steps", curriculum.ramp_steps).member("root_degree", curriculum.root_degree);
  }
  json.end_object();
}

void write_options(JsonWriter& json, const LtdSetup& setup) {
  const LtdSchedule& schedule = setup.schedule;
  json.key("options").begin_object();
  json.member("kept_start", schedule.growth.start).member("kept_max", schedule.growth.max);
  json.member("kept_step", schedule.growth.granularity).member("ramp_steps", schedule.growth.ramp_steps);
  json.member("kept_length", kKeptLengths[static_cast<std::size_t>(schedule.kept_length)]);
  json.member("count", kTokenCounts[static_cast<std::size_t>(schedule.count)]);
  json.member("layers", schedule.layers).member("ltd_layers", schedule.ltd_layers);
  json.key("layer_ids").begin_array(kOnOneLine);
  for (const std::int64_t id : setup.layer_ids) json.value(id);
  json.end_array();
  json.member("micro_batch", schedule.micro_batch).member("accumulation", schedule.accumulation);
  json.member("world", schedule.world).member("global_batch", schedule.global_batch()).member("seq_length", schedule.seq_length);
  write_curriculum(json, schedule.curriculum);
  json.key("peak_lr").raw(exact(setup.rate.peak)).key("min_lr").raw(exact(setup.rate.min));
  json.member("warmup_layer_tokens", setup.rate.warmup_layer_tokens);
  json.member("decay_layer_tokens", setup.rate.decay_layer_tokens);
  json.member("decay", kLrDecays[static_cast<std::size_t>(setup.rate.decay)]).member("lr_lag", setup.rate.lag);
  json.member("selection", kKeptModes[static_cast<std::size_t>(setup.mode)]);
  json.key("seed").raw(std::to_string(setup.seed));
  json.key("hidden_size");
  if (setup.hidden_size > 0) {
    json.value(setup.hidden_size);
  } else {
    json.null();
  }
  json.end_object();
}

void write_window(JsonWriter& json, std::string_view key, const std::optional<StepWindow>& window) {
  json.key(key);
  if (window) {
    json.begin_object(kOnOneLine).member("first_step", window->first).member("steps", window->count).end_object();
  } else {
    json.null();
  }
}

void write_dataset(JsonWriter& json, const LtdManifest& manifest) {
  json.key("dataset");
  if (!manifest.dataset) {
    json.null();
    return;
  }
  const LtdDataset& dataset = *manifest.dataset;
  const LtdAttention& attention = manifest.attention;
  const auto totals = [&](std::string_view key, const LtdTotals& counted) {
    json.key(key).begin_object(kOnOneLine).member("layer_tokens", counted.layer_tokens);
    json.member("dense_layer_tokens", counted.dense_layer_tokens).end_object();
  };
  json.begin_object();
  json.member("kind", kLtdRowSources[static_cast<std::size_t>(dataset.kind)]).member("manifest_xxh3_128", dataset.hash);
  json.key("rows_manifest_xxh3_128");
  if (dataset.rows_hash.empty()) {
    json.null();
  } else {
    json.value(dataset.rows_hash);
  }
  json.member("rows", dataset.rows).member("row_tokens", dataset.row_tokens);
  json.member("segments", dataset.segments).member("tokens", dataset.tokens);
  json.member("batches", dataset.batches).member("steps", dataset.steps);
  totals("real", manifest.real);
  totals("padded", manifest.padded);
  json.key("segments_seen").value(attention.segments, 0);
  json.key("empty_segments_expected").value(attention.empty_segments, 3);
  json.member("padding_kept", attention.kept_padding);
  json.member("max_inclusion", attention.max_inclusion);
  json.key("attention_saving_of_packing").value(1 - attention.dense_pairs / attention.full_row_pairs, 9);
  json.key("attention_saving_of_both").value(1 - attention.pairs / attention.full_row_pairs, 9);
  json.end_object();
}

}  // namespace

double LtdManifest::saving() const {
  return dense_layer_tokens > 0 ? 1 - static_cast<double>(layer_tokens) / static_cast<double>(dense_layer_tokens) : 0;
}

std::string to_json(const LtdManifest& manifest) {
  JsonWriter json;
  json.begin_object();
  json.member("format", kLtdFormat).member("format_version", kFormatVersion).member("tool_version", manifest.tool_version);
  json.member("steps", manifest.steps).member("plateaus", manifest.plateaus);
  json.member("layer_tokens", manifest.layer_tokens).member("dense_layer_tokens", manifest.dense_layer_tokens);
  json.member("effective_tokens", manifest.effective_tokens);
  json.member("saving", manifest.saving()).key("attention_saving").value(manifest.attention.saving(), 9);
  json.key("flop_saving");
  if (manifest.setup.hidden_size > 0) {
    json.value(manifest.flop_saving, 9);
  } else {
    json.null();
  }
  json.key("budget").begin_object(kOnOneLine);
  json.member("kind", kBudgetKinds[static_cast<std::size_t>(manifest.setup.budget.kind)]);
  json.member("amount", manifest.setup.budget.amount);
  json.member("micro_step", manifest.budget.micro_step).member("optimizer_step", manifest.budget.optimizer_step);
  json.member("tokens", manifest.budget.tokens).member("layer_tokens", manifest.budget.layer_tokens).end_object();
  write_options(json, manifest.setup);
  write_dataset(json, manifest);
  write_window(json, "kept", manifest.kept);
  write_window(json, "cu_seqlens", manifest.boundaries);
  json.key("warnings").begin_array();
  for (const std::string& warning : manifest.warnings) json.value(warning);
  json.end_array();
  write_files(json, "files", manifest.files);
  json.end_object();
  return with_checksum(json.take());
}

// ---- reading ----------------------------------------------------------------------------------------------------------------

namespace {

/// The place of a name in a table of names.
template <class Enum, std::size_t N>
Enum named(const Json& value, const std::string_view (&names)[N]) {
  const std::string text = value.as_string();
  const auto found = std::find(std::begin(names), std::end(names), text);
  if (found == std::end(names)) value.fail(fmt::format("expected one of {}, found '{}'", fmt::join(names, ", "), text));
  return static_cast<Enum>(found - std::begin(names));
}

std::vector<std::int64_t> numbers(const Json& list) {
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < list.size(); ++i) values.push_back(list.at(i).as_int());
  return values;
}

Curriculum read_curriculum(const Json& json) {
  Curriculum curriculum;
  if (json.is_null()) return curriculum;
  curriculum.kind = named<CurriculumKind>(json.at("schedule_type"), kCurriculumKinds);
  curriculum.use = named<CurriculumUse>(json.at("use"), kCurriculumUses);
  if (curriculum.kind == CurriculumKind::fixed_discrete) {
    curriculum.lengths = numbers(json.at("lengths"));
    curriculum.until = numbers(json.at("until"));
  } else {
    curriculum.start = read_count(json, "start");
    curriculum.max = read_count(json, "max");
    curriculum.granularity = read_count(json, "step");
    curriculum.ramp_steps = read_count(json, "ramp_steps");
    curriculum.root_degree = read_count(json, "root_degree");
  }
  return curriculum;
}

std::uint64_t read_seed(const Json& json) {
  const std::string text = json.dump();
  std::uint64_t seed = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (problem != std::errc{} || end != text.data() + text.size()) json.fail("expected a whole number below 2^64");
  return seed;
}

LtdSetup read_options(const Json& json) {
  LtdSetup setup;
  LtdSchedule& schedule = setup.schedule;
  schedule.growth = {read_count(json, "kept_start"), read_count(json, "kept_max"), read_count(json, "kept_step"),
                     read_count(json, "ramp_steps")};
  schedule.kept_length = named<KeptLength>(json.at("kept_length"), kKeptLengths);
  schedule.count = named<TokenCount>(json.at("count"), kTokenCounts);
  schedule.layers = read_count(json, "layers");
  schedule.ltd_layers = read_count(json, "ltd_layers");
  setup.layer_ids = numbers(json.at("layer_ids"));
  schedule.micro_batch = read_count(json, "micro_batch");
  schedule.accumulation = read_count(json, "accumulation");
  schedule.world = read_count(json, "world");
  schedule.seq_length = read_count(json, "seq_length");
  schedule.curriculum = read_curriculum(json.at("curriculum"));
  setup.rate.peak = json.at("peak_lr").as_double();
  setup.rate.min = json.at("min_lr").as_double();
  setup.rate.warmup_layer_tokens = read_count(json, "warmup_layer_tokens");
  setup.rate.decay_layer_tokens = read_count(json, "decay_layer_tokens");
  setup.rate.decay = named<LrDecay>(json.at("decay"), kLrDecays);
  setup.rate.lag = static_cast<int>(json.at("lr_lag").as_int(0, 1));
  setup.mode = named<KeptMode>(json.at("selection"), kKeptModes);
  setup.seed = read_seed(json.at("seed"));
  if (!json.at("hidden_size").is_null()) setup.hidden_size = read_count(json, "hidden_size");
  return setup;
}

std::optional<StepWindow> read_window(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return StepWindow{read_count(json, "first_step"), read_count(json, "steps")};
}

/// A figure that the manifest gives for people and the writer works out anew; kept as it is.
double figure(const Json& json, std::string_view key) { return json.at(key).as_double(); }

void read_dataset(const Json& json, LtdManifest& manifest) {
  if (json.is_null()) return;
  const auto totals = [&](std::string_view key) {
    const Json counted = json.at(key);
    return LtdTotals{read_count(counted, "layer_tokens"), read_count(counted, "dense_layer_tokens")};
  };
  LtdDataset dataset;
  dataset.kind = named<LtdRowSource>(json.at("kind"), kLtdRowSources);
  dataset.hash = read_hash(json.at("manifest_xxh3_128"));
  if (const Json hash = json.at("rows_manifest_xxh3_128"); !hash.is_null()) dataset.rows_hash = read_hash(hash);
  dataset.rows = read_count(json, "rows");
  dataset.row_tokens = read_count(json, "row_tokens");
  dataset.segments = read_count(json, "segments");
  dataset.tokens = read_count(json, "tokens");
  dataset.batches = read_count(json, "batches");
  dataset.steps = read_count(json, "steps");
  manifest.dataset = dataset;
  manifest.real = totals("real");
  manifest.padded = totals("padded");
  manifest.attention.segments = figure(json, "segments_seen");
  manifest.attention.empty_segments = figure(json, "empty_segments_expected");
  manifest.attention.kept_padding = read_count(json, "padding_kept");
  manifest.attention.max_inclusion = figure(json, "max_inclusion");
  manifest.attention.full_row_pairs = 1;  // shares are all that is stored
  manifest.attention.dense_pairs = 1 - figure(json, "attention_saving_of_packing");
  manifest.attention.pairs = 1 - figure(json, "attention_saving_of_both");
}

}  // namespace

LtdManifest ltd_manifest_from_json(const std::string& text, const std::string& path) {
  const Json json = Json::parse(text, path);
  check_format(json, kLtdFormat, kFormatVersion);
  check_checksum(text, path);

  LtdManifest manifest;
  manifest.tool_version = json.at("tool_version").as_string();
  manifest.steps = read_count(json, "steps");
  manifest.plateaus = read_count(json, "plateaus");
  manifest.layer_tokens = read_count(json, "layer_tokens");
  manifest.dense_layer_tokens = read_count(json, "dense_layer_tokens");
  manifest.effective_tokens = read_count(json, "effective_tokens");
  manifest.setup = read_options(json.at("options"));
  const Json budget = json.at("budget");
  manifest.setup.budget = {named<BudgetKind>(budget.at("kind"), kBudgetKinds), read_count(budget, "amount")};
  manifest.budget = {read_count(budget, "micro_step"), read_count(budget, "optimizer_step"), read_count(budget, "tokens"),
                     read_count(budget, "layer_tokens")};
  if (!json.at("flop_saving").is_null()) manifest.flop_saving = figure(json, "flop_saving");
  read_dataset(json.at("dataset"), manifest);
  if (!manifest.dataset) {
    manifest.attention.full_row_pairs = manifest.attention.dense_pairs = 1;
    manifest.attention.pairs = 1 - figure(json, "attention_saving");
  }
  manifest.kept = read_window(json.at("kept"));
  manifest.boundaries = read_window(json.at("cu_seqlens"));
  const Json warnings = json.at("warnings"), files = json.at("files");
  for (std::size_t i = 0; i < warnings.size(); ++i) manifest.warnings.push_back(warnings.at(i).as_string());
  std::set<std::string> seen;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Json file = files.at(i);
    const std::string name = file.at("name").as_string();
    if (!is_plain_relative_path(name))
      file.at("name").fail(fmt::format("expected a relative path without '..', found '{}'", name));
    if (!seen.insert(name).second) file.at("name").fail(fmt::format("'{}' is listed twice", name));
    manifest.files.push_back({name, read_count(file, "bytes"), read_hash(file.at("xxh3_128"))});
  }
  return manifest;
}

}  // namespace shardpack
