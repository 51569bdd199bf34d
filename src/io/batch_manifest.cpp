#include "shardpack/batch_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "io/json.h"
#include "io/manifest_parts.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kFormatVersion = 1;
constexpr std::int64_t kMaxCount = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxLength = std::numeric_limits<Length>::max();
constexpr std::array<std::string_view, 3> kTails{"short", "repeat", "drop"};
constexpr std::array<std::string_view, 4> kOverlong{"error", "truncate", "split", "drop"};
constexpr std::array<std::string_view, 2> kSides{"end", "start"};

/// All digits of a double, so that reading it back gives the same one.
std::string number(double value) { return fmt::format("{:.17g}", value); }

void write_totals(JsonWriter& json, std::string_view key, const BatchTotals& totals) {
  json.key(key).begin_object(true).member("items", totals.items).member("tokens", totals.tokens).end_object();
}
BatchTotals read_totals(const Json& json) { return {read_count(json, "items"), read_count(json, "tokens")}; }

template <std::size_t Count>
std::size_t choice(const Json& value, const std::array<std::string_view, Count>& choices) {
  const std::string text = value.as_string();
  for (std::size_t i = 0; i < Count; ++i) {
    if (choices[i] == text) return i;
  }
  value.fail(fmt::format("'{}' is unknown", text));
}

void write_options(JsonWriter& json, const BatchManifest& manifest) {
  const BatchOptions& plan = manifest.plan;
  const LengthPolicy& policy = manifest.policy;
  json.key("options").begin_object();
  json.key("seed").raw(std::to_string(plan.seed));
  json.member("strategy", to_text(plan.strategy));
  json.member("batch_size", plan.batch_size).member("max_batch", plan.max_batch).member("size_multiple", plan.size_multiple);
  json.member("pad_multiple", plan.pad.multiple);
  json.key("shapes").begin_array(true);
  for (const Length shape : plan.pad.shapes) json.value(shape);
  json.end_array();
  json.member("tail", kTails[static_cast<std::size_t>(plan.tail)]).member("oom_first", plan.oom_first);
  json.member("max_length", policy.row_tokens);
  json.member("overlong", kOverlong[static_cast<std::size_t>(policy.overlong)]);
  json.member("truncate_side", kSides[static_cast<std::size_t>(policy.truncate_side)]);
  json.member("min_tokens", policy.min_tokens);
  json.key("write_shards");
  if (manifest.shards) {
    const BatchShardOptions& shards = manifest.shards->options;
    json.begin_object(true)
        .member("layout", kBatchLayouts[static_cast<std::size_t>(shards.layout)])
        .member("pad_id", shards.pad_id);
    json.member("id_dtype", shards.id_type ? info(*shards.id_type).name : "auto").member("zstd_level", shards.zstd_level);
    json.member("shard_bytes", shards.shard_bytes).end_object();
  } else {
    json.null();
  }
  json.key("read").begin_object();
  for (const auto& [name, value] : manifest.read_options) json.key(name).raw(value);
  json.end_object();
  json.end_object();
}

void write_shards(JsonWriter& json, const BatchShards& shards) {
  json.key("ids").begin_object(true).member("dtype", info(shards.id_type).name).member("min", shards.id_min);
  json.member("max", shards.id_max).end_object();
  write_columns(json, shards.columns);
  json.key("not_carried").begin_array(true);
  for (const std::string& column : shards.not_carried) json.value(column);
  json.end_array();
  json.key("loss").begin_object(true).member("source_tokens", shards.source_loss_tokens).member("tokens", shards.loss_tokens);
  json.end_object();
  json.key("fingerprint").begin_object();
  json.member("source", shards.source.hex()).member("batched", shards.batched.hex()).member("removed", shards.removed.hex());
  json.member("dropped", shards.dropped.hex()).member("repeated", shards.repeated.hex());
  json.end_object();
  json.key("shards").begin_array();
  for (const ManifestShard& shard : shards.shards) write_shard(json, shard);
  json.end_array();
}

BatchShardOptions read_shard_options(const Json& json) {
  BatchShardOptions options;
  options.layout = static_cast<BatchLayout>(choice(json.at("layout"), kBatchLayouts));
  options.pad_id = json.at("pad_id").as_int(0, std::numeric_limits<std::uint32_t>::max());
  constexpr std::array<std::string_view, 3> kTypes{"auto", "u16", "u32"};
  const std::size_t type = choice(json.at("id_dtype"), kTypes);
  if (type > 0) options.id_type = type == 1 ? IdType::u16 : IdType::u32;
  options.zstd_level = static_cast<int>(json.at("zstd_level").as_int(0, 19));
  options.shard_bytes = json.at("shard_bytes").as_int(1, kMaxCount);
  return options;
}

BatchShards read_shards(const Json& json, ManifestNames& names) {
  BatchShards shards;
  shards.options = read_shard_options(json.at("options").at("write_shards"));
  const Json ids = json.at("ids"), loss = json.at("loss"), fingerprint = json.at("fingerprint");
  shards.id_type = choice(ids.at("dtype"), std::array<std::string_view, 2>{"u16", "u32"}) == 0 ? IdType::u16 : IdType::u32;
  shards.id_min = read_count(ids, "min");
  shards.id_max = ids.at("max").as_int(-1, std::numeric_limits<std::uint32_t>::max());
  shards.columns = read_columns(json.at("columns"));
  const Json not_carried = json.at("not_carried");
  for (std::size_t i = 0; i < not_carried.size(); ++i) shards.not_carried.push_back(not_carried.at(i).as_string());
  shards.source_loss_tokens = read_count(loss, "source_tokens");
  shards.loss_tokens = read_count(loss, "tokens");
  shards.source = read_fingerprint(fingerprint.at("source"));
  shards.batched = read_fingerprint(fingerprint.at("batched"));
  shards.removed = read_fingerprint(fingerprint.at("removed"));
  shards.dropped = read_fingerprint(fingerprint.at("dropped"));
  shards.repeated = read_fingerprint(fingerprint.at("repeated"));
  const Json list = json.at("shards");
  for (std::size_t i = 0; i < list.size(); ++i) shards.shards.push_back(read_shard(list.at(i), names));
  return shards;
}

/// \throws Error{bad_data} for options that the command line would refuse
void read_options(const Json& json, BatchManifest& manifest) {
  BatchOptions& plan = manifest.plan;
  LengthPolicy& policy = manifest.policy;
  plan.batch_size = read_count(json, "batch_size");
  plan.max_batch = read_count(json, "max_batch");
  plan.size_multiple = json.at("size_multiple").as_int(1, kMaxCount);
  plan.pad.multiple = static_cast<Length>(json.at("pad_multiple").as_int(1, kMaxLength));
  const Json shapes = json.at("shapes");
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::int64_t above = plan.pad.shapes.empty() ? 0 : plan.pad.shapes.back();
    plan.pad.shapes.push_back(static_cast<Length>(shapes.at(i).as_int(above + 1, kMaxLength)));
  }
  plan.tail = static_cast<BatchTail>(choice(json.at("tail"), kTails));
  plan.oom_first = json.at("oom_first").as_bool();
  policy.row_tokens = static_cast<Length>(json.at("max_length").as_int(0, kMaxLength));
  policy.overlong = static_cast<Overlong>(choice(json.at("overlong"), kOverlong));
  policy.truncate_side = static_cast<TruncateSide>(choice(json.at("truncate_side"), kSides));
  policy.min_tokens = static_cast<Length>(json.at("min_tokens").as_int(0, kMaxLength));
  for (const auto& [name, value] : json.at("read").members()) manifest.read_options.emplace_back(name, value.dump());
  try {
    plan.seed = std::stoull(json.at("seed").dump());
    plan.strategy = parse_batch_strategy(json.at("strategy").as_string());
    check_batch_options(plan);
  } catch (const std::logic_error&) {
    json.at("seed").fail("expected a whole number from 0");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage) throw;
    json.fail(error.message());
  }
}

}  // namespace

double BatchManifest::predicted_minutes() const {
  return cost.minutes({.padded_tokens = static_cast<double>(padded_tokens),
                       .padded_squares = padded_squares,
                       .batches = static_cast<double>(batches_per_epoch) * static_cast<double>(epochs)});
}

std::string to_json(const BatchManifest& manifest) {
  JsonWriter json;
  json.begin_object();
  json.member("format", kBatchesFormat).member("format_version", kFormatVersion).member("tool_version", manifest.tool_version);
  json.member("members", manifest.rows ? "rows" : "sequences");
  json.member("source_sequences", manifest.source_sequences).member("source_tokens", manifest.source_tokens);
  json.member("items", manifest.items).member("tokens", manifest.tokens);
  json.member("world", manifest.plan.world).member("accumulation", manifest.plan.accumulation).member("epochs", manifest.epochs);
  json.member("batches_per_epoch", manifest.batches_per_epoch).member("steps_per_epoch", manifest.steps_per_epoch());
  json.member("real_tokens", manifest.real_tokens).member("padded_tokens", manifest.padded_tokens);
  json.key("padded_squares").raw(number(manifest.padded_squares));
  if (!manifest.loss_column.empty())
    json.member("loss_column", manifest.loss_column).member("label_tokens", manifest.label_tokens);
  json.member("shapes", manifest.shapes).member("largest_batch", manifest.largest_batch);
  json.member("imbalance", manifest.imbalance).member("free_imbalance", manifest.free_imbalance);
  json.key("predicted").begin_object();
  json.member("minutes", manifest.predicted_minutes()).member("cost_model", manifest.cost.name);
  json.key("minutes_per_token").raw(number(manifest.cost.minutes_per_token));
  json.key("minutes_per_square").raw(number(manifest.cost.minutes_per_square));
  json.key("minutes_per_batch").raw(number(manifest.cost.minutes_per_batch));
  json.end_object();
  write_options(json, manifest);
  json.member("lengths_xxh3_128", manifest.lengths_hash);
  json.key("source_manifest_xxh3_128");
  if (manifest.source_manifest_hash) {
    json.value(*manifest.source_manifest_hash);
  } else {
    json.null();
  }
  write_sources(json, manifest.sources);
  write_removed_counts(json, manifest.removed, manifest.shards && !manifest.loss_column.empty());
  write_totals(json, "repeated", manifest.repeated);
  write_totals(json, "dropped", manifest.dropped);
  write_files(json, "files", manifest.files);
  if (manifest.shards) write_shards(json, *manifest.shards);
  json.end_object();
  return with_checksum(json.take());
}

BatchManifest batch_manifest_from_json(const std::string& text, const std::string& path) {
  const Json json = Json::parse(text, path);
  check_format(json, kBatchesFormat, kFormatVersion);
  check_checksum(text, path);
  BatchManifest manifest;
  manifest.tool_version = json.at("tool_version").as_string();
  manifest.rows = choice(json.at("members"), std::array<std::string_view, 2>{"sequences", "rows"}) == 1;
  manifest.source_sequences = read_count(json, "source_sequences");
  manifest.source_tokens = read_count(json, "source_tokens");
  manifest.items = json.at("items").as_int(0, std::numeric_limits<std::uint32_t>::max());
  manifest.tokens = read_count(json, "tokens");
  manifest.plan.world = json.at("world").as_int(1, std::int64_t{1} << 20);
  manifest.plan.accumulation = json.at("accumulation").as_int(1, std::int64_t{1} << 20);
  manifest.epochs = json.at("epochs").as_int(1, std::numeric_limits<std::int32_t>::max());
  manifest.batches_per_epoch =
      json.at("batches_per_epoch").as_int(0, std::min(std::int64_t{1} << 33, kMaxCount / manifest.epochs));
  manifest.real_tokens = read_count(json, "real_tokens");
  manifest.padded_tokens = read_count(json, "padded_tokens");
  manifest.padded_squares = json.at("padded_squares").as_double();
  if (json.has("loss_column")) {
    manifest.loss_column = json.at("loss_column").as_string();
    manifest.label_tokens = read_count(json, "label_tokens");
  }
  manifest.shapes = read_count(json, "shapes");
  manifest.largest_batch = read_count(json, "largest_batch");
  manifest.imbalance = json.at("imbalance").as_double();
  manifest.free_imbalance = json.at("free_imbalance").as_double();
  const Json predicted = json.at("predicted");
  manifest.cost = {predicted.at("cost_model").as_string(), predicted.at("minutes_per_token").as_double(),
                   predicted.at("minutes_per_square").as_double(), predicted.at("minutes_per_batch").as_double()};
  read_options(json.at("options"), manifest);
  manifest.lengths_hash = read_hash(json.at("lengths_xxh3_128"));
  if (const Json hash = json.at("source_manifest_xxh3_128"); !hash.is_null()) manifest.source_manifest_hash = read_hash(hash);
  manifest.sources = read_sources(json.at("sources"));
  manifest.removed = read_removed_counts(json.at("removed"));
  manifest.repeated = read_totals(json.at("repeated"));
  manifest.dropped = read_totals(json.at("dropped"));
  ManifestNames names;
  manifest.files = read_files(json.at("files"), names.beside);
  if (json.has("shards")) manifest.shards = read_shards(json, names);
  return manifest;
}

}  // namespace shardpack
