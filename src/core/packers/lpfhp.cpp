// Longest-pack-first histogram packing (Krell et al. 2021, later version): best fit decreasing on counts. Items go to the open
// strategy with the least free space that holds them, several copies at once; among equals to the one that got there last.
#include <utility>

#include "core/packers/fill_decreasing.h"
#include "core/packers/longest_first.h"
#include "core/packers/packer_list.h"

namespace shardpack {

PackingPlan plan_lpfhp(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop) {
  return fill_decreasing(items, options, std::move(stop), Copies::fitting, LongestFirst(options.row_tokens));
}

}  // namespace shardpack
