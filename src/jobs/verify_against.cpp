#include "jobs/verify_against.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "io/column_choice.h"
#include "io/json.h"
#include "io/packed_dataset.h"

namespace shardpack {

namespace {

/// The value of a recorded option; null when the manifest does not have it.
Json option(const RecordedOptions& options, std::string_view name) {
  const auto found = std::find_if(options.begin(), options.end(), [&](const auto& entry) { return entry.first == name; });
  return Json::parse(found == options.end() ? "null" : found->second, fmt::format("{}: options.{}", kManifestName, name));
}

[[noreturn]] void unknown_value(std::string_view name, const std::string& value) {
  throw Error(ErrorCode::bad_data, fmt::format("options.{} is '{}', which this version does not know", name, value),
              std::string(kManifestName));
}

std::optional<std::int64_t> optional_number(const Json& value) {
  if (value.is_null()) return std::nullopt;
  return value.as_int();
}

/// The first place where files differ that are the same ones in another order; nothing when they are not.
std::optional<std::size_t> first_out_of_order(const std::vector<SourceFile>& files, const std::vector<ManifestSource>& sources) {
  if (files.size() != sources.size()) return std::nullopt;
  std::vector<std::string> found, expected;
  for (const SourceFile& file : files) found.push_back(file.hash);
  for (const ManifestSource& source : sources) expected.push_back(source.hash);
  const auto at = static_cast<std::size_t>(std::ranges::mismatch(found, expected).in1 - found.begin());
  std::ranges::sort(found);
  std::ranges::sort(expected);
  return at < files.size() && found == expected ? std::optional(at) : std::nullopt;
}

/// "labels (i32), score (f32)", or "none".
std::string names_of(std::span<const Column> columns) {
  std::string names;
  for (const Column& column : columns)
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", column.name, info(column.type).name);
  return names.empty() ? "none" : names;
}

}  // namespace

ReadOptions recorded_read_options(const RecordedOptions& options) {
  ReadOptions read;
  const Json format = option(options, "format"), ids_column = option(options, "ids_column"), unit = option(options, "unit"),
             null_row = option(options, "null_row"), dtype = option(options, "dtype");
  if (!format.is_null()) read.format = format.as_string();
  if (const Json split = option(options, "split"); !split.is_null()) read.split = split.as_string();
  if (!ids_column.is_null()) read.ids_column = ids_column.as_string();
  if (!unit.is_null()) {
    if (unit.as_string() != "document" && unit.as_string() != "sequence") unknown_value("unit", unit.as_string());
    read.unit = unit.as_string() == "document" ? Unit::document : Unit::sequence;
  }
  if (!null_row.is_null()) {
    if (null_row.as_string() != "error" && null_row.as_string() != "drop") unknown_value("null_row", null_row.as_string());
    read.null_row = null_row.as_string() == "error" ? NullRow::error : NullRow::drop;
  }
  if (!dtype.is_null()) {
    const auto type =
        std::find_if(kIdTypes.begin(), kIdTypes.end(), [&](const IdTypeInfo& t) { return t.name == dtype.as_string(); });
    if (type == kIdTypes.end()) unknown_value("dtype", dtype.as_string());
    read.dtype = type->type;
  }
  if (const Json group_column = option(options, "group_column"); !group_column.is_null())
    read.group_column = group_column.as_string();
  if (const Json columns = option(options, "columns"); !columns.is_null()) {
    try {
      read.columns = parse_column_choice(columns.as_string());
    } catch (const Error&) {
      unknown_value("columns", columns.as_string());
    }
  }
  if (const Json positions = option(options, "positions_columns"); !positions.is_null())
    read.positions_columns = parse_positions_columns(positions.as_string());
  read.eos_id = optional_number(option(options, "eos_id"));
  read.bos_id = optional_number(option(options, "bos_id"));
  read.limit = optional_number(option(options, "limit")).value_or(0);
  read.allow_repeats = true;  // what was read twice then is read twice now; the files are compared one by one
  return read;
}

bool truncates_at_start(const Manifest& manifest) {
  const auto is = [&](std::string_view name, std::string_view json) {
    return std::any_of(manifest.options.begin(), manifest.options.end(),
                       [&](const auto& option) { return option.first == name && option.second == json; });
  };
  const bool cut_at_row_ends = is("packer", "\"concat\"");  // whatever the policy for over-long sequences
  return is("overlong", "\"truncate\"") && is("truncate_side", "\"start\"") && !cut_at_row_ends;
}

LossSide recorded_loss_side(const Manifest& manifest) {
  const Json together = option(manifest.options, "keep_together");
  if (!together.is_null() && together.as_int() > 1) return LossSide::none;  // a unit stays for the sake of one of its sequences
  const Json dropped = option(manifest.options, "drop_unlabeled"), overlong = option(manifest.options, "overlong"),
             side = option(manifest.options, "truncate_side");
  LengthPolicy policy;
  policy.drop_unlabeled = !dropped.is_null() && dropped.as_bool();
  if (!overlong.is_null() && overlong.as_string() == "truncate") policy.overlong = Overlong::truncate;
  if (!side.is_null() && side.as_string() == "start") policy.truncate_side = TruncateSide::start;
  return loss_side(policy);
}

std::optional<ScannedSource> check_against(const Manifest& manifest, const std::vector<std::string>& inputs,
                                           const RunContext& context, IssueList& issues) {
  ScannedSource scanned;
  try {
    scanned = open_source(inputs, recorded_read_options(manifest.options),
                          {.random_access = !manifest.holds_tokens(), .loss_places = recorded_loss_side(manifest)}, context);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
    issues.add("against", error.path(), without_path(error));
    return std::nullopt;
  }
  const SequenceIndex& index = scanned.source->index();
  const auto differ = [&](const std::string& file, std::string_view what, const auto& found, const auto& expected) {
    if (found == expected) return false;
    issues.add("against", file, fmt::format("{} {}, packed from {}", what, found, expected));
    return true;
  };

  if (const std::optional<std::size_t> f = first_out_of_order(index.files(), manifest.sources)) {
    issues.add("against", index.files()[*f].name,
               fmt::format("the sources are those that were packed, in another order: here the first file that differs was {}; "
                           "give them in the order of "
                           "the manifest's sources (shardpack inspect lists them)",
                           manifest.sources[*f].name));
    return std::nullopt;
  }
  bool same_records = !differ("", "number of source files:", index.files().size(), manifest.sources.size());
  for (std::size_t f = 0; f < std::min(index.files().size(), manifest.sources.size()); ++f) {
    const SourceFile& found = index.files()[f];
    const ManifestSource& expected = manifest.sources[f];
    differ(found.name, "name", as_utf8(found.name), expected.name);
    differ(found.name, "format", found.format, expected.format);
    differ(found.name, "bytes", with_commas(found.bytes), with_commas(expected.bytes));
    differ(found.name, "XXH3-128", found.hash, expected.hash);
    differ(found.name, "tokens", with_commas(found.tokens()), with_commas(expected.tokens));
    if (expected.ids_dtype) differ(found.name, "dtype of ids", found.ids_dtype, *expected.ids_dtype);
    same_records &= !differ(found.name, "records", with_commas(found.records()), with_commas(expected.sequences));
  }
  differ("", "fingerprint of all sources", scanned.totals.fingerprint.hex(), manifest.source_fingerprint.hex());
  if (index.tokens() > 0) {
    differ("", "smallest token id", scanned.totals.id_min, manifest.id_min);
    differ("", "largest token id", scanned.totals.id_max, manifest.id_max);
  }
  const std::span<const Column> columns = scanned.source->columns();
  if (!std::equal(columns.begin(), columns.end(), manifest.columns.begin(), manifest.columns.end())) {
    issues.add("against", "", fmt::format("columns {}, packed were {}", names_of(columns), names_of(manifest.columns)));
  }
  differ("", "tokens that take part in the loss:", with_commas(scanned.loss_tokens), with_commas(manifest.source_loss_tokens));
  differ("", "null records:", with_commas(scanned.null_records),
         with_commas(manifest.removed[static_cast<std::size_t>(RemovalCause::null)].sequences));
  differ("", "padding tokens left out:", with_commas(scanned.padding.tokens),
         with_commas(manifest.removed[static_cast<std::size_t>(RemovalCause::padding)].tokens));
  if (!same_records) return std::nullopt;
  return scanned;
}

}  // namespace shardpack
