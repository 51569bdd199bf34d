// Surplus places go first, from the rows that this leaves emptiest. Then the items without a place are packed by the walk that
// `lpfhp` takes, with the mended rows as its open ones.
#include "core/cover_repair.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "core/packers/fill_decreasing.h"
#include "core/packers/longest_first.h"

namespace shardpack {
namespace {

struct Strategy {
  std::vector<Length> lengths;  // descending
  std::int64_t rows = 0;

  std::int64_t copies(Length length) const { return std::count(lengths.begin(), lengths.end(), length); }
  Length slots() const { return std::accumulate(lengths.begin(), lengths.end(), Length{0}); }
};

class Repair {
 public:
  explicit Repair(const PackingPlan& plan) {
    for (std::int64_t s = 0; s < plan.strategies(); ++s) {
      const std::span<const Length> lengths = plan.strategy(s);
      if (const std::int64_t rows = plan.count[static_cast<std::size_t>(s)]; rows > 0) {
        append({{lengths.begin(), lengths.end()}, rows});
      }
    }
  }
  const std::vector<Strategy>& strategies() const { return strategies_; }

  /// Lengths that are planned, with their places.
  std::map<Length, std::int64_t> places() const {
    std::map<Length, std::int64_t> result;
    for (const Strategy& strategy : strategies_) {
      for (const Length length : strategy.lengths) result[length] += strategy.rows;
    }
    return result;
  }

  void take_out(Length length, std::int64_t surplus) {
    std::vector<std::size_t> holders = holders_[length];
    const auto slots_left = [&](std::size_t s) { return strategies_[s].slots() - strategies_[s].copies(length) * length; };
    std::stable_sort(holders.begin(), holders.end(), [&](std::size_t a, std::size_t b) { return slots_left(a) < slots_left(b); });

    for (std::size_t h = 0; surplus > 0; ++h) {
      Strategy strategy = strategies_[holders[h]];
      const std::int64_t each = std::min(strategy.copies(length), surplus);
      const std::int64_t rows = std::min(strategy.rows, surplus / each);
      if (rows < strategy.rows) {  // the rest is next in turn: it may have to give up fewer copies
        append({strategy.lengths, strategy.rows - rows});
        holders.insert(holders.begin() + static_cast<std::ptrdiff_t>(h) + 1, strategies_.size() - 1);
      }
      const auto first = std::find(strategy.lengths.begin(), strategy.lengths.end(), length);
      strategy.lengths.erase(first, first + each);
      strategy.rows = rows;
      strategies_[holders[h]] = std::move(strategy);
      surplus -= each * rows;
    }
  }

 private:
  void append(Strategy strategy) {
    for (std::size_t i = 0; i < strategy.lengths.size(); ++i) {
      if (i > 0 && strategy.lengths[i] == strategy.lengths[i - 1]) continue;
      holders_[strategy.lengths[i]].push_back(strategies_.size());
    }
    strategies_.push_back(std::move(strategy));
  }

  std::vector<Strategy> strategies_;
  std::map<Length, std::vector<std::size_t>> holders_;  // length -> strategies that hold it, or held it before take_out()
};

}  // namespace

void cover_repair(PackingPlan& plan, const LengthHistogram& items) {
  Repair repair(plan);
  std::map<Length, std::int64_t> missing;  // items without a place; below 0 where there are more places than items
  for (const LengthCount& entry : items.counts()) {
    if (entry.length > 0) missing[static_cast<Length>(entry.length)] = entry.count;
  }
  for (const auto& [length, places] : repair.places()) missing[length] -= places;

  LengthHistogram left;
  for (auto entry = missing.rbegin(); entry != missing.rend(); ++entry) {
    if (entry->second < 0) repair.take_out(entry->first, -entry->second);
    if (entry->second > 0) left.add(entry->first, entry->second);
  }

  PackerOptions options;
  options.row_tokens = plan.row_tokens;
  options.max_segments = plan.max_segments;
  StrategyTree tree;
  LongestFirst open(plan.row_tokens);
  PackingPlan whole;  // strategies that nothing can be added to
  for (const Strategy& strategy : repair.strategies()) {
    if (strategy.lengths.empty()) continue;
    const auto segments = static_cast<std::int32_t>(strategy.lengths.size());
    const Length free = plan.row_tokens - strategy.slots();
    if (free == 0 || segments == plan.max_segments) {
      whole.add(strategy.lengths, strategy.rows);
    } else {
      open.put({strategy.rows, 0, free, segments, tree.root(strategy.lengths)});
    }
  }
  PackingPlan filled = fill_decreasing(left, options, {}, Copies::fitting, std::move(open), std::move(tree));
  for (std::int64_t s = 0; s < whole.strategies(); ++s) filled.add(whole.strategy(s), whole.count[static_cast<std::size_t>(s)]);

  filled.canonicalize();
  plan.lengths = std::move(filled.lengths);
  plan.begin = std::move(filled.begin);
  plan.count = std::move(filled.count);
}

}  // namespace shardpack
