// The default. The rule, on counts and never on time, so that plans do not depend on the machine: `lpfhp`; while that needs over
// one row more than the bound, under a segment limit also `spfhp`, for where most rows are full of segments before they are full
// of tokens best fit is not the better one; while the better of the two does, some of its rows are filled anew; while that does,
// `optimal`, if the problem is not too large for it. Larger ones are solved in coarse lengths where segments are limited: there
// best fit can be a fifth over the bound, elsewhere it is close.
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "core/column_generation.h"
#include "core/packers/packer_list.h"
#include "core/refill.h"
#include "shardpack/bounds.h"

namespace shardpack {

namespace {
constexpr std::int64_t kGoodGap = 1;  // rows

/// Sizes of problems, as PackingProblem::table() has them: row length times distinct lengths times segments in a row (1 without a
/// limit), which is what pricing costs.
struct LargestTable {
  std::int64_t exact;   ///< up to which `optimal` is worth its time, some seconds at the normal effort
  std::int64_t coarse;  ///< of the coarse lengths in which larger ones are solved: a second or two at the normal effort
};

LargestTable largest_table(PlanEffort effort) {
  switch (effort) {
    case PlanEffort::fast:
      return {1'000'000, 300'000};
    case PlanEffort::normal:
      return {20'000'000, 1'000'000};
    case PlanEffort::thorough:
      return {std::numeric_limits<std::int64_t>::max(), 0};
  }
  return {};
}
}  // namespace

PackingPlan plan_auto(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop) {
  const std::int64_t enough = lower_bound(items, options.row_tokens, options.max_segments).rows + kGoodGap;
  // A plan names what made it, not the rule that chose it.
  PackingPlan plan = plan_lpfhp(items, options, stop);
  plan.packer = "lpfhp";
  if (plan.rows() <= enough) return plan;

  if (options.max_segments > 0) {
    PackingPlan shortest_first = plan_spfhp(items, options, stop);
    shortest_first.packer = "spfhp";
    if (shortest_first.rows() < plan.rows()) plan = std::move(shortest_first);
  }
  plan.row_tokens = options.row_tokens;
  plan.max_segments = options.max_segments;
  if (refill(plan, enough, stop)) plan.packer += "+refill";
  if (plan.rows() <= enough) return plan;

  const std::string before = plan.packer;
  const std::int64_t rows_before = plan.rows();
  const LargestTable largest = largest_table(options.effort);
  if (PackingProblem(items, options.row_tokens, options.max_segments).table() <= largest.exact) {
    plan = optimize(std::move(plan), items, options, stop);
  } else if (options.max_segments > 0) {
    plan = optimize_coarsely(std::move(plan), items, options, largest.coarse, stop);
  }
  plan.packer = plan.rows() < rows_before ? "optimal" : before;
  return plan;
}

}  // namespace shardpack
