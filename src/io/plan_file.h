// plan.json, as docs/formats.md describes it.
#pragma once

#include <string>
#include <vector>

#include "shardpack/length_histogram.h"
#include "shardpack/packing_plan.h"

namespace shardpack {

struct PlanFile {
  PackingPlan plan;       ///< of all groups together where there are groups
  LengthHistogram items;  ///< the histogram (in slots) that the plan covers
  std::string tool_version;
  std::string group_column;       ///< empty: no groups
  std::vector<GroupPlan> groups;  ///< ascending by key
};

/// The exact bytes of plan.json: equal plans give equal bytes.
std::string to_json(const PackingPlan& plan, const LengthHistogram& items);
/// The same of the plans of groups.
std::string to_json(const std::string& group_column, const std::vector<GroupPlan>& groups);

/// Inverse of to_json(). Checks types and ranges, not the cover. \throws Error{bad_data} naming `path` and the key.
PlanFile plan_from_json(const std::string& text, const std::string& path);

/// `path` itself, or the plan-00000.json, plan-00001.json, ... in that folder. \throws Error{bad_data} when there is none or one
/// is missing in between
std::vector<std::string> plan_files_in(const std::string& path);

/// Of partition `number`: "plan-00007.json".
std::string plan_file_name(std::size_t number);

}  // namespace shardpack
