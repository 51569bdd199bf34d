// From an approximate plan to an exact cover.
#pragma once

#include "shardpack/length_histogram.h"
#include "shardpack/packing_plan.h"

namespace shardpack {

/// Mend `plan` (row_tokens and max_segments set, strategies and counts as rounded) so that it places every item of `items`
/// exactly once: surplus places are taken out of rows (they become padding), rows left empty go, and items that no row places are
/// packed into the free slots and then into new rows by best fit, within max_segments. Deterministic. Pure.
void cover_repair(PackingPlan& plan, const LengthHistogram& items);

}  // namespace shardpack
