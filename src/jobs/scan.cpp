// scan: one pass over the inputs, totals out.
#include <algorithm>

#include "io/saved_scan.h"
#include "io/source.h"
#include "jobs/index_views.h"
#include "jobs/partitions.h"
#include "jobs/scan_options.h"
#include "shardpack/jobs.h"

namespace shardpack {

LengthHistogram lengths_of(const SequenceIndex& index) {
  LengthHistogram lengths;
  for (const SourceFile& file : index.files()) {
    for (std::size_t record = 0; record + 1 < file.record_begin.size(); ++record) {
      lengths.add(file.record_begin[record + 1] - file.record_begin[record]);
    }
  }
  return lengths;
}

std::vector<std::int64_t> record_lengths_of(const SequenceIndex& index) {
  std::vector<std::int64_t> lengths;
  lengths.reserve(static_cast<std::size_t>(index.sequences()));
  for (const SourceFile& file : index.files()) {
    for (std::size_t record = 0; record + 1 < file.record_begin.size(); ++record) {
      lengths.push_back(file.record_begin[record + 1] - file.record_begin[record]);
    }
  }
  return lengths;
}

std::vector<GroupLengths> group_lengths_of(const SequenceIndex& index) {
  std::vector<GroupLengths> groups;
  for (const GroupKey& key : index.group_keys()) groups.push_back({key, {}});
  if (!index.grouped()) return groups;
  SequenceId sequence = 0;
  for (const std::int64_t length : record_lengths_of(index)) {
    const std::int32_t group = index.group(sequence++);
    if (group >= 0) groups[static_cast<std::size_t>(group)].lengths.add(length);
  }
  std::erase_if(groups, [](const GroupLengths& group) { return group.lengths.sequences() == 0; });  // beyond --limit
  return groups;
}

std::vector<ManifestSource> sources_of(const SequenceIndex& index) {
  std::vector<ManifestSource> sources;
  for (const SourceFile& file : index.files()) {
    sources.push_back({.name = file.name,
                       .format = file.format,
                       .bytes = file.bytes,
                       .sequences = file.records(),
                       .tokens = file.tokens(),
                       .hash = file.hash});
  }
  return sources;
}

ScanResult scan(const std::vector<std::string>& inputs, const ReadOptions& options, const RunContext& context,
                const ScanWants& wants) {
  const bool ends = wants.save && (options.eos_id || options.bos_id);
  const LossSide side = wants.save ? wants.save->loss_side : LossSide::none;
  const ScannedSource scanned =
      open_source(inputs, options, {.random_access = false, .loss_places = side, .ends = ends}, context);
  const SequenceIndex& index = scanned.source->index();
  ScanResult result{.lengths = lengths_of(index),
                    .files = sources_of(index),
                    .id_min = scanned.totals.id_min,
                    .id_max = scanned.totals.id_max,
                    .fingerprint = scanned.totals.fingerprint,
                    .padding = scanned.padding,
                    .null_records = scanned.null_records,
                    .not_carried = scanned.not_carried,
                    .groups = group_lengths_of(index),
                    .record_lengths = wants.record_lengths ? record_lengths_of(index) : std::vector<std::int64_t>(),
                    .saved = {}};
  if (wants.save) {
    result.partitions = std::ssize(cut_partitions(index, wants.save->cut));
    result.saved =
        saved_scan_bytes(scanned, {.recorded = recorded_scan_options(options, wants.save->cut), .ends = ends, .loss_side = side});
  }
  return result;
}

namespace {

std::int64_t bytes_of(const std::vector<ManifestFile>& files) {
  std::int64_t bytes = 0;
  for (const ManifestFile& file : files) bytes += file.bytes;
  return bytes;
}

std::int64_t bytes_of(const std::vector<ManifestShard>& shards) {
  std::int64_t bytes = 0;
  for (const ManifestShard& shard : shards) bytes += bytes_of(shard.files) + bytes_of(shard.trainer_files);
  return bytes;
}

}  // namespace

std::int64_t listed_bytes(const Manifest& manifest) {
  return bytes_of(manifest.files) + bytes_of(manifest.trainer_files) + bytes_of(manifest.shards);
}

std::int64_t listed_bytes(const BatchManifest& manifest) {
  return bytes_of(manifest.files) + (manifest.shards ? bytes_of(manifest.shards->shards) : 0);
}

}  // namespace shardpack
