// What the options of pack amount to when rows are written: columns, types, names, bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "jobs/partitions.h"
#include "jobs/rewrite.h"
#include "jobs/tail.h"

namespace shardpack {

/// \throws Error{bad_data} for ids that the preset's trainer has no room for
void check_ids_fit(const Manifest& manifest);

/// How the dataset's columns become the preset's. \throws Error{usage} when they cannot, Error as check_ids_fit()
OutputRules output_rules_of(const Manifest& manifest, bool allow_inner_eos);

/// How all shards are written. \throws Error as output_rules_of()
RewriteSettings rewrite_settings(const PackOptions& options, const Manifest& manifest, const std::vector<Partition>& partitions,
                                 const PlanningTotals& totals, const TailRows& tail);

/// Bytes of all shards; 0 with compression, when it is not known before. Rows without padding count as full ones.
std::int64_t expected_bytes(const Manifest& manifest, const RewriteSettings& settings);

}  // namespace shardpack
