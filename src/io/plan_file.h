// plan.json, as docs/formats.md describes it.
#pragma once

#include <string>

#include "shardpack/length_histogram.h"
#include "shardpack/packing_plan.h"

namespace shardpack {

struct PlanFile {
  PackingPlan plan;
  LengthHistogram items;  ///< the histogram (in slots) that the plan covers
  std::string tool_version;
};

/// The exact bytes of plan.json: equal plans give equal bytes.
std::string to_json(const PackingPlan& plan, const LengthHistogram& items);

/// Inverse of to_json(). Checks types and ranges, not the cover. \throws Error{bad_data} naming `path` and the key.
PlanFile plan_from_json(const std::string& text, const std::string& path);

}  // namespace shardpack
