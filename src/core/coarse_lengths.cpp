#include "core/coarse_lengths.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/checked.h"

namespace shardpack {
namespace {

using Runs = std::vector<LengthCount>;  // items side by side, equal ones counted

/// Takes the last `items` of `from`, so that the last of them comes first.
Runs take(Runs& from, std::int64_t items) {
  Runs taken;
  while (items > 0) {
    ensure(!from.empty(), "a coarse plan places no more items than there are");
    LengthCount& last = from.back();
    const std::int64_t now = std::min(items, last.count);
    taken.push_back({last.length, now});
    items -= now;
    last.count -= now;
    if (last.count == 0) from.pop_back();
  }
  return taken;
}

/// Adds `rows` rows to `plan`; row r holds the r-th item of each of `places`.
void add_rows(PackingPlan& plan, const std::vector<Runs>& places, std::int64_t rows) {
  std::vector<std::size_t> run(places.size(), 0);
  std::vector<std::int64_t> used(places.size(), 0);  // of the run
  std::vector<Length> lengths(places.size());
  for (std::int64_t now = 0; rows > 0; rows -= now) {
    now = rows;
    for (std::size_t p = 0; p < places.size(); ++p) {
      const LengthCount& items = places[p][run[p]];
      lengths[p] = static_cast<Length>(items.length);
      now = std::min(now, items.count - used[p]);
    }
    for (std::size_t p = 0; p < places.size(); ++p) {
      used[p] += now;
      if (used[p] < places[p][run[p]].count) continue;
      ++run[p];
      used[p] = 0;
    }
    std::sort(lengths.begin(), lengths.end(), std::greater<>());
    plan.add(lengths, now);
  }
}

}  // namespace

CoarseLengths::CoarseLengths(const LengthHistogram& items, Length row_tokens, std::int32_t granularity)
    : items_(items.counts()), row_units_(row_tokens / granularity), granularity_(granularity) {}

LengthHistogram CoarseLengths::rounded_down() const {
  LengthHistogram coarse;
  for (const LengthCount& items : items_) {
    if (items.length >= granularity_) coarse.add(items.length / granularity_, items.count);
  }
  return coarse;
}

Length CoarseLengths::rounded_up(std::int64_t length) const {
  return static_cast<Length>(std::min<std::int64_t>(ceil_div(length, granularity_), row_units_));
}

LengthHistogram CoarseLengths::rounded_up() const {
  LengthHistogram coarse;
  for (const LengthCount& items : items_) coarse.add(rounded_up(items.length), items.count);
  return coarse;
}

PackingPlan CoarseLengths::expanded(const PackingPlan& coarse) const {
  std::vector<Runs> open(static_cast<std::size_t>(row_units_) + 1);  // ascending, by coarse length
  for (const LengthCount& items : items_) open[static_cast<std::size_t>(rounded_up(items.length))].push_back(items);
  PackingPlan plan;
  for (std::int64_t s = 0; s < coarse.strategies(); ++s) {
    const std::int64_t rows = coarse.count[static_cast<std::size_t>(s)];
    std::vector<Runs> places;
    for (const Length length : coarse.strategy(s)) places.push_back(take(open[static_cast<std::size_t>(length)], rows));
    add_rows(plan, places, rows);
  }
  return plan;
}

}  // namespace shardpack
