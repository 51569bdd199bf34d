// The default. The rule, on counts and never on time, so that plans do not depend on the machine: `lpfhp`; while that needs over
// one row more than the bound, under a segment limit also `spfhp`, for where most rows are full of segments before they are full
// of tokens best fit is not the better one; while the better of the two does, some of its rows are filled anew.
#include <utility>

#include "core/packers/packer_list.h"
#include "core/refill.h"
#include "shardpack/bounds.h"

namespace shardpack {

namespace {
constexpr std::int64_t kGoodGap = 1;  // rows
}

PackingPlan plan_auto(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop) {
  const std::int64_t enough = lower_bound(items, options.row_tokens, options.max_segments).rows + kGoodGap;
  // A plan names what made it, not the rule that chose it.
  PackingPlan plan = plan_lpfhp(items, options, stop);
  plan.packer = "lpfhp";
  if (plan.rows() > enough && options.max_segments > 0) {
    PackingPlan shortest_first = plan_spfhp(items, options, stop);
    if (shortest_first.rows() < plan.rows()) {
      plan = std::move(shortest_first);
      plan.packer = "spfhp";
    }
  }
  plan.row_tokens = options.row_tokens;
  plan.max_segments = options.max_segments;
  if (refill(plan, enough, stop)) plan.packer += "+refill";
  return plan;
}

}  // namespace shardpack
