// A little better for little effort: the rows of a plan that are not full, and a sample of the full ones, are filled anew.
#pragma once

#include <cstdint>
#include <stop_token>

#include "shardpack/packing_plan.h"

namespace shardpack {

/// Takes rows of `plan` (row_tokens and max_segments set) apart, those with free slots and a seeded sample of the full ones, and
/// fills them to the last slot where that can be; again, with another sample, while there are more rows than `enough`. Changes
/// the plan only where that saves rows (\return was that so?); the cover stays exact. Deterministic. Work is limited by a count
/// of steps.
bool refill(PackingPlan& plan, std::int64_t enough, const std::stop_token& stop);

}  // namespace shardpack
