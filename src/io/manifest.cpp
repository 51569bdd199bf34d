#include "shardpack/manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

#include "base/wide.h"
#include "core/column_values.h"
#include "io/group_key_text.h"
#include "io/json.h"
#include "io/manifest_parts.h"
#include "shardpack/error.h"
#include "shardpack/presets.h"

namespace shardpack {

bool Manifest::holds_tokens() const { return container != info(Container::index).name; }

bool Manifest::has_begins() const {
  return std::ranges::any_of(sources, [](const ManifestSource& source) { return source.id_bytes() > 0; });
}

std::int64_t Manifest::slots() const {
  const Preset* const known = try_preset(preset);
  return tokens - (known == nullptr ? 0 : unslotted_tokens(known->slot_rule) * segments);
}

double Manifest::efficiency() const {
  const double all = static_cast<double>(planned_rows()) * static_cast<double>(row_tokens);
  return all > 0 ? static_cast<double>(slots()) / all : 1;
}

double Manifest::packing_factor() const {
  return planned_rows() > 0 ? static_cast<double>(sequences) / static_cast<double>(planned_rows()) : 0;
}

namespace {

constexpr std::int64_t kFormatVersion = 1;
constexpr int kEfficiencyDecimals = 6, kPackingFactorDecimals = 4;
constexpr bool kOnOneLine = true;

// ---- writing ----------------------------------------------------------------------------------------------------------------

void write_optional(JsonWriter& json, std::string_view key, const std::optional<std::int64_t>& value) {
  json.key(key);
  if (value) {
    json.value(*value);
  } else {
    json.null();
  }
}

void write_names(JsonWriter& json, std::string_view key, const std::vector<std::string>& names) {
  json.key(key).begin_array(kOnOneLine);
  for (const std::string& name : names) json.value(name);
  json.end_array();
}

void write_plan(JsonWriter& json, const Manifest::Plan& plan) {
  json.key("plan").begin_object(kOnOneLine);
  json.member("packer", plan.packer);
  json.member("max_segments", plan.max_segments);
  json.member("segment_multiple", plan.segment_multiple);
  json.member("rows", plan.rows);
  json.member("bound", plan.bound);
  json.member("bound_kind", plan.bound_kind);
  json.member("gap", plan.rows - plan.bound);
  json.end_object();
}

void write_ids(JsonWriter& json, const Manifest& manifest) {
  json.key("ids").begin_object(kOnOneLine);
  json.member("dtype", info(manifest.id_type).name);
  json.member("min", manifest.id_min);
  json.member("max", manifest.id_max);
  json.member("pad_id", manifest.pad_id);
  write_optional(json, "eos_id", manifest.eos_id);
  write_optional(json, "bos_id", manifest.bos_id);
  json.end_object();
}

void write_groups(JsonWriter& json, const std::vector<ManifestGroup>& groups) {
  json.key("groups").begin_array(kOnOneLine);
  for (const ManifestGroup& group : groups) {
    json.begin_object(kOnOneLine).key("key").raw(group_text(group.key));
    json.member("rows", group.rows).member("bound", group.bound).end_object();
  }
  json.end_array();
}

/// As first sequence and count of each.
void write_runs(JsonWriter& json, const SequenceRanges& sequences) {
  json.key("runs").begin_array(kOnOneLine);
  for (const SequenceRange& run : sequences.runs()) {
    json.begin_array(kOnOneLine).value(run.first).value(run.count());
    json.end_array();
  }
  json.end_array();
}

void write_partitions(JsonWriter& json, const std::vector<ManifestPartition>& partitions) {
  json.key("partitions").begin_array();
  for (const ManifestPartition& partition : partitions) write_partition(json, partition);
  json.end_array();
}

void write_loss(JsonWriter& json, const Manifest& manifest) {
  if (manifest.loss_column.empty()) return;
  json.key("loss").begin_object(kOnOneLine);
  json.member("column", manifest.loss_column);
  json.member("source_tokens", manifest.source_loss_tokens).member("tokens", manifest.loss_tokens);
  json.end_object();
}

void write_shards(JsonWriter& json, const Manifest& manifest) {
  json.key("shards").begin_array();
  for (const ManifestShard& shard : manifest.shards) write_shard(json, shard);
  json.end_array();
}

}  // namespace

void write_columns(JsonWriter& json, std::span<const Column> columns) {
  json.key("columns").begin_array(columns.empty());
  for (const Column& column : columns) {
    json.begin_object(kOnOneLine);
    json.member("name", column.name).member("dtype", info(column.type).name);
    json.member("alignment", kAlignments[static_cast<std::size_t>(column.alignment)]);
    json.member("per", kColumnKinds[static_cast<std::size_t>(column.kind)]);
    if (is_placed(column)) json.member("places", column.places);
    json.end_object();
  }
  json.end_array();
}

void write_partition(JsonWriter& json, const ManifestPartition& partition) {
  json.begin_object(kOnOneLine);
  json.member("first_sequence", partition.sequences.first()).member("sequences", partition.sequences.count());
  if (partition.sequences.runs().size() > 1) write_runs(json, partition.sequences);
  json.member("rows", partition.rows).member("bound", partition.bound).member("plan", partition.plan);
  write_names(json, "shards", partition.shards);
  if (!partition.groups.empty()) write_groups(json, partition.groups);
  json.end_object();
}

void write_shard(JsonWriter& json, const ManifestShard& shard) {
  json.begin_object();
  json.member("folder", shard.folder);
  json.member("rows", shard.rows).member("tokens", shard.tokens).member("segments", shard.segments);
  if (shard.loss_tokens > 0) json.member("loss_tokens", shard.loss_tokens);
  if (shard.hidden_labels > 0) json.member("hidden_labels", shard.hidden_labels);
  write_fingerprint(json, "fingerprint", shard.fingerprint);
  write_files(json, "files", shard.files);
  if (!shard.trainer_files.empty()) write_files(json, "trainer_files", shard.trainer_files);
  json.end_object();
}

std::string to_json(const Manifest& manifest) {
  JsonWriter json;
  json.begin_object();
  json.member("format", kPackedFormat);
  json.member("format_version", kFormatVersion);
  json.member("tool_version", manifest.tool_version);
  json.key("solver");
  if (manifest.solver.empty()) {
    json.null();
  } else {
    json.value(manifest.solver);
  }
  json.member("preset", manifest.preset).member("container", manifest.container);
  json.member("row_tokens", manifest.row_tokens);
  json.member("rows", manifest.rows);
  json.member("source_sequences", manifest.source_sequences);
  json.member("source_tokens", manifest.source_tokens);
  json.member("sequences", manifest.sequences);
  json.member("segments", manifest.segments);
  json.member("tokens", manifest.tokens);
  json.member("padding_tokens", manifest.padding_tokens);
  json.key("efficiency").value(manifest.efficiency(), kEfficiencyDecimals);
  json.key("packing_factor").value(manifest.packing_factor(), kPackingFactorDecimals);
  json.member("max_segments_in_row", manifest.max_segments_in_row);
  write_plan(json, manifest.plan);
  write_ids(json, manifest);
  json.member("position_start", manifest.position_start);
  json.member("derived", manifest.derived);
  json.member("compress", manifest.compress);
  if (manifest.segment_width > 0) {
    json.key("widths").begin_object(kOnOneLine);
    json.member("entries", manifest.entry_width).member("segments", manifest.segment_width).end_object();
  }
  write_columns(json, manifest.columns);
  write_names(json, "not_carried", manifest.not_carried);
  write_loss(json, manifest);
  json.key("options").begin_object();
  for (const auto& [name, value] : manifest.options) json.key(name).raw(value);
  json.end_object();
  write_sources(json, manifest.sources);
  json.key("fingerprint").begin_object();
  json.member("source", manifest.source_fingerprint.hex());
  write_fingerprint(json, "packed", manifest.packed_fingerprint);
  write_fingerprint(json, "removed", manifest.removed_fingerprint);
  json.end_object();
  write_removed_counts(json, manifest.removed, !manifest.loss_column.empty());
  json.key("added").begin_object(kOnOneLine);
  json.member("eos", manifest.added_eos).member("bos", manifest.added_bos);
  json.end_object();
  json.member("hidden_labels", manifest.hidden_labels);
  json.key("repeated").begin_object(kOnOneLine);
  json.member("rows", manifest.repeated_rows);
  json.member("sequences", manifest.repeated_sequences);
  json.member("tokens", manifest.repeated_tokens);
  json.end_object();
  json.member("fill_rows", manifest.fill_rows);
  write_partitions(json, manifest.partitions);
  write_shards(json, manifest);
  write_files(json, "files", manifest.files);
  if (!manifest.trainer_files.empty()) write_files(json, "trainer_files", manifest.trainer_files);
  json.end_object();

  return with_checksum(json.take());
}

// ---- reading ----------------------------------------------------------------------------------------------------------------

namespace {

constexpr std::int64_t kMaxId = std::numeric_limits<std::uint32_t>::max();

std::optional<Fingerprint> optional_fingerprint(const Json& value) {
  if (value.is_null()) return std::nullopt;
  return read_fingerprint(value);
}

/// Rows have fingerprints when they hold tokens, and only then.
void check_fingerprints(const Json& json, const Manifest& manifest) {
  const auto check = [&](const std::optional<Fingerprint>& found, const Json& value) {
    if (found.has_value() != manifest.holds_tokens())
      value.fail(manifest.holds_tokens() ? "expected 32 hex digits, found null" : "expected null, for the rows hold no tokens");
  };
  check(manifest.packed_fingerprint, json.at("fingerprint").at("packed"));
  check(manifest.removed_fingerprint, json.at("fingerprint").at("removed"));
  for (std::size_t s = 0; s < manifest.shards.size(); ++s)
    check(manifest.shards[s].fingerprint, json.at("shards").at(s).at("fingerprint"));
}

std::vector<std::string> strings(const Json& list) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < list.size(); ++i) result.push_back(list.at(i).as_string());
  return result;
}

/// For what this version always writes the same.
void expect(const Json& value, std::string_view json) {
  if (value.dump() != json) value.fail(fmt::format("expected {}, which is all that this version knows", json));
}

/// For figures that follow from others.
void expect_figure(const Json& value, double expected, int decimals) {
  const double found = value.as_double();
  if (!(std::abs(found - expected) < std::pow(10, -decimals))) {
    value.fail(fmt::format("expected {:.{}f} from the counts beside it, found {}", expected, decimals, found));
  }
}

Manifest::Plan read_plan(const Json& json) {
  Manifest::Plan plan;
  plan.packer = json.at("packer").as_string();
  plan.max_segments = static_cast<std::int32_t>(json.at("max_segments").as_int(0, std::numeric_limits<std::int32_t>::max()));
  plan.segment_multiple = static_cast<Length>(json.at("segment_multiple").as_int(1, std::numeric_limits<Length>::max()));
  plan.rows = read_count(json, "rows");
  plan.bound = read_count(json, "bound");
  plan.bound_kind = json.at("bound_kind").as_string();
  expect(json.at("gap"), std::to_string(plan.rows - plan.bound));
  return plan;
}

void read_ids(const Json& json, Manifest& manifest) {
  const auto optional_id = [&json](std::string_view key) -> std::optional<std::int64_t> {
    const Json value = json.at(key);
    if (value.is_null()) return std::nullopt;
    return value.as_int(0, kMaxId);
  };
  const Json dtype = json.at("dtype");
  const std::string name = dtype.as_string();
  if (name != info(IdType::u16).name && name != info(IdType::u32).name) {
    dtype.fail(fmt::format("expected u16 or u32, found '{}'", name));
  }
  manifest.id_type = name == info(IdType::u16).name ? IdType::u16 : IdType::u32;
  manifest.id_min = json.at("min").as_int(0, kMaxId);
  manifest.id_max = json.at("max").as_int(-1, kMaxId);
  manifest.pad_id = json.at("pad_id").as_int(0, kMaxId);
  manifest.eos_id = optional_id("eos_id");
  manifest.bos_id = optional_id("bos_id");
}

/// The entry of a table of names that `value` is; its number.
template <class Names>
std::size_t one_of(const Json& value, const Names& names) {
  const std::string found = value.as_string();
  const auto name = std::find(names.begin(), names.end(), found);
  if (name == names.end()) value.fail(fmt::format("expected one of {}, found '{}'", fmt::join(names, ", "), found));
  return static_cast<std::size_t>(name - names.begin());
}

SequenceRanges read_sequences(const Json& json) {
  SequenceRanges sequences;
  const auto append = [&](const Json& first, const Json& count) {
    const SequenceId least = sequences.count() == 0 ? 0 : sequences.last();
    const SequenceId begin = first.as_int(least, std::numeric_limits<std::int64_t>::max());
    sequences.append({begin, begin + count.as_int(1, std::numeric_limits<std::int64_t>::max() - begin)});
  };
  const Json first = json.at("first_sequence"), count = json.at("sequences");
  if (!json.has("runs")) {
    append(first, count);
    return sequences;
  }
  const Json runs = json.at("runs");
  for (std::size_t i = 0; i < runs.size(); ++i) append(runs.at(i).at(0), runs.at(i).at(1));
  if (sequences.count() == 0) runs.fail("expected at least one run of sequences");
  expect(first, std::to_string(sequences.first()));
  expect(count, std::to_string(sequences.count()));
  return sequences;
}

std::vector<ManifestPartition> read_partitions(const Json& list) {
  std::vector<ManifestPartition> partitions;
  std::set<std::string> plans;  // read one by one: a file that many partitions name would be read as many times
  for (std::size_t i = 0; i < list.size(); ++i) {
    partitions.push_back(read_partition(list.at(i)));
    if (!plans.insert(partitions.back().plan).second) list.at(i).at("plan").fail("it is another partition's plan as well");
  }
  return partitions;
}

std::vector<ManifestShard> read_shards(const Json& list, ManifestNames& seen) {
  std::vector<ManifestShard> shards;
  for (std::size_t i = 0; i < list.size(); ++i) shards.push_back(read_shard(list.at(i), seen));
  return shards;
}

/// Everyone who adds these up may do so without another thought.
void check_sums_fit(const Manifest& manifest, const std::string& path) {
  Int128 sequences = 0, tokens = 0, rows = 0, planned_rows = 0, bound = 0, bytes = 0;
  const auto add_files = [&](const std::vector<ManifestFile>& files) {
    for (const ManifestFile& file : files) bytes += file.bytes;
  };
  for (const ManifestSource& source : manifest.sources) {
    sequences += source.sequences;
    tokens += source.tokens;
  }
  for (const ManifestPartition& partition : manifest.partitions) {
    planned_rows += partition.rows;
    bound += partition.bound;
  }
  for (const ManifestShard& shard : manifest.shards) {
    rows += shard.rows;
    add_files(shard.files);
    add_files(shard.trainer_files);
  }
  add_files(manifest.files);
  add_files(manifest.trainer_files);
  for (const Int128 sum : {sequences, tokens, rows, planned_rows, bound, bytes}) {
    if (sum > std::numeric_limits<std::int64_t>::max())
      throw Error(ErrorCode::bad_data, "its counts add up to more than 2^63", path);
  }
}

}  // namespace

std::vector<Column> read_columns(const Json& list) {
  constexpr std::array<ValueType, 5> kTypes{ValueType::u8, ValueType::i32, ValueType::i64, ValueType::f32, ValueType::f64};
  std::array<std::string_view, kTypes.size()> type_names;
  for (std::size_t i = 0; i < kTypes.size(); ++i) type_names[i] = info(kTypes[i]).name;
  std::vector<Column> columns(list.size());
  std::set<std::string> seen;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Json json = list.at(i);
    columns[i].name = unique_name(json.at("name"), seen);
    columns[i].type = kTypes[one_of(json.at("dtype"), type_names)];
    columns[i].alignment = static_cast<Alignment>(one_of(json.at("alignment"), kAlignments));
    columns[i].kind = static_cast<ColumnKind>(one_of(json.at("per"), kColumnKinds));
    if (json.has("places")) columns[i].places = json.at("places").as_string();
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!is_placed(columns[i])) continue;
    const auto where = std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.name == columns[i].places; });
    const bool sound = where != columns.end() && holds_places(*where) && columns[i].kind == ColumnKind::list &&
                       where->kind == ColumnKind::list && (where->type == ValueType::i32 || where->type == ValueType::i64);
    if (!sound) list.at(i).at("places").fail("expected a list of this dataset that holds slots, as i32 or i64, for a list");
  }
  return columns;
}

ManifestPartition read_partition(const Json& json) {
  ManifestPartition partition;
  partition.sequences = read_sequences(json);
  partition.rows = read_count(json, "rows");
  partition.bound = read_count(json, "bound");
  partition.plan = json.at("plan").as_string();
  partition.shards = strings(json.at("shards"));
  if (!json.has("groups")) return partition;
  const Json groups = json.at("groups");
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Json group = groups.at(g);
    partition.groups.push_back({read_group(group.at("key")), read_count(group, "rows"), read_count(group, "bound")});
  }
  return partition;
}

ManifestShard read_shard(const Json& json, ManifestNames& seen) {
  ManifestShard shard;
  shard.folder = unique_name(json.at("folder"), seen.beside);
  shard.rows = read_count(json, "rows");
  shard.tokens = read_count(json, "tokens");
  shard.segments = read_count(json, "segments");
  if (json.has("loss_tokens")) shard.loss_tokens = read_count(json, "loss_tokens");
  if (json.has("hidden_labels")) shard.hidden_labels = read_count(json, "hidden_labels");
  shard.fingerprint = optional_fingerprint(json.at("fingerprint"));
  std::set<std::string> in_folder;
  shard.files = read_files(json.at("files"), in_folder);
  if (json.has("trainer_files")) shard.trainer_files = read_files(json.at("trainer_files"), seen.trainer);
  return shard;
}

Manifest manifest_from_json(const std::string& text, const std::string& path) {
  const Json json = Json::parse(text, path);
  check_format(json, kPackedFormat, kFormatVersion);
  check_checksum(text, path);

  Manifest manifest;
  manifest.tool_version = json.at("tool_version").as_string();
  if (!json.at("solver").is_null()) manifest.solver = json.at("solver").as_string();
  manifest.preset = json.at("preset").as_string();
  manifest.container = json.at("container").as_string();
  manifest.row_tokens = static_cast<Length>(json.at("row_tokens").as_int(1, std::numeric_limits<Length>::max()));
  manifest.rows = read_count(json, "rows");
  manifest.source_sequences = read_count(json, "source_sequences");
  manifest.source_tokens = read_count(json, "source_tokens");
  manifest.sequences = read_count(json, "sequences");
  manifest.segments = read_count(json, "segments");
  manifest.tokens = read_count(json, "tokens");
  manifest.padding_tokens = read_count(json, "padding_tokens");
  manifest.max_segments_in_row = read_count(json, "max_segments_in_row");
  manifest.plan = read_plan(json.at("plan"));
  read_ids(json.at("ids"), manifest);
  manifest.position_start = json.at("position_start").as_int(0, kMaxId);
  manifest.derived = json.at("derived").as_bool();
  manifest.compress = json.at("compress").as_string();
  if (json.has("widths")) {
    constexpr std::int64_t kMostValues = std::numeric_limits<Length>::max();
    manifest.entry_width = json.at("widths").at("entries").as_int(0, kMostValues);
    manifest.segment_width = json.at("widths").at("segments").as_int(1, kMostValues);
  }
  manifest.columns = read_columns(json.at("columns"));
  manifest.not_carried = strings(json.at("not_carried"));
  if (json.has("loss")) {
    const Json loss = json.at("loss");
    const Json column = loss.at("column");
    manifest.loss_column = column.as_string();
    const bool is_there = std::any_of(manifest.columns.begin(), manifest.columns.end(), [&](const Column& carried) {
      const bool tells = carried.kind == ColumnKind::token || holds_places(carried) ||
                         (is_placed(carried) && carried.name == weights_of_positions(carried.places));
      return carried.name == manifest.loss_column && tells;
    });
    if (!is_there) column.fail(fmt::format("'{}' is no column with a value for each token, or of tokens", manifest.loss_column));
    manifest.source_loss_tokens = read_count(loss, "source_tokens");
    manifest.loss_tokens = read_count(loss, "tokens");
  }
  for (const auto& [name, value] : json.at("options").members()) manifest.options.emplace_back(name, value.dump());
  manifest.sources = read_sources(json.at("sources"));
  const Json fingerprints = json.at("fingerprint");
  manifest.source_fingerprint = read_fingerprint(fingerprints.at("source"));
  manifest.packed_fingerprint = optional_fingerprint(fingerprints.at("packed"));
  manifest.removed_fingerprint = optional_fingerprint(fingerprints.at("removed"));
  manifest.removed = read_removed_counts(json.at("removed"));
  manifest.added_eos = read_count(json.at("added"), "eos");
  manifest.added_bos = read_count(json.at("added"), "bos");
  manifest.hidden_labels = read_count(json, "hidden_labels");
  if (manifest.preset == "native") expect(json.at("hidden_labels"), "0");
  const Json repeated = json.at("repeated");
  manifest.repeated_rows = repeated.at("rows").as_int(0, manifest.rows);
  manifest.repeated_sequences = read_count(repeated, "sequences");
  manifest.repeated_tokens = read_count(repeated, "tokens");
  manifest.fill_rows = json.at("fill_rows").as_int(0, manifest.rows - manifest.repeated_rows);
  manifest.partitions = read_partitions(json.at("partitions"));
  ManifestNames names;
  manifest.shards = read_shards(json.at("shards"), names);
  manifest.files = read_files(json.at("files"), names.beside);
  if (json.has("trainer_files")) manifest.trainer_files = read_files(json.at("trainer_files"), names.trainer);
  check_fingerprints(json, manifest);
  expect_figure(json.at("efficiency"), manifest.efficiency(), kEfficiencyDecimals);
  expect_figure(json.at("packing_factor"), manifest.packing_factor(), kPackingFactorDecimals);
  check_sums_fit(manifest, path);
  return manifest;
}

}  // namespace shardpack
