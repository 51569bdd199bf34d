// The rows that a random-LTD run reads, step by step: what each one holds, and how wide the trainer makes it. Rows come in a
// cycle: after its last one the run begins again with the first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shardpack/types.h"

namespace shardpack {

struct LtdSchedule;

/// Tokens of one segment in a row; the slots between and behind are padding.
struct RowPart {
  Length begin = 0, tokens = 0;
  friend bool operator==(const RowPart&, const RowPart&) = default;
};

/// One row as it is read.
struct LtdRow {
  Length width = 0;    ///< slots: those of the dataset's rows, or what its batch is padded to
  Length tokens = 0;   ///< the sum of its parts
  bool counts = true;  ///< false: it only fills a batch (weight 0), and no token of it is progress
  std::span<const RowPart> parts;
};

/// The batches of a plan in the order of training, epoch after epoch; a micro-step is a batch for each rank.
struct LtdBatches {
  std::vector<std::int64_t> begin{0};  ///< CSR into `rows`; no batch is empty
  std::vector<std::uint32_t> rows;     ///< stored rows
  std::vector<bool> counts;            ///< one for each of `rows`; empty = all true
  std::vector<Length> width;           ///< one a batch
  std::int64_t world = 1, accumulation = 1;
  std::int64_t batch_size = 0;  ///< rows of a full batch; 0 = they differ

  std::int64_t batches() const { return static_cast<std::int64_t>(width.size()); }
  std::int64_t per_step() const { return world * accumulation; }
  std::int64_t steps() const { return batches() / per_step(); }
  std::int64_t size(std::int64_t b) const { return begin[static_cast<std::size_t>(b) + 1] - begin[static_cast<std::size_t>(b)]; }
};

/// Rows of the cycle that are read one after the other.
struct LtdReads {
  std::int64_t first = 0;  ///< in the cycle
  std::int64_t count = 0;  ///< may go round it many times
};

/// Filled in two steps: first what rows there are, then how they are read.
class LtdRowTable {
 public:
  void add(std::span<const RowPart> parts);

  /// In stored order, each `width` slots wide: row R of step S is row (S * global batch + R) mod rows, and every micro-step takes
  /// equally many.
  void read_in_turn(Length width);
  /// In the plan's order: row R of step S is the R-th row of the plan's step (S mod steps), its batches taken micro-step by
  /// micro-step and in each of them rank by rank. \throws Error{bad_data} for batches that name other rows, leave a step without
  /// all its batches, or are narrower than a row's last token
  void read_batches(LtdBatches batches);

  std::int64_t cycle() const { return batches_.batches() > 0 ? batches_.begin.back() : stored(); }
  Length widest() const { return widest_; }
  bool in_batches() const { return batches_.batches() > 0; }
  const LtdBatches& batches() const { return batches_; }

  /// \param read  modulo the cycle
  LtdRow at(std::int64_t read) const {  // called for every row of a run
    const auto place = static_cast<std::size_t>(read < cycle() ? read : read % cycle());
    const std::size_t row = in_batches() ? batches_.rows[place] : place;
    const auto first = static_cast<std::size_t>(begin_[row]), last = static_cast<std::size_t>(begin_[row + 1]);
    return {.width = in_batches() ? width_[place] : widest_,
            .tokens = tokens_[row],
            .counts = batches_.counts.empty() || batches_.counts[place],
            .parts = std::span(parts_).subspan(first, last - first)};
  }
  /// Rows of the steps [step, step + steps).
  LtdReads of_steps(const LtdSchedule& schedule, std::int64_t step, std::int64_t steps = 1) const;
  /// Rows of micro-step `micro` of `step`, over all ranks.
  LtdReads of_micro_step(const LtdSchedule& schedule, std::int64_t step, std::int64_t micro) const;

 private:
  std::int64_t stored() const { return static_cast<std::int64_t>(tokens_.size()); }

  std::vector<Length> tokens_;             // of each stored row
  std::vector<std::int64_t> begin_ = {0};  // into parts_; one entry more than stored rows
  std::vector<RowPart> parts_;
  Length widest_ = 0;
  LtdBatches batches_;         // none: in turn
  std::vector<Length> width_;  // of each row of the batches
};

}  // namespace shardpack
