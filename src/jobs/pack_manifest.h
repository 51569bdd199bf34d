// What the manifest of a packed dataset says: what options, scan and plans decide, and what writing the rows changes of it.
#pragma once

#include <vector>

#include "jobs/partitions.h"
#include "jobs/tail.h"
#include "shardpack/jobs.h"
#include "shardpack/manifest.h"

namespace shardpack {

/// Every plan: of the partitions, or of their groups.
std::vector<const PackingPlan*> plans_of(const std::vector<Partition>& partitions);

/// The manifest as far as the options, the scan and the plans decide it.
Manifest describe(const PackOptions& options, const ScannedSource& scanned, const std::vector<Partition>& partitions,
                  const PlanningTotals& totals, const TailRows& tail);

/// What the pass over the tokens found, part of describe(); once more where the pass came to its end later. \throws
/// Error{bad_data} for ids that do not fit --id-dtype
void add_token_facts(const PackOptions& options, const ScannedSource& scanned, Manifest& manifest);

std::vector<ManifestGroup> groups_of(const Partition& partition);
std::vector<ManifestGroup> groups_of(const std::vector<Partition>& partitions);  ///< of all together, ascending by key

/// Take dropped rows out of the manifest's totals.
void count_dropped(const DroppedRows& dropped, Manifest& manifest);

/// Figures that dropping a tail or exchanging items changes, from the partitions as written.
void settle_totals(const std::vector<Partition>& partitions, PackResult& result);

}  // namespace shardpack
