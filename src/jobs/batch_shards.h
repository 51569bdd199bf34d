// Batches as shards: each lies in one piece, and goes the way of packed rows, through the same rewriter, sinks and journal.
#pragma once

#include "io/staged_output.h"
#include "jobs/batch_source.h"
#include "shardpack/batch_manifest.h"
#include "shardpack/batch_plan.h"
#include "shardpack/jobs.h"

namespace shardpack {

/// What is known of the shards before any is written. \throws Error{usage} and Error{bad_data} for ids that do not fit --id-dtype
BatchShards describe_shards(const BatchShardOptions& options, const ScannedSource& scanned);

/// Bytes of all shards of a plan that is complete; 0 with compression, when it is not known before.
std::int64_t expected_shard_bytes(const BatchManifest& manifest);

/// The batches of all epochs into `staged`, shards named shard-EPOCH-NUMBER, and removed.csv where something is; completes
/// `manifest`. In every epoch source + repeated = batched + removed + dropped, in tokens, loss tokens and fingerprints.
/// \param plan  as plan_batches() takes it
/// \throws Error{internal} when that does not hold; Error{bad_data} when shards of an interrupted run are of other tokens
void write_batch_shards(StagedOutput& staged, const BatchSource& source, const BatchSelection& selection,
                        const BatchOptions& plan, BatchManifest& manifest, const RunContext& context);

}  // namespace shardpack
