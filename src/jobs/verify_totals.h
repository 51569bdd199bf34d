// Does the manifest's arithmetic hold, on its own and against what the rows were found to be?
#pragma once

#include "jobs/verify_issues.h"
#include "jobs/verify_shards.h"
#include "shardpack/manifest.h"

namespace shardpack {

/// What the manifest says of itself: sums over sources, partitions and shards, conservation.
/// \return whether rows can be checked by it
bool check_manifest(const Manifest& manifest, IssueList& issues);

/// What was found in the rows, plans and removed.csv, against the manifest. Only for a complete pass.
void check_totals(const Manifest& manifest, const DatasetFacts& facts, IssueList& issues);

}  // namespace shardpack
