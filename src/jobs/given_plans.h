// Plans that pack is told to use (--plan): they pin the rows, whatever a packer would find today.
#pragma once

#include <string>
#include <vector>

#include "io/plan_file.h"
#include "jobs/planning.h"
#include "shardpack/jobs.h"

namespace shardpack {

struct GivenPlan {
  std::string path;
  PlanFile file;
};

/// Of the partitions, in their order. \param path  a plan, or a folder with plan-00000.json, ... such as a packed dataset
/// \throws Error{bad_data} for a plan that is damaged (its cover and bound are checked as verify does), is in input order, or is
/// missing from the sequence
std::vector<GivenPlan> read_given_plans(const std::string& path);

/// Fill in what the plans say and `options` leave open: the row length. \throws Error{bad_data} when a plan was made for another
/// policy, packer or limit than is asked for, or than the other plans
void adopt(PackOptions& options, const std::vector<GivenPlan>& plans);

/// \throws Error{bad_data} when there are not as many plans as partitions
void check_plan_count(const std::vector<GivenPlan>& plans, const std::string& path, std::size_t partitions);

/// The plans, when they cover exactly these items (in slots), in all and by group. \throws Error{bad_data} naming the first
/// length or group that differs
PartitionPlan plan_for(const GivenPlan& given, const LengthHistogram& items, const std::vector<GroupLengths>& groups);

}  // namespace shardpack
