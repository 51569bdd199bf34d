// Plans need lengths alone: they are made as soon as those are known, beside the reading of tokens.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "jobs/partitions.h"
#include "jobs/write_partitions.h"
#include "shardpack/jobs.h"

namespace shardpack {

/// What follows from lengths: partitions are cut by the data and planned, rows, bounds and removals are known.
struct Plans {
  std::vector<Partition> partitions;
  PlanningTotals totals;
  std::optional<std::int64_t> rows_of_one_plan;  ///< rows_of_one_plan(); nothing for given plans
  std::optional<PreparedPartition> first;        ///< rows of partition 0, where there was time for them
};

/// For one caller. What it refers to outlives it.
class EarlyPlans {
 public:
  EarlyPlans(const PackOptions& options, const PlanningOptions& planning, const std::vector<GivenPlan>& given,
             const RunContext& context)
      : options_(options), planning_(planning), given_(given), context_(context) {}

  /// For ScanNeeds::meanwhile: makes the plans, and keeps what it throws for take(). None under a limit of memory, which reading
  /// and planning would have to share.
  std::function<bool(const SequenceIndex&, const std::stop_token&)> maker();

  /// Those that were made meanwhile; else they are made now. \throws what making them throws
  Plans take(const SequenceIndex& index);

 private:
  const PackOptions& options_;
  const PlanningOptions& planning_;
  const std::vector<GivenPlan>& given_;
  const RunContext& context_;
  std::optional<Plans> plans_;
  std::exception_ptr failure_;
};

}  // namespace shardpack
