// From the rows of a partition to its records: the rows are read once, in their order, and their pieces put into temporary files
// at the places that the layout gives.
#pragma once

#include <string>
#include <vector>

#include "core/row_block.h"
#include "io/packed_dataset.h"
#include "io/record_spool.h"
#include "jobs/unpack_layout.h"
#include "shardpack/fingerprint.h"
#include "shardpack/run_context.h"
#include "shardpack/sequence_source.h"
#include "shardpack/types.h"

namespace shardpack {

/// What all partitions share.
struct UnpackSetup {
  const PackedDataset& dataset;
  const RunContext& context;
  std::string temp_dir;
  DatasetKeys keys;
  std::vector<SequenceId> first_sequence;
  bool single_segments = false;
  const SequenceSource* source = nullptr;  ///< where the rows hold no tokens
};

/// Read all rows of `shards` once. \return their fingerprint
Fingerprint scatter_rows(const UnpackSetup& setup, const ManifestPartition& partition,
                         const std::vector<const ManifestShard*>& shards, const PartitionLayout& layout,
                         const RecordSpool& spool);

}  // namespace shardpack
