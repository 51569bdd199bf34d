// inspect: look at what is there, without judging it. What a picture needs is read, and no more.
#include "shardpack/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "base/units.h"
#include "core/column_values.h"
#include "exec/ordered_map.h"
#include "io/batch_folder.h"
#include "io/file.h"
#include "io/histogram_file.h"
#include "io/json.h"
#include "io/ltd_files.h"
#include "io/manifest_parts.h"
#include "io/packed_dataset.h"
#include "io/plan_file.h"
#include "io/row_reader.h"
#include "jobs/index_views.h"
#include "jobs/pack_options.h"
#include "jobs/step_meter.h"

namespace shardpack {

namespace {

constexpr std::int64_t kShownIds = 3;                           // at each end of a segment
constexpr std::int64_t kChunkSegments = std::int64_t{1} << 16;  // of the source map, read at a time

/// The arrays that say where segments lie and what they are.
struct SegmentArrays {
  SegmentArrays(const PackedDataset& dataset, const ManifestShard& shard)
      : offsets(dataset.open_array(shard, "row_offsets")),
        lengths(dataset.open_array(shard, "seq_lengths")),
        source(dataset.open_array(shard, "seq_source")) {
    if (dataset.has_array(shard, "seq_slots")) slots.emplace(dataset.open_array(shard, "seq_slots"));
    if (dataset.has_array(shard, "seq_added")) added.emplace(dataset.open_array(shard, "seq_added"));
  }

  PackedArray offsets, lengths, source;
  std::optional<PackedArray> slots, added;
};

/// Some consecutive segments of a shard.
struct Segments {
  Segments(const SegmentArrays& arrays, std::int64_t first, std::int64_t count)
      : lengths(arrays.lengths.read<std::int32_t>(first, count)), source(arrays.source.read<std::int64_t>(first, count)) {
    slots = arrays.slots ? arrays.slots->read<std::int32_t>(first, count) : lengths;
    if (arrays.added) {
      added = arrays.added->read<std::uint8_t>(first, count);
    } else {
      added.resize(static_cast<std::size_t>(count));
    }
  }

  std::int64_t tokens(std::size_t s) const { return std::int64_t{lengths[s]} - (added[s] & 1) - (added[s] >> 1); }

  std::vector<std::int32_t> lengths, slots;
  std::vector<std::int64_t> source;
  std::vector<std::uint8_t> added;
};

/// Which shard, and which row of it.
struct RowPlace {
  const ManifestShard* shard = nullptr;
  std::int64_t row = 0;
};

RowPlace place_of(const Manifest& manifest, std::int64_t row, const std::string& path) {
  if (row < 0 || row >= manifest.rows) {
    throw Error(ErrorCode::usage,
                manifest.rows == 0
                    ? "--row: the dataset has no rows"
                    : fmt::format("--row {}: there are rows 0 to {}", with_commas(row), with_commas(manifest.rows - 1)),
                path);
  }
  std::int64_t in_shard = row;
  for (const ManifestShard& shard : manifest.shards) {
    if (in_shard < shard.rows) return {&shard, in_shard};
    in_shard -= shard.rows;
  }
  throw Error(ErrorCode::bad_data, "the shards have fewer rows than the manifest says; shardpack verify tells more", path);
}

/// \throws Error{bad_data} for offsets of something that is not there
void check_run(std::int64_t first, std::int64_t last, const PackedArray& offsets) {
  if (first < 0 || last < first)
    throw Error(ErrorCode::bad_data, "the offsets run backwards; shardpack verify tells more", offsets.path());
}

const ManifestSource& source_at(const Manifest& manifest, std::int64_t file, const std::string& shard) {
  if (file < 0 || file >= static_cast<std::int64_t>(manifest.sources.size())) {
    throw Error(ErrorCode::bad_data,
                fmt::format("seq_source names the file {}, the manifest has {}", file, manifest.sources.size()), shard);
  }
  return manifest.sources[static_cast<std::size_t>(file)];
}

std::int64_t first_sequence_of(const Manifest& manifest, std::int64_t file) {
  std::int64_t first = 0;
  for (std::int64_t f = 0; f < file; ++f) first += manifest.sources[static_cast<std::size_t>(f)].sequences;
  return first;
}

/// Options with a value of their own; the row length is shown anyway.
std::vector<std::pair<std::string, std::string>> chosen_options(const Manifest& manifest) {
  const std::vector<std::pair<std::string, std::string>> defaults = recorded_options(with_preset({}));
  std::vector<std::pair<std::string, std::string>> chosen;
  for (const auto& option : manifest.options) {
    if (std::find(defaults.begin(), defaults.end(), option) == defaults.end()) chosen.push_back(option);
  }
  return chosen;
}

DatasetView view_dataset(const PackedDataset& dataset, const RunContext& context) {
  DatasetView view;
  view.manifest = dataset.manifest();
  view.chosen_options = chosen_options(view.manifest);
  const TrainingShape shape = training_shape_of(view.manifest);
  const bool many_ranks = shape.world > 1;
  RankWaits waits(shape);
  LengthHistogram segments;
  std::int64_t row = 0;
  for (const ManifestShard& shard : dataset.shards()) {
    throw_if_stopped(context.stop);
    const RowLengths rows =
        many_ranks ? read_row_lengths(dataset, shard)
                   : RowLengths{read_offsets(dataset.open_array(shard, "row_offsets"), shard.rows, shard.segments), {}};
    for (std::size_t r = 0; r + 1 < rows.begin.size() && row < view.manifest.planned_rows(); ++r, ++row) {
      view.segments_in_rows.add(rows.begin[r + 1] - rows.begin[r]);
      if (!many_ranks) continue;
      std::int64_t cost = 0;
      for (std::int64_t s = rows.begin[r]; s < rows.begin[r + 1]; ++s) {
        const std::int64_t length = rows.tokens[static_cast<std::size_t>(s)];
        segments.add(length);
        cost += length * length;
      }
      waits.add(cost);
    }
  }
  if (waits.micro_steps() > 0 && many_ranks) {
    view.waits = RowWaits{shape, waits.imbalance(), imbalance_bound(waits, shape, segments, view.manifest.row_tokens, row)};
  }
  view.bytes = listed_bytes(view.manifest);
  return view;
}

/// The first and the last few of a segment's ids.
void show_ids(const std::vector<std::uint32_t>& ids, SegmentView& segment) {
  const auto begin = ids.begin() + segment.begin;
  const std::int64_t first = std::min<std::int64_t>(segment.length, kShownIds);
  const std::int64_t last = std::min<std::int64_t>(segment.length - first, kShownIds);
  segment.first_ids.assign(begin, begin + first);
  segment.last_ids.assign(begin + segment.length - last, begin + segment.length);
}

/// As many as are stored: rows may end with their last token. None where the rows hold no tokens.
std::vector<std::uint32_t> ids_of_row(const PackedDataset& dataset, const ManifestShard& shard, std::int64_t row) {
  const OutputRules rules = rules_of(dataset.manifest(), dataset.folder());
  if (!rules.holds_tokens()) return {};
  const std::vector<ListValues> columns = open_rows(dataset, shard, rules)->read(row, 1);
  const auto ids = std::ranges::find(rules.columns, OutputSource::ids, &OutputColumn::source);
  const ListValues& list = columns[static_cast<std::size_t>(ids - rules.columns.begin())];
  std::vector<std::uint32_t> result;
  const auto copy = [&](auto values) {
    for (const auto value : values) result.push_back(static_cast<std::uint32_t>(value));
  };
  visit_values(rules.native() && dataset.manifest().id_type == IdType::u16 ? ValueType::u16 : ids->type, list.values.data(),
               list.begin.back(), copy);
  return result;
}

RowView view_row(const PackedDataset& dataset, std::int64_t row) {
  const Manifest& manifest = dataset.manifest();
  const RowPlace place = place_of(manifest, row, dataset.folder());
  const ManifestShard& shard = *place.shard;
  RowView view{.row = row,
               .shard = shard.folder,
               .row_in_shard = place.row,
               .row_tokens = manifest.row_tokens,
               .tail = row >= manifest.planned_rows(),
               .segments = {}};

  const SegmentArrays arrays(dataset, shard);
  const std::vector<std::int64_t> offsets = arrays.offsets.read<std::int64_t>(place.row, 2);
  check_run(offsets[0], offsets[1], arrays.offsets);
  const Segments segments(arrays, offsets[0], offsets[1] - offsets[0]);
  const std::vector<std::uint32_t> ids = ids_of_row(dataset, shard, place.row);
  const std::int64_t places = manifest.holds_tokens() ? std::ssize(ids) : manifest.row_tokens;
  std::int64_t begin = 0;
  for (std::size_t s = 0; s < segments.lengths.size(); ++s) {
    const std::int64_t file = segments.source[3 * s], record = segments.source[3 * s + 1];
    if (record < 0 || record >= source_at(manifest, file, shard.folder).sequences) {
      throw Error(ErrorCode::bad_data, "its segments are of no record of the sources; shardpack verify tells more", shard.folder,
                  fmt::format("row {}", with_commas(place.row)));
    }
    SegmentView segment{.begin = begin,
                        .length = segments.lengths[s],
                        .slots = segments.slots[s],
                        .first_position = manifest.position_start,
                        .source = source_at(manifest, file, shard.folder).name,
                        .record = record,
                        .sequence = first_sequence_of(manifest, file) + record,
                        .first_token = segments.source[3 * s + 2],
                        .tokens = segments.tokens(s),
                        .added = segments.added[s],
                        .first_ids = {},
                        .last_ids = {}};
    if (segment.length < 0 || segment.slots < segment.length || segment.slots > places - begin) {
      throw Error(ErrorCode::bad_data, "its segments do not fit the row; shardpack verify tells more", shard.folder,
                  fmt::format("row {}", with_commas(place.row)));
    }
    if (manifest.holds_tokens()) show_ids(ids, segment);
    begin += segment.slots;
    view.segments.push_back(std::move(segment));
  }
  return view;
}

/// The pieces of one record in one shard.
class PieceSearch {
 public:
  PieceSearch(const PackedDataset& dataset, const ManifestShard& shard, std::int64_t first_row, bool tail)
      : arrays_(dataset, shard), shard_(shard), first_row_(first_row), tail_(tail) {}

  void find(std::int64_t file, std::int64_t record, std::vector<PieceView>& pieces) {
    const std::int64_t segments = arrays_.lengths.rows();
    for (std::int64_t first = 0; first < segments; first += kChunkSegments) {
      const std::int64_t count = std::min(kChunkSegments, segments - first);
      const std::vector<std::int64_t> source = arrays_.source.read<std::int64_t>(first, count);
      for (std::int64_t s = 0; s < count; ++s) {
        const auto at = static_cast<std::size_t>(3 * s);
        if (source[at] == file && source[at + 1] == record) pieces.push_back(piece(first + s));
      }
    }
  }

 private:
  PieceView piece(std::int64_t segment) {
    if (offsets_.empty()) offsets_ = read_offsets(arrays_.offsets, shard_.rows, shard_.segments);
    const auto after = std::upper_bound(offsets_.begin(), offsets_.end(), segment);
    const std::int64_t row = after - offsets_.begin() - 1;
    if (after == offsets_.begin() || after == offsets_.end()) {
      throw Error(ErrorCode::bad_data, "row_offsets do not cover its segments; shardpack verify tells more", shard_.folder);
    }
    const std::int64_t first = *(after - 1);
    const Segments segments(arrays_, first, segment - first + 1);
    const std::size_t last = segments.lengths.size() - 1;
    std::int64_t begin = 0;
    for (std::size_t s = 0; s < last; ++s) begin += segments.slots[s];
    return {.row = first_row_ + row,
            .shard = shard_.folder,
            .row_in_shard = row,
            .segment = static_cast<std::int64_t>(last) + 1,
            .begin = begin,
            .first_token = segments.source[3 * last + 2],
            .tokens = segments.tokens(last),
            .added = segments.added[last],
            .tail = tail_};
  }

  SegmentArrays arrays_;
  const ManifestShard& shard_;
  std::int64_t first_row_;
  bool tail_;
  std::vector<std::int64_t> offsets_;  // read when a piece was found
};

SequenceView view_sequence(const PackedDataset& dataset, std::int64_t sequence, const RunContext& context) {
  const Manifest& manifest = dataset.manifest();
  if (sequence < 0 || sequence >= manifest.source_sequences) {
    throw Error(ErrorCode::usage,
                fmt::format("--sequence {}: the sources have {} records, numbered from 0", with_commas(sequence),
                            with_commas(manifest.source_sequences)),
                dataset.folder());
  }
  SequenceView view;
  view.sequence = sequence;
  view.record = sequence;
  std::int64_t file = 0;
  while (view.record >= source_at(manifest, file, dataset.folder()).sequences) {
    view.record -= manifest.sources[static_cast<std::size_t>(file++)].sequences;
  }
  view.source = manifest.sources[static_cast<std::size_t>(file)].name;

  std::int64_t row = 0;
  for (const ManifestShard& shard : manifest.shards) {
    throw_if_stopped(context.stop);
    PieceSearch(dataset, shard, row, row >= manifest.planned_rows()).find(file, view.record, view.pieces);
    row += shard.rows;
  }
  std::sort(view.pieces.begin(), view.pieces.end(), [](const PieceView& a, const PieceView& b) {
    return std::tie(a.tail, a.first_token, a.row) < std::tie(b.tail, b.first_token, b.row);
  });
  return view;
}

LtdView view_ltd(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(path).filename() == kManifestName ? fs::path(path).parent_path() : fs::path(path);
  const auto read = [&](std::string_view name) { return read_small_file((folder / name).string()); };
  LtdView view;
  view.manifest = ltd_manifest_from_json(read(kManifestName), (folder / kManifestName).string());
  view.plateaus = plateaus_from_json(read(kPlateausFile), (folder / kPlateausFile).string());
  const std::string steps_path = (folder / kStepsFile).string();
  const std::vector<LtdStep> steps = steps_from_npy(read(kStepsFile), steps_path);
  for (const LtdPlateau& plateau : view.plateaus) {
    if (plateau.first_step >= static_cast<std::int64_t>(steps.size())) {
      throw Error(ErrorCode::bad_data, "fewer steps than plateaus.json speaks of; shardpack verify tells more", steps_path);
    }
    view.rates.push_back(steps[static_cast<std::size_t>(plateau.first_step)].learning_rate);
  }
  if (!steps.empty()) view.last_rate = steps.back().learning_rate;
  return view;
}

BatchPlanView view_batch_plan(const BatchFolder& folder) {
  BatchPlanView view;
  view.manifest = folder.manifest();
  const PackedArray pads = folder.open_array("pad_length");
  for (const std::int32_t pad : pads.read<std::int32_t>(0, std::min(pads.rows(), view.manifest.batches_per_epoch))) {
    view.pad_lengths.add(pad);
  }
  view.bytes = listed_bytes(view.manifest);
  return view;
}

BatchView view_batch(const BatchFolder& folder, std::int64_t batch) {
  const BatchManifest& manifest = folder.manifest();
  const std::int64_t batches = manifest.batches_per_epoch * manifest.epochs, world = manifest.plan.world;
  if (batch < 0 || batch >= batches) {
    throw Error(ErrorCode::usage,
                fmt::format("--row {}: the plan has {} batches, numbered from 0", with_commas(batch), with_commas(batches)),
                folder.folder());
  }
  const std::int64_t in_epoch = batch % manifest.batches_per_epoch, in_step = in_epoch % manifest.plan.group_size();
  BatchView view{.batch = batch,
                 .epoch = batch / manifest.batches_per_epoch,
                 .step = in_epoch / manifest.plan.group_size(),
                 .micro = in_step / world,
                 .rank = in_step % world,
                 .pad_length = folder.open_array("pad_length").read<std::int32_t>(batch, 1)[0],
                 .real_tokens = folder.open_array("real_tokens").read<std::int64_t>(batch, 1)[0],
                 .rows = manifest.rows,
                 .members = {}};
  const PackedArray batch_offsets = folder.open_array("batch_offsets");
  const std::vector<std::int64_t> offsets = batch_offsets.read<std::int64_t>(batch, 2);
  check_run(offsets[0], offsets[1], batch_offsets);
  const std::int64_t first = offsets[0], count = offsets[1] - offsets[0];
  for (const std::int64_t member : folder.open_array("members").read<std::int64_t>(first, count)) {
    view.members.push_back({.member = member});
  }
  if (folder.lists("kept_tokens.npy")) {
    const auto kept = folder.open_array("kept_tokens").read<std::int32_t>(first, count);
    for (std::size_t i = 0; i < kept.size(); ++i) view.members[i].kept = kept[i];
  }
  const std::vector<float> weights = folder.read_weights(first, count);
  for (std::size_t i = 0; i < weights.size(); ++i) view.members[i].weight = weights[i];
  return view;
}

/// The plan in a file, nothing when it is something else.
std::optional<PlanFile> read_plan(const std::string& path) {
  std::string head(256, '\0');  // "format" is the first key
  head.resize(File(path, File::Mode::read).read_some_at(0, std::as_writable_bytes(std::span(head))));
  if (!head.starts_with('{') || head.find("\"shardpack-plan\"") == std::string::npos) return std::nullopt;
  return plan_from_json(read_small_file(path), path);
}

}  // namespace

InspectResult inspect(const std::string& path, const InspectOptions& options, const RunContext& context) {
  namespace fs = std::filesystem;
  InspectResult result;
  result.path = path;
  if (has_manifest_of(path, kBatchesFormat)) {
    if (options.sequence) throw Error(ErrorCode::usage, "--sequence looks into a packed dataset; --row N shows batch N", path);
    const BatchFolder folder(path);
    if (options.row) {
      result.batch = view_batch(folder, *options.row);
    } else {
      result.batch_plan = view_batch_plan(folder);
    }
    return result;
  }
  std::error_code ignored;
  const bool is_manifest = fs::path(path).filename() == kManifestName;
  if (is_ltd_folder(path)) {
    if (options.row || options.sequence) {
      throw Error(ErrorCode::usage, "--row and --sequence look into a packed dataset; kept tokens are shown by ltd --kept-at",
                  path);
    }
    result.ltd = view_ltd(path);
    return result;
  }
  if (is_manifest || find_manifest(path) || fs::exists(fs::path(path) / kManifestName, ignored)) {
    const PackedDataset dataset(path);
    if (options.row) {
      result.row = view_row(dataset, *options.row);
    } else if (options.sequence) {
      result.sequence = view_sequence(dataset, *options.sequence, context);
    } else {
      result.dataset = view_dataset(dataset, context);
    }
    return result;
  }
  if (options.row || options.sequence) {
    throw Error(ErrorCode::usage, "--row and --sequence look into a packed dataset, which this is not", path);
  }
  if (fs::is_regular_file(path, ignored)) {
    if (std::optional<PlanFile> file = read_plan(path)) {
      result.plan = PlanView{std::move(file->plan), std::move(file->groups), std::move(file->items)};
      return result;
    }
    if (options.read.format.empty() && !options.read.eos_id) result.histogram = read_histogram(path);
    if (result.histogram) return result;
  }
  result.sources = scan({path}, options.read, context);
  return result;
}

}  // namespace shardpack
