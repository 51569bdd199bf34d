#include "shardpack/sequence_ranges.h"

#include <algorithm>

#include "base/checked.h"

namespace shardpack {

void SequenceRanges::append(SequenceRange run) {
  ensure(run.first <= run.last && (runs_.empty() || runs_.back().last <= run.first), "runs of sequences ascend");
  if (run.count() == 0) return;
  if (!runs_.empty() && runs_.back().last == run.first) {
    runs_.back().last = run.last;
    before_.back() += run.count();
    return;
  }
  runs_.push_back(run);
  before_.push_back(before_.back() + run.count());
}

std::int64_t SequenceRanges::rank(SequenceId sequence) const {
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), sequence,
                                      [](SequenceId wanted, const SequenceRange& run) { return wanted < run.first; });
  if (after == runs_.begin() || sequence >= (after - 1)->last) return -1;
  return before_[static_cast<std::size_t>(after - 1 - runs_.begin())] + sequence - (after - 1)->first;
}

}  // namespace shardpack
