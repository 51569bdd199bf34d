#include "jobs/batch_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/checked.h"
#include "base/hash.h"
#include "base/units.h"
#include "core/column_values.h"
#include "exec/ordered_map.h"
#include "io/batch_folder.h"
#include "io/file.h"
#include "io/histogram_file.h"
#include "io/packed_dataset.h"
#include "io/row_reader.h"
#include "jobs/index_views.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

namespace fs = std::filesystem;

bool is_packed_dataset(const std::string& path) {
  std::error_code ignored;
  return find_manifest(path) || fs::path(path).filename() == kManifestName ||
         fs::is_regular_file(fs::path(path) / kManifestName, ignored);
}

constexpr std::int64_t kBlockValues = std::int64_t{1} << 20;  // read at once

/// Where a list says which tokens take part: how many each row has.
void add_listed_losses(const PackedDataset& dataset, const ManifestShard& shard, const Column& column,
                       std::vector<std::int64_t>& losses) {
  const PackedArray array = dataset.open_array(shard, column.name);
  if (array.row_elements() != 1 || array.type() != column.type)
    throw Error(ErrorCode::bad_data, "not a list of the column's values; shardpack verify tells more", array.path());
  const std::vector<std::int64_t> offsets =
      read_offsets(dataset.open_array(shard, column.name + std::string(kOffsetsSuffix)), shard.segments, array.rows());
  const std::vector<std::int64_t> rows = read_offsets(dataset.open_array(shard, "row_offsets"), shard.rows, shard.segments);
  const auto begin_of = [&](std::size_t row) { return offsets[static_cast<std::size_t>(rows[row])]; };
  ByteBuffer values;  // of some rows
  for (std::size_t row = 0; row + 1 < rows.size();) {
    const std::int64_t first = begin_of(row);
    std::size_t end = row + 1;
    while (end + 1 < rows.size() && begin_of(end + 1) - first <= kBlockValues) ++end;
    const int bytes = info(column.type).bytes;
    values.resize(static_cast<std::size_t>((begin_of(end) - first) * bytes));
    if (!values.empty()) array.read_bytes(first, values);
    for (; row < end; ++row) {
      losses.push_back(count_loss_tokens(column, column.type, values.data() + (begin_of(row) - first) * bytes,
                                         begin_of(row + 1) - begin_of(row)));
    }
  }
}

/// Appends the tokens of each row of a shard that take part in the loss: those that the trainer learns, where a preset hides
/// some.
void add_row_losses(const PackedDataset& dataset, const ManifestShard& shard, const RunContext& context,
                    std::vector<std::int64_t>& losses) {
  const Manifest& manifest = dataset.manifest();
  const std::int64_t row_tokens = manifest.row_tokens, step = std::max<std::int64_t>(1, kBlockValues / row_tokens);
  if (const auto found = std::ranges::find(manifest.columns, manifest.loss_column, &Column::name);
      found != manifest.columns.end() && dataset.has_array(shard, manifest.loss_column)) {
    const Column& column = *found;
    if (is_placed(column)) return add_listed_losses(dataset, shard, column, losses);
    const PackedArray array = dataset.open_array(shard, column.name);
    if (array.rows() != shard.rows || array.row_elements() != row_tokens || array.type() != column.type) {
      throw Error(ErrorCode::bad_data, "not a value for each slot; shardpack verify tells more", array.path());
    }
    for (std::int64_t first = 0; first < shard.rows; first += step) {
      throw_if_stopped(context.stop);
      const std::int64_t rows = std::min(step, shard.rows - first), row_bytes = row_tokens * info(column.type).bytes;
      ByteBuffer values(static_cast<std::size_t>(rows * row_bytes));
      array.read_bytes(first, values);
      for (std::int64_t row = 0; row < rows; ++row)
        losses.push_back(count_loss_tokens(column, column.type, values.data() + row * row_bytes, row_tokens));
    }
    return;
  }
  const OutputRules rules = rules_of(manifest, dataset.folder());
  const auto tells = std::ranges::find_if(rules.columns, [](const OutputColumn& column) {
    return column.source == OutputSource::labels || column.source == OutputSource::loss_mask ||
           column.source == OutputSource::target_ids;
  });
  if (tells == rules.columns.end()) return;
  const Column as{.name = std::string(tells->name),
                  .kind = ColumnKind::token,
                  .type = tells->type,
                  .alignment = tells->source == OutputSource::labels ? Alignment::minus100 : Alignment::plain};
  const std::unique_ptr<RowReader> reader = open_rows(dataset, shard, rules);
  for (std::int64_t first = 0; first < shard.rows; first += step) {
    throw_if_stopped(context.stop);
    const std::int64_t rows = std::min(step, shard.rows - first);
    const ListValues list = std::move(reader->read(first, rows)[static_cast<std::size_t>(tells - rules.columns.begin())]);
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
      losses.push_back(count_loss_tokens(as, as.type, list.values.data() + list.begin[row] * info(as.type).bytes,
                                         list.begin[row + 1] - list.begin[row]));
    }
  }
}

/// The planned rows, shard by shard; rows that only repeat others or hold padding alone are left out.
BatchSource read_rows(const std::string& path, const RunContext& context) {
  const PackedDataset dataset(path);
  const Manifest& manifest = dataset.manifest();
  BatchSource source;
  source.row_tokens = manifest.row_tokens;
  source.sources = manifest.sources;
  source.manifest_hash = hash_hex(read_small_file(dataset.file_path("", kManifestName)));
  source.loss_column = manifest.loss_column;
  std::int64_t left = manifest.planned_rows();
  const Preset* const preset = try_preset(manifest.preset);
  const std::int64_t unslotted = preset == nullptr ? 0 : unslotted_tokens(preset->slot_rule);
  for (const ManifestShard& shard : dataset.shards()) {
    throw_if_stopped(context.stop);
    const RowLengths rows = read_row_lengths(dataset, shard);
    for (std::size_t r = 0; r + 1 < rows.begin.size() && left > 0; ++r, --left) {
      std::int64_t tokens = 0, cost = 0;
      for (std::int64_t s = rows.begin[r]; s < rows.begin[r + 1]; ++s) {
        const std::int64_t length = rows.tokens[static_cast<std::size_t>(s)] - unslotted;  // of which the trainer takes part
        tokens += length;
        cost += length * length;
      }
      if (tokens < 1 || tokens > manifest.row_tokens) {
        throw Error(ErrorCode::bad_data, fmt::format("a row of {} tokens; shardpack verify tells more", with_commas(tokens)),
                    shard.folder, fmt::format("row {}", with_commas(static_cast<std::int64_t>(r))));
      }
      source.lengths.push_back(tokens);
      source.costs.push_back(cost);
    }
    if (!source.loss_column.empty()) add_row_losses(dataset, shard, context, source.loss_tokens);
  }
  if (!source.loss_column.empty()) {
    if (source.loss_tokens.size() < source.lengths.size()) {
      throw Error(ErrorCode::bad_data, "the rows hold no labels, and the manifest says that there are some", dataset.folder());
    }
    source.loss_tokens.resize(source.lengths.size());  // less the repeated rows
  }
  return source;
}

BatchSource read_list(const std::string& path, std::vector<std::int64_t> lengths) {
  BatchSource source;
  std::int64_t tokens = 0;
  for (const std::int64_t length : lengths) tokens = checked_add(tokens, length, "tokens");
  const bool piped = path == "-";
  source.sources.push_back({.name = piped ? "standard input" : fs::path(path).filename().string(),
                            .format = "lengths",
                            .bytes = piped ? 0 : File(path, File::Mode::read).size(),
                            .sequences = static_cast<std::int64_t>(lengths.size()),
                            .tokens = tokens,
                            .hash = piped ? lengths_hash(lengths) : hash_file(File(path, File::Mode::read))});
  source.lengths = std::move(lengths);
  return source;
}

}  // namespace

namespace {

[[noreturn]] void refuse_rows(const std::string& path) {
  throw Error(
      ErrorCode::usage,
      "--write-shards: the rows of a packed dataset have one width, and pack writes them in the order of batches: pack --order "
      "balanced with --world, --accumulation and --micro-batch; the plan alone (without --write-shards) says which rows "
      "share a batch",
      path);
}

}  // namespace

LossPart batched_part(const LengthPolicy& policy) {
  if (policy.row_tokens == 0 || policy.overlong != Overlong::truncate) return {};
  return {policy.row_tokens, policy.truncate_side == TruncateSide::start ? LossSide::end : LossSide::start};
}

BatchSource read_batch_source(const std::vector<std::string>& inputs, const ReadOptions& read, const BatchNeeds& needs,
                              const RunContext& context) {
  if (inputs.size() == 1 && read.format.empty() && !read.eos_id) {
    if (is_packed_dataset(inputs[0])) {
      if (needs.tokens) refuse_rows(inputs[0]);
      return read_rows(inputs[0], context);
    }
    if (std::optional<std::vector<std::int64_t>> lengths = read_lengths(inputs[0])) {
      if (needs.tokens)
        throw Error(ErrorCode::usage, "--write-shards: a list of lengths holds no token; give the shards", inputs[0]);
      if (read.limit > 0 && static_cast<std::int64_t>(lengths->size()) > read.limit) {
        lengths->resize(static_cast<std::size_t>(read.limit));
      }
      return read_list(inputs[0], *std::move(lengths));
    }
  }
  BatchSource source;
  ScannedSource& shards = source.shards;
  const bool once = std::ranges::find(inputs, "-") != inputs.end();  // standard input cannot be read twice
  shards = open_source(inputs, read, {.random_access = needs.random_access || once, .loss_counts = needs.loss_part}, context);
  const auto loss = [&] { return loss_column(shards.source->columns()); };
  if (loss() >= 0 && shards.loss_counts.empty() && shards.source->index().tokens() > 0) {
    // Values that had to be decoded were not kept, for there might have been none that matter.
    shards = open_source(inputs, read, {.random_access = true, .loss_counts = needs.loss_part}, context);
  }
  source.lengths = record_lengths_of(shards.source->index());
  source.null_records = shards.null_records;
  source.sources = sources_of(shards.source->index());
  if (loss() >= 0) {
    source.loss_column = shards.source->columns()[static_cast<std::size_t>(loss())].name;
    source.loss_tokens = std::move(shards.loss_counts);
    source.loss_tokens.resize(source.lengths.size());  // none was counted where there is no token
  }
  return source;
}

}  // namespace shardpack
