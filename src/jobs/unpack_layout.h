// Where the pieces of a partition's rows go when its records come back in their order: worked out from the small arrays alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/packed_dataset.h"
#include "io/record_spool.h"
#include "shardpack/manifest.h"
#include "shardpack/run_context.h"

namespace shardpack {

/// Records of one source file.
struct FileRun {
  std::size_t file = 0;
  std::int64_t first = 0, last = 0;  // records that come back
};

/// Where everything goes. By segment, in the order of the rows: 4 bytes and its piece (16) while it is made, then 8 bytes; by
/// record of the partition: 4 bytes.
struct PartitionLayout {
  std::vector<std::int64_t> destination;  // by segment: its first token's number
  std::vector<bool> leads;  // by segment: the first piece of its record, which brings what the record has as a whole
  std::vector<std::vector<std::int64_t>> values;  // by column whose values belong to tokens, by segment: its first one's number
  std::vector<std::uint32_t> place;               // by record of the partition: its number among those that come back
  std::vector<FileRun> runs;
  std::int64_t empty = 0;  // records without tokens that come back
};

/// A partition's shards, without those of extra rows.
std::vector<const ManifestShard*> planned_shards(const PackedDataset& dataset, const ManifestPartition& partition);

/// Where everything goes, and `spool`, made for the dataset, laid out for it.
/// \param removed  by record of the partition: is a part of it listed in removed.csv?
PartitionLayout lay_out_partition(const PackedDataset& dataset, const ManifestPartition& partition,
                                  const std::vector<const ManifestShard*>& shards, const std::vector<bool>& removed,
                                  RecordSpool& spool, const RunContext& context);

/// The partitions, if they follow each other in the order of the sources; one of all records, if blocks were dealt to them, for
/// then no source is whole before all are read. \throws Error{bad_data} when a record is in none or in two
std::vector<ManifestPartition> parts_to_unpack(const PackedDataset& dataset);

/// \throws Error{bad_data} that points to verify
[[noreturn]] void fail_to_unpack(const std::string& place, const std::string& what);

}  // namespace shardpack
