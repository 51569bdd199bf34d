// Best fit decreasing, the textbook baseline: the least free space that holds the item, and among equals the row opened first.
// Differs from lpfhp in the tie alone, which can matter only under a segment limit.
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "core/packers/fill_decreasing.h"
#include "core/packers/packer_list.h"

namespace shardpack {

namespace {
class BestFit {
 public:
  void put(const OpenStrategy& strategy) { open_.insert(strategy); }
  std::optional<OpenStrategy> take(Length length) {
    const auto found = open_.lower_bound(OpenStrategy{0, 0, length, 0, -1});
    if (found == open_.end()) return std::nullopt;
    const OpenStrategy strategy = *found;
    open_.erase(found);
    return strategy;
  }

 private:
  struct Tighter {
    bool operator()(const OpenStrategy& a, const OpenStrategy& b) const {
      return std::tie(a.free, a.first_row) < std::tie(b.free, b.first_row);
    }
  };
  std::set<OpenStrategy, Tighter> open_;
};
}  // namespace

PackingPlan plan_bfd(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop) {
  return fill_decreasing(items, options, std::move(stop), Copies::fitting, BestFit());
}

}  // namespace shardpack
