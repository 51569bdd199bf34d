// What writing a partition adds to a dataset's manifest: kept in memory by one machine, noted in a journal by the parts of
// several.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "jobs/tail.h"
#include "shardpack/manifest.h"

namespace shardpack {

/// What policies and the tail took out, as it was read once more.
struct RemovedTotals {
  std::optional<ManifestFile> file;  ///< removed.csv, or the partition's lines of it; none when nothing was removed
  Fingerprint fingerprint;
  std::array<std::int64_t, kRemovalCauses.size()> loss_tokens{};
};

struct PartitionRecord {
  ManifestPartition entry;
  std::int64_t planned_shards = 0;  ///< of entry.shards; those after them hold extra rows
  ManifestFile plan;
  DroppedRows dropped;    ///< without its ranges
  RemovedCount repeated;  ///< in extra rows that repeat others
  RemovedTotals removed;  ///< of this partition, where each has a log of its own
  std::string part;       ///< "2/4"; "" on one machine
};

std::string to_json(const PartitionRecord& record);  ///< on one line
PartitionRecord partition_record_from_json(const std::string& text, const std::string& path);

/// Completes a manifest by what was written. \param shards  of all partitions, in their order
void add_partitions(Manifest& manifest, const std::vector<PartitionRecord>& records, std::vector<ManifestShard> shards,
                    const TailRows& tail, Tail tail_kind, const RemovedTotals& removed);

}  // namespace shardpack
