// Packed rows that take equal time. Attention over a row costs the sum of its squared segment lengths, which differs several-fold
// between rows of equal fill, and data-parallel ranks wait for the slowest of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shardpack/assignment.h"
#include "shardpack/length_histogram.h"
#include "shardpack/training_shape.h"

namespace shardpack {

/// Attention cost of each row: the sum over its segments of tokens squared. Every item is one segment.
std::vector<std::int64_t> row_costs(const Assignment& rows, const std::vector<Item>& items);

// ---- order ------------------------------------------------------------------------------------------------------------------
/// The numbers of `rows` rows in the order of RowOrder::shuffled.
std::vector<std::int32_t> shuffled_order(std::int64_t rows, const AssignOptions& options);

/// The numbers of rows of these costs in the order of RowOrder::balanced: sorted by cost (equal ones as in shuffled_order()) and
/// cut into whole steps of neighbours, which are shuffled. The rows that complete a step begun before options.first_row (a whole
/// step where none is begun), and those at the end that fill none, are of middling cost: the steps that they share with another
/// partition, or with repeated rows, are balanced too. In each micro-step rows are dealt so that the sums of the ranks are
/// near-equal. Pure; O(rows log rows).
std::vector<std::int32_t> balanced_order(std::span<const std::int64_t> costs, const AssignOptions& options);

// ---- exchange ---------------------------------------------------------------------------------------------------------------
struct ExchangeOptions {
  std::int32_t keep_together = 1;  ///< items of a unit, which moves whole
  std::int32_t max_segments = 0;   ///< segments allowed in a row; 0 = as many as the deepest row has
  std::int64_t untouched = 0;      ///< so many of the dearest rows stay as they are
};

/// Bring the costs of rows together by exchanges of sets of items of equal total slots. Every row keeps its place and its slots.
/// Each exchange makes the dearer of two rows cheaper and the cheaper one dearer, by less than they differ: the largest cost
/// never rises, the smallest never falls, and ranks that draw rows at random never wait longer on average. Items of a row come
/// out by descending slots. \param groups  of each row: only rows of one group exchange; empty: all do Pure; near-linear in the
/// items.
void exchange_items(OrderedRows& rows, const ExchangeOptions& options, std::span<const std::int32_t> groups = {});

// ---- figures ----------------------------------------------------------------------------------------------------------------
/// How long ranks wait for each other, from the costs of rows in the order of training.
class RankWaits {
 public:
  /// \param first_row  rows of the dataset before the first one fed; of a micro-step begun there the rest is left out
  explicit RankWaits(const TrainingShape& shape, std::int64_t first_row = 0);

  void add(std::int64_t cost);

  std::int64_t micro_steps() const { return micro_steps_; }  ///< whole ones, of which all figures are
  double mean() const { return mean_; }                      ///< sum over them of the mean rank's cost
  /// Sum over them of the dearest rank's cost, divided by that of the mean rank's; 1 when there are none.
  double imbalance() const { return mean_ > 0 ? longest_ / mean_ : 1; }

 private:
  TrainingShape shape_;
  std::int64_t skip_ = 0;                      // rows to leave out
  std::int64_t at_ = 0;                        // place of the next row in its micro-step
  double rank_ = 0, dearest_ = 0, total_ = 0;  // of the micro-step so far
  double longest_ = 0, mean_ = 0;
  std::int64_t micro_steps_ = 0;
};

/// What no order of rows, and no other composition of them from the same segments, can bring `waits` under: a micro-step waits at
/// least for its mean rank; segments over half a row are in rows of their own, and no rows hold more attention than the longest
/// segments that fill them. \param segments  lengths of all `rows` rows' segments, in tokens
double imbalance_bound(const RankWaits& waits, const TrainingShape& shape, const LengthHistogram& segments, Length row_tokens,
                       std::int64_t rows);

}  // namespace shardpack
