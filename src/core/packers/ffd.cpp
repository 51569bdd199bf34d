// First fit decreasing, the textbook baseline: the row opened first among those that hold the item.
//
// Lengths only fall, so a row that holds the item at hand will hold all later ones until it is given some: rows wait, ordered by
// free space, until the length has come down to it, and are then ordered by their opening alone.
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "core/packers/fill_decreasing.h"
#include "core/packers/packer_list.h"

namespace shardpack {

namespace {
class FirstFit {
 public:
  void put(const OpenStrategy& strategy) { waiting_.push(strategy); }
  std::optional<OpenStrategy> take(Length length) {
    while (!waiting_.empty() && waiting_.top().free >= length) {
      fitting_.push(waiting_.top());
      waiting_.pop();
    }
    if (fitting_.empty()) return std::nullopt;
    const OpenStrategy strategy = fitting_.top();
    fitting_.pop();
    return strategy;
  }

 private:
  struct LessFree {
    bool operator()(const OpenStrategy& a, const OpenStrategy& b) const { return a.free < b.free; }
  };
  struct OpenedLater {
    bool operator()(const OpenStrategy& a, const OpenStrategy& b) const { return a.first_row > b.first_row; }
  };
  std::priority_queue<OpenStrategy, std::vector<OpenStrategy>, LessFree> waiting_;     // most free space on top
  std::priority_queue<OpenStrategy, std::vector<OpenStrategy>, OpenedLater> fitting_;  // first opened on top
};
}  // namespace

PackingPlan plan_ffd(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop) {
  return fill_decreasing(items, options, std::move(stop), Copies::fitting, FirstFit());
}

}  // namespace shardpack
