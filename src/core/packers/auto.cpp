// The default. The rule, on counts and never on time, so that plans do not depend on the machine: `lpfhp`.
#include <utility>

#include "core/packers/packer_list.h"

namespace shardpack {

PackingPlan plan_auto(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop) {
  PackingPlan plan = plan_lpfhp(items, options, std::move(stop));
  plan.packer = "lpfhp";  // a plan names the packer that made it, not the rule that chose it
  return plan;
}

}  // namespace shardpack
