// unpack: the sources of a packed dataset in their own order. Partition by partition, since a partition's rows hold the records
// of a run of the sources and no others: where every piece goes is worked out from the small arrays; the rows are read once, in
// their order, and their pieces put into a temporary file at these places; then that is read from its beginning to its end.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/hashed_file.h"
#include "io/json.h"
#include "io/manifest_parts.h"
#include "io/record_sink.h"
#include "io/staged_output.h"
#include "jobs/output_place.h"
#include "jobs/removed_log.h"
#include "jobs/unpack_files.h"
#include "jobs/unpack_layout.h"
#include "jobs/unpack_rows.h"
#include "jobs/verify_against.h"
#include "jobs/verify_placement.h"
#include "jobs/verify_removed.h"
#include "shardpack/jobs.h"
#include "shardpack/version.h"

namespace shardpack {

namespace {

RecordSpool make_spool(const Manifest& manifest, const std::string& temp_dir) {
  RecordSpool spool{manifest.id_type, File::temporary(temp_dir), {0}, {}};
  for (const Column& column : manifest.columns) {
    spool.columns.push_back({column, File::temporary(temp_dir), {}});
    if (is_listed(column)) spool.columns.back().begin = {0};
  }
  return spool;
}

const ManifestFile* removed_file(const Manifest& manifest) {
  const auto found =
      std::ranges::find_if(manifest.files, [](const ManifestFile& file) { return file.name == RemovedReader::kFileName; });
  return found == manifest.files.end() ? nullptr : &*found;
}

ManifestFile copy_file(const File& from, const std::string& folder, const std::string& name) {
  HashedFile to(folder + "/" + name);
  std::vector<std::byte> block(std::size_t{1} << 20);
  while (true) {
    const std::size_t bytes = from.read_some_at(to.bytes(), block);
    if (bytes == 0) return to.finish(name);
    to.append(std::span<const std::byte>(block).first(bytes));
  }
}

/// Which records of a part have a line in removed.csv, which is in the order of the partitions; `ranges`, where it is given,
/// receives the lines.
std::vector<bool> removed_records(RemovedReader& reader, const ManifestPartition& part, const Manifest& manifest,
                                  std::vector<RemovedRange>* ranges, IssueList& issues) {
  std::vector<bool> removed(static_cast<std::size_t>(part.sequences.count()));
  for (const ManifestPartition& partition : manifest.partitions) {
    if (!part.sequences.contains(partition.sequences.first())) continue;
    reader.read_until(partition.sequences, [&](const RemovedRange& range) {
      removed[static_cast<std::size_t>(part.sequences.rank(range.sequence))] = true;
      if (ranges != nullptr) ranges->push_back(range);
    });
  }
  if (!issues.empty()) fail_to_unpack(std::string(RemovedReader::kFileName), issues.take().front().message);
  return removed;
}

RecordSinkSettings sink_settings(const Manifest& manifest, const UnpackOptions& options) {
  return {.format = options.format,
          .zstd_level = options.zstd_level,
          .ids_column = recorded_read_options(manifest.options).ids_column,
          .id_type = manifest.id_type,
          .id_max = manifest.id_max,
          .columns = manifest.columns};
}

std::int64_t longest_source(const Manifest& manifest) {
  std::int64_t longest = 0;
  for (const ManifestSource& source : manifest.sources) longest = std::max(longest, source.tokens);
  return longest;
}

/// Of what the rows of an index leave out, in the sources: together with them it is all that was scanned.
Fingerprint fingerprint_of_removed(const UnpackSetup& setup, const std::vector<RemovedRange>& ranges) {
  const SequenceIndex& index = setup.source->index();
  for (const RemovedRange& range : ranges) {
    if (range.first_token + range.tokens > index.place(range.sequence).tokens)
      fail_to_unpack(std::string(RemovedReader::kFileName), "tokens that their record does not have");
  }
  RemovedLog log(*setup.source, &setup.keys, setup.single_segments, setup.temp_dir, setup.context);
  log.sum(ranges);
  return log.totals().fingerprint;
}

/// What says that the folder is ours, and names its files.
std::string manifest_of(const UnpackResult& result, const UnpackOptions& options) {
  JsonWriter json;
  json.begin_object();
  json.member("format", kUnpackedFormat).member("format_version", 1).member("tool_version", kVersion);
  json.member("as", kUnpackFormats[static_cast<std::size_t>(options.format)]);
  write_fingerprint(json, "packed_fingerprint", result.dataset.packed_fingerprint);
  json.member("sequences", result.sequences).member("empty", result.empty).member("tokens", result.tokens);
  write_files(json, "files", result.files);
  json.end_object();
  return json.take() + "\n";
}

/// The sources of an index, which are still what they were. \throws Error{bad_data} where they are not
ScannedSource open_sources(const Manifest& manifest, const std::vector<std::string>& inputs, const RunContext& context) {
  IssueList issues;
  std::optional<ScannedSource> source = check_against(manifest, inputs, context, issues);
  if (issues.empty()) return *std::move(source);
  const Issue first = issues.take().front();
  throw Error(ErrorCode::bad_data, first.message + "; shardpack verify --against tells more", first.file);
}

/// Does a dataset of this kind take --against? \throws Error{usage}
void check_against_fits(const PackedDataset& dataset, const UnpackOptions& options) {
  const bool holds_tokens = dataset.manifest().holds_tokens();
  if (holds_tokens && !options.against.empty())
    throw Error(ErrorCode::usage, "--against is for datasets that pack --as index made; this one holds its tokens: leave it out",
                dataset.folder());
  if (!holds_tokens && options.against.empty())
    throw Error(ErrorCode::usage,
                "the dataset holds no tokens (pack --as index); give what it was packed from with --against SOURCE",
                dataset.folder());
}

/// All partitions into `staged`.
void write_sources(const UnpackSetup& setup, const RecordSinkSettings& settings, std::vector<std::string> stems,
                   const StagedOutput& staged, UnpackResult& result) {
  const Manifest& manifest = setup.dataset.manifest();
  IssueList issues;
  const ManifestFile* const listed = removed_file(manifest);
  std::optional<File> removed_csv;
  if (listed != nullptr) removed_csv.emplace(setup.dataset.file_path("", listed->name), File::Mode::read);
  RemovedReader removed(std::move(removed_csv), manifest.sources, issues);

  SourceFiles files(settings, std::move(stems), staged.folder(), setup.context);
  Fingerprint fingerprint, removed_fingerprint;
  setup.context.progress.begin_stage("unpacking", manifest.planned_rows(), "rows");
  for (const ManifestPartition& partition : parts_to_unpack(setup.dataset)) {
    const std::vector<const ManifestShard*> shards = planned_shards(setup.dataset, partition);
    RecordSpool spool = make_spool(manifest, setup.temp_dir);
    std::vector<RemovedRange> removed_ranges;
    const std::vector<bool> records =
        removed_records(removed, partition, manifest, setup.source != nullptr ? &removed_ranges : nullptr, issues);
    const PartitionLayout layout = lay_out_partition(setup.dataset, partition, shards, records, spool, setup.context);
    if (setup.source != nullptr) removed_fingerprint += fingerprint_of_removed(setup, removed_ranges);
    fingerprint += scatter_rows(setup, partition, shards, layout, spool);
    for (const FileRun& run : layout.runs) files.add(spool, run.file, run.first, run.last);
    result.sequences += spool.records();
    result.empty += layout.empty;
    result.tokens += spool.begin.back();
  }
  result.files = files.finish();
  setup.context.progress.end_stage();
  const bool same = manifest.packed_fingerprint ? fingerprint == *manifest.packed_fingerprint
                                                : fingerprint + removed_fingerprint == manifest.source_fingerprint;
  if (!same)
    fail_to_unpack(setup.dataset.folder(), "the rows do not hold what was packed: their fingerprint differs from the manifest's");
  if (listed != nullptr) {
    result.files.push_back(copy_file(File(setup.dataset.file_path("", listed->name), File::Mode::read), staged.folder(),
                                     std::string(RemovedReader::kFileName)));
  }
}

}  // namespace

UnpackResult unpack(const std::string& path, const std::string& output, const UnpackOptions& options, const RunContext& context) {
  // What can be refused is refused before anything is read.
  const PackedDataset dataset(path);
  const Manifest& manifest = dataset.manifest();
  check_against_fits(dataset, options);
  static_cast<void>(parts_to_unpack(dataset));  // or nothing is written
  const RecordSinkSettings settings = sink_settings(manifest, options);
  check_record_format(settings);
  const std::vector<std::string> stems = unpacked_stems(manifest.sources, settings);
  check_output_apart(output, {dataset.trainer_folder()});
  check_output_apart(output, options.against);
  check_output_place(output, kUnpackedFormat, options.force);
  UnpackResult result;
  result.dataset = manifest;
  if (options.dry_run) {
    const auto removed = [&](RemovalCause cause) { return manifest.removed[static_cast<std::size_t>(cause)].sequences; };
    result.empty = removed(RemovalCause::empty) + removed(RemovalCause::null);
    result.sequences = manifest.sequences + result.empty;
    result.tokens = manifest.tokens - manifest.added_bos - manifest.added_eos;
    for (const std::string& stem : stems) {
      for (std::string& name : record_files(settings, stem)) result.files.push_back({std::move(name), 0, ""});
    }
    return result;
  }

  StagedOutput staged(output, kUnpackedFormat, options.force, context.diagnostics);
  const std::string temp_dir = context.temp_dir.empty() ? staged.folder() : context.temp_dir;
  std::optional<ScannedSource> source;
  if (!manifest.holds_tokens()) {
    RunContext reading = context;
    reading.temp_dir = temp_dir;
    source = open_sources(manifest, options.against, reading);
  }
  const UnpackSetup setup{.dataset = dataset,
                          .context = context,
                          .temp_dir = temp_dir,
                          .keys = DatasetKeys(longest_source(manifest), manifest.columns),
                          .first_sequence = first_sequences(manifest.sources),
                          .single_segments = truncates_at_start(manifest),
                          .source = source ? source->source.get() : nullptr};
  write_sources(setup, settings, stems, staged, result);
  if (source) source->source->check_unchanged();

  const std::string text = manifest_of(result, options);
  staged.write_file(kManifestName, text);
  result.bytes_written = static_cast<std::int64_t>(text.size());
  for (const ManifestFile& file : result.files) result.bytes_written += file.bytes;
  staged.publish();
  return result;
}

}  // namespace shardpack
