// What a trainer reads beside the shards' files.
#pragma once

#include <vector>

#include "core/trainer_rows.h"
#include "io/staged_output.h"
#include "jobs/partitions.h"
#include "shardpack/manifest.h"

namespace shardpack {

/// Writes them and lists them in the manifest; and where there is no shard, a file without rows that has the columns.
void write_trainer_extras(const StagedOutput& staged, const OutputRules& rules, const std::vector<Partition>& partitions,
                          Manifest& manifest);

}  // namespace shardpack
