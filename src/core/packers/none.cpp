// One item a row: what padding every sequence to the row length costs, the baseline of every comparison.
#include "core/packers/packer_list.h"

namespace shardpack {

PackingPlan plan_none(const LengthHistogram& items, const PackerOptions&, std::stop_token) {
  PackingPlan plan;
  for (const LengthCount& entry : items.counts()) {
    const auto length = static_cast<Length>(entry.length);
    plan.add({&length, 1}, entry.count);
  }
  return plan;
}

}  // namespace shardpack
