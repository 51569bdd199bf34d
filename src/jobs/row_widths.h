// Widths of rows in presets that have the same number of masked tokens and of segments in every row (packed ones have many
// different numbers): worked out before anything is written, so that no row has more than there is room for.
#pragma once

#include <vector>

#include "jobs/partitions.h"
#include "jobs/planning.h"
#include "shardpack/jobs.h"
#include "shardpack/manifest.h"
#include "shardpack/run_context.h"
#include "shardpack/sequence_source.h"

namespace shardpack {

/// Sets the manifest's widths, where its preset has any: K is the plans' limit of segments, or what the deepest row has; M + K is
/// what the row with most masked tokens has, or more. Assigns every partition once. \throws Error{bad_data} naming the row that
/// has more than options.max_predictions leaves room for.
void settle_widths(const PackOptions& options, const SequenceSource& source, const std::vector<Partition>& partitions,
                   PlanningOptions planning, Manifest& manifest, const RunContext& context);

}  // namespace shardpack
