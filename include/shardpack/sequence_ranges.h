// A set of sequences as ascending runs of them: what a partition holds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shardpack/types.h"

namespace shardpack {

/// Sequences [first, last).
struct SequenceRange {
  SequenceId first = 0, last = 0;

  std::int64_t count() const { return last - first; }
  friend bool operator==(const SequenceRange&, const SequenceRange&) = default;
};

class SequenceRanges {
 public:
  SequenceRanges() = default;
  SequenceRanges(SequenceId first, SequenceId last) { append({first, last}); }

  /// Add a run that begins at or after the end of the last one; runs that touch become one, an empty one adds nothing.
  void append(SequenceRange run);

  std::span<const SequenceRange> runs() const { return runs_; }
  std::int64_t count() const { return before_.back(); }
  SequenceId first() const { return runs_.front().first; }  ///< of a set that is not empty
  SequenceId last() const { return runs_.back().last; }     ///< one past the last

  /// How many of the set come before `sequence`; -1 for one that is not in it. O(log runs).
  std::int64_t rank(SequenceId sequence) const;
  bool contains(SequenceId sequence) const { return rank(sequence) >= 0; }

  friend bool operator==(const SequenceRanges&, const SequenceRanges&) = default;

 private:
  std::vector<SequenceRange> runs_;
  std::vector<std::int64_t> before_{0};  // members before each run, and all of them
};

}  // namespace shardpack
