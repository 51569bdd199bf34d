// A packing plan: strategies with repeat counts. It speaks of lengths (in slots) only, so it is small, diffable, and can be made
// from a histogram alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardpack/bounds.h"
#include "shardpack/certificate.h"
#include "shardpack/error.h"
#include "shardpack/group_key.h"
#include "shardpack/item.h"
#include "shardpack/length_histogram.h"
#include "shardpack/types.h"

namespace shardpack {

/// Strategies in CSR form: strategy s places lengths[begin[s] .. begin[s+1]) (slots, descending) in each of count[s] rows.
struct PackingPlan {
  std::string packer;
  Length row_tokens = 0;          ///< slots in a row
  std::int32_t max_segments = 0;  ///< segments allowed in a row, 0 = no limit
  LengthPolicy policy;            ///< the policy that the histogram was made under
  std::vector<Length> lengths;
  std::vector<std::int64_t> begin{0};
  std::vector<std::int64_t> count;
  LowerBound bound;
  Certificate certificate;  ///< of the bound, when that is of kind lp

  std::int64_t strategies() const { return static_cast<std::int64_t>(count.size()); }
  std::span<const Length> strategy(std::int64_t s) const {
    const auto at = static_cast<std::size_t>(s);
    return std::span(lengths).subspan(static_cast<std::size_t>(begin[at]), static_cast<std::size_t>(begin[at + 1] - begin[at]));
  }
  /// Append a strategy; `strategy_lengths` descending. Equal strategies may be added twice: canonicalize() merges them.
  void add(std::span<const Length> strategy_lengths, std::int64_t rows);
  /// Sort the strategies (descending lexicographic by lengths), merge equal ones, drop counts of 0: equal plans get equal bytes.
  void canonicalize();

  /// Items allowed in a row, 0 = no limit: max_segments counts segments, of which an item has policy.keep_together.
  std::int32_t item_limit() const { return max_segments == 0 ? 0 : std::max(1, max_segments / policy.keep_together); }

  std::int64_t rows() const;  ///< sum of the counts
  std::int64_t gap() const { return rows() - bound.rows; }
};

/// The plan of the items whose sequences have one value of the group column: its rows hold no others.
struct GroupPlan {
  GroupKey key;
  PackingPlan plan;
  LengthHistogram items;  ///< in slots
};

/// What the plans of all groups amount to: strategies merged, bounds added up (a sum of bounds is one, since no row is shared).
/// Packer and kind of bound are the first plan's, and so is the policy; there is no certificate.
PackingPlan merge_plans(const std::vector<GroupPlan>& groups);

struct PlanStats {
  std::int64_t items = 0, segments = 0, slots_used = 0, rows = 0, padding = 0;  ///< padding in slots
  double efficiency = 0;                                                        ///< used slots / slots, 1 for no rows
  double packing_factor = 0;                                                    ///< items / rows, 0 for no rows
  std::int64_t max_segments_in_row = 0;
};
PlanStats stats(const PackingPlan& plan);

/// The items that the plan's rows hold: for an exact cover, the histogram that was planned.
LengthHistogram covered_items(const PackingPlan& plan);

/// Does the plan place every item exactly once, within the row length and the segment limit?
/// Shares no code with any packer; always run, release builds included. Empty result = yes.
/// Length 0 in `items` is ignored. Pure; O(strategy entries + distinct lengths).
std::vector<Issue> check_exact_cover(const PackingPlan& plan, const LengthHistogram& items);

}  // namespace shardpack
