// Shortest-pack-first histogram packing (Krell et al. 2021), as published: items go to the open strategy with the most free
// space, one to a row at a time, and each that fits no open row opens a row of its own, even where several would share a new one
// (28,225 rows more on the paper's Wikipedia histogram). Kept for comparison with published results; `lpfhp` has no such loss.
#include <optional>
#include <utility>

#include "core/packers/fill_decreasing.h"
#include "core/packers/free_space_buckets.h"
#include "core/packers/packer_list.h"

namespace shardpack {

namespace {
class ShortestFirst {
 public:
  explicit ShortestFirst(Length row_tokens) : buckets_(row_tokens) {}
  void put(const OpenStrategy& strategy) { buckets_.put(strategy); }
  std::optional<OpenStrategy> take(Length length) {
    const std::int64_t free = buckets_.most();
    if (free < length) return std::nullopt;
    return buckets_.pop(free);
  }

 private:
  FreeSpaceBuckets buckets_;
};
}  // namespace

PackingPlan plan_spfhp(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop) {
  return fill_decreasing(items, options, std::move(stop), Copies::one, ShortestFirst(options.row_tokens));
}

}  // namespace shardpack
