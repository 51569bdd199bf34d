// Longest-pack-first histogram packing (Krell et al. 2021, later version): best fit decreasing on counts. Items go to the open
// strategy with the least free space that holds them, several copies at once; among equals to the one that got there last.
#include <optional>
#include <utility>

#include "core/packers/fill_decreasing.h"
#include "core/packers/free_space_buckets.h"
#include "core/packers/packer_list.h"

namespace shardpack {

namespace {
class LongestFirst {
 public:
  explicit LongestFirst(Length row_tokens) : buckets_(row_tokens) {}
  void put(const OpenStrategy& strategy) { buckets_.put(strategy); }
  std::optional<OpenStrategy> take(Length length) {
    const std::int64_t free = buckets_.least_from(length);
    if (free < 0) return std::nullopt;
    return buckets_.pop(free);
  }

 private:
  FreeSpaceBuckets buckets_;
};
}  // namespace

PackingPlan plan_lpfhp(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop) {
  return fill_decreasing(items, options, std::move(stop), Copies::fitting, LongestFirst(options.row_tokens));
}

}  // namespace shardpack
