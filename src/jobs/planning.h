// Planning as plan and pack share it: from items to rows, whichever kind of packer was asked for.
#pragma once

#include <stop_token>
#include <string_view>
#include <vector>

#include "shardpack/assignment.h"
#include "shardpack/jobs.h"
#include "shardpack/sequence_index.h"

namespace shardpack {

/// What decides the rows of a partition.
struct PlanningOptions {
  LengthPolicy policy;
  std::string_view packer;
  PackerOptions packing;
  AssignOptions assign;
};

/// The policy that items are made under: concat cuts at row ends anyway, so over-long sequences are no error there.
/// \throws Error{usage} for a policy that contradicts itself, the packer or the limit of segments
LengthPolicy effective_policy(LengthPolicy policy, std::string_view packer, std::int32_t max_segments);

/// What a plan of these items places, in slots: items, or the units that they are.
LengthHistogram planned_items(const std::vector<Item>& items, const LengthPolicy& policy);

/// The plan of one partition's items.
PackingPlan plan_items(const std::vector<Item>& items, const PlanningOptions& options, std::stop_token stop);

/// The rows that realise it. `items` are handed over, since concat cuts its own.
OrderedRows assign_items(std::vector<Item> items, const PackingPlan& plan, const PlanningOptions& options);

}  // namespace shardpack
