// The same items in rows of fewer slots: what `optimal` works on where rows are too long for it to know every length apart.
#pragma once

#include <cstdint>
#include <vector>

#include "shardpack/length_histogram.h"
#include "shardpack/packing_plan.h"
#include "shardpack/types.h"

namespace shardpack {

/// Lengths in units of `granularity` slots and rows of floor(row_tokens / granularity) units. Time and memory: O(distinct
/// lengths).
class CoarseLengths {
 public:
  /// \param items  lengths 1..row_tokens, in slots  \param granularity  1..row_tokens
  CoarseLengths(const LengthHistogram& items, Length row_tokens, std::int32_t granularity);

  Length row_units() const { return row_units_; }

  /// Lengths rounded down, those below one unit left out: what fits a row fits the coarse one, so bounds of these items are
  /// bounds of the real ones.
  LengthHistogram rounded_down() const;

  /// Lengths rounded up: a plan of these items is one of the real ones. An item that only just fits a row takes all its units.
  LengthHistogram rounded_up() const;

  /// \param coarse  an exact cover of rounded_up()
  /// \return the real items in its rows, the longest of a coarse length in its first strategies
  PackingPlan expanded(const PackingPlan& coarse) const;

 private:
  Length rounded_up(std::int64_t length) const;

  std::vector<LengthCount> items_;
  Length row_units_;
  std::int32_t granularity_;
};

}  // namespace shardpack
