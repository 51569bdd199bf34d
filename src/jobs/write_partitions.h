// The rows of all partitions into shards: what is planned becomes a dataset.
#pragma once

#include <vector>

#include "io/staged_output.h"
#include "jobs/partitions.h"
#include "jobs/planning.h"
#include "jobs/rewrite.h"
#include "jobs/step_meter.h"
#include "jobs/tail.h"
#include "shardpack/sequence_source.h"

namespace shardpack {

/// All rows into `staged`, partition by partition; completes the manifest.
void write_dataset(StagedOutput& staged, const SequenceSource& source, std::vector<Partition>& partitions,
                   PlanningOptions planning, const RewriteSettings& settings, const PackOptions& options, const TailRows& tail,
                   StepMeter& steps, Manifest& manifest, const RunContext& context);

}  // namespace shardpack
