// The batches of a plan as they were written: are they the plan's, and every token that of the sources?
#pragma once

#include <cstdint>
#include <vector>

#include "io/batch_folder.h"
#include "jobs/verify_issues.h"
#include "shardpack/run_context.h"

namespace shardpack {

/// Reads every slot of every shard. `lengths`: of the sequences of the sources.
void check_batch_shards(const BatchFolder& folder, const std::vector<std::int64_t>& lengths, const RunContext& context,
                        IssueList& issues);

}  // namespace shardpack
