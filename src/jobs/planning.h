// Planning as plan and pack share it: from items to rows, whichever kind of packer was asked for.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "io/source.h"
#include "shardpack/assignment.h"
#include "shardpack/jobs.h"
#include "shardpack/sequence_index.h"

namespace shardpack {

/// What a planner needs of its inputs: the counts of a histogram file, or shards, which have an order too.
struct LengthSource {
  std::optional<LengthHistogram> histogram;
  std::vector<GroupLengths> groups;  ///< of a grouped histogram
  ScannedSource shards;              ///< when there is no histogram
};
/// \param policy  decides whether the ends of sequences are looked at
LengthSource read_lengths(const std::vector<std::string>& inputs, const ReadOptions& read, const LengthPolicy& policy,
                          const RunContext& context);

/// What decides the rows of a partition.
struct PlanningOptions {
  LengthPolicy policy;
  std::string_view packer;
  PackerOptions packing;
  AssignOptions assign;
  bool balance_attention = false;  ///< exchange items between rows, so that rows cost alike
};

/// Does the packer cut sequences wherever a row ends? Then no sequence is over-long for it.
bool cuts_at_row_ends(std::string_view packer);

/// The policy that items are made under: concat cuts at row ends anyway, so over-long sequences are no error there.
/// \throws Error{usage} for a policy that contradicts itself, the packer or the limit of segments
LengthPolicy effective_policy(LengthPolicy policy, std::string_view packer, std::int32_t max_segments);

/// What a plan of these items places, in slots: items, or the units that they are.
LengthHistogram planned_items(const std::vector<Item>& items, const LengthPolicy& policy);

/// The plan of what planned_items() counts, by a packer that needs no order.
PackingPlan plan_counts(const LengthHistogram& planned, const PlanningOptions& options, std::stop_token stop);

/// What the plans of a partition are: one, or one for each group that has items.
struct PartitionPlan {
  PackingPlan plan;               ///< of all groups together where there are groups
  std::vector<GroupPlan> groups;  ///< ascending by key
};

/// planned_items() of each group that has some, ascending by key; none when the index has no groups.
std::vector<GroupLengths> planned_groups(const std::vector<Item>& items, const SequenceIndex& index, const LengthPolicy& policy);

/// The plans of one partition's items.
PartitionPlan plan_partition(const std::vector<Item>& items, const SequenceIndex& index, const PlanningOptions& options,
                             const std::stop_token& stop);

/// What rows cost, in the order of the plans: as planned, and as written.
struct PartitionCosts {
  std::vector<std::int64_t> planned, written;
};

/// The rows that realise them, those of all groups in one order. With balance_attention other rows of the same slots: the plans
/// are those that derive_plans() finds. \param costs  filled when not null
OrderedRows assign_partition(std::vector<Item> items, const SequenceIndex& index, const PartitionPlan& plans,
                             const PlanningOptions& options, PartitionCosts* costs = nullptr);

/// The plans that rows amount to; `like` says of what packer, policy and groups they are. Its bounds stay where the items are the
/// same.
PartitionPlan derive_plans(OrderedRows& rows, const SequenceIndex& index, const PartitionPlan& like);

/// The plan of items that may share rows.
PackingPlan plan_items(const std::vector<Item>& items, const PlanningOptions& options, std::stop_token stop);

/// The rows of a packer that keeps the input order, and the plan that they amount to.
OrderedRows rows_in_input_order(std::vector<Item> items, const PlanningOptions& options);
PackingPlan plan_of_rows(const OrderedRows& rows, const PlanningOptions& options);

/// The rows that realise it. `items` are handed over, since concat cuts its own.
OrderedRows assign_items(std::vector<Item> items, const PackingPlan& plan, const PlanningOptions& options);

}  // namespace shardpack
