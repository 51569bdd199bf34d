// Is a plan what it says, and do the rows of a partition realise it? Shares no code with the packers or with assign.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/plan_file.h"
#include "jobs/verify_issues.h"
#include "shardpack/packing_plan.h"

namespace shardpack {

/// Every strategy fits a row, every item of the plan's histogram has exactly one place, and the bound is the one that the
/// histogram gives. \param file  names the plan in issues
void check_plan(const PlanFile& plan, const std::string& file, IssueList& issues);

/// How often rows realise each strategy of a plan. find() is thread-safe; the counting is one thread's.
class PlanRealisation {
 public:
  explicit PlanRealisation(PackingPlan plan);

  /// The strategy with these lengths (slots, descending), -1 when the plan has none.
  std::int64_t find(std::span<const Length> lengths) const;
  void count(std::int64_t strategy) { ++rows_[static_cast<std::size_t>(strategy)]; }

  /// Compare with the plan. A strategy that too many rows have is an issue.
  /// \return rows of the plan that are not there
  std::int64_t finish(const std::string& file, IssueList& issues) const;

  const PackingPlan& plan() const { return plan_; }

 private:
  PackingPlan plan_;
  std::vector<std::pair<std::uint64_t, std::int64_t>> by_hash_;  // hash of the lengths, strategy; ascending
  std::vector<std::int64_t> rows_;                               // by strategy
};

/// "[500, 12]", at most eight lengths.
std::string show_lengths(std::span<const Length> lengths);

}  // namespace shardpack
