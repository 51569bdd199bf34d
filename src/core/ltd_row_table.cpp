#include "shardpack/ltd_row_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "base/wide.h"
#include "shardpack/error.h"
#include "shardpack/ltd_schedule.h"

namespace shardpack {

void LtdRowTable::add(std::span<const RowPart> parts) {
  Length tokens = 0;
  for (const RowPart& part : parts) tokens += part.tokens;
  tokens_.push_back(tokens);
  parts_.insert(parts_.end(), parts.begin(), parts.end());
  begin_.push_back(static_cast<std::int64_t>(parts_.size()));
}

void LtdRowTable::read_in_turn(Length width) { widest_ = width; }

void LtdRowTable::read_batches(LtdBatches batches) {
  const auto fail = [](std::int64_t batch, const std::string& what) {
    throw Error(ErrorCode::bad_data, what + "; shardpack verify tells more", {}, fmt::format("batch {}", with_commas(batch)));
  };
  if (batches.batches() % batches.per_step() != 0) fail(batches.batches(), "the last step has not all its batches");
  width_.reserve(batches.rows.size());
  for (std::int64_t b = 0; b < batches.batches(); ++b) {
    const Length width = batches.width[static_cast<std::size_t>(b)];
    const std::int64_t begin = batches.begin[static_cast<std::size_t>(b)], end = begin + batches.size(b);
    if (end <= begin || begin < 0 || end > static_cast<std::int64_t>(batches.rows.size()))
      fail(b, "it is empty or runs backwards");
    for (std::int64_t i = begin; i < end; ++i) {
      const std::size_t row = batches.rows[static_cast<std::size_t>(i)];
      if (row >= tokens_.size()) fail(b, fmt::format("it holds row {} of {}", row, with_commas(stored())));
      const auto last = static_cast<std::size_t>(begin_[row + 1]);
      if (last > static_cast<std::size_t>(begin_[row]) && parts_[last - 1].begin + parts_[last - 1].tokens > width) {
        fail(b, fmt::format("it is padded to {}, but a row of it needs {} slots", width,
                            parts_[last - 1].begin + parts_[last - 1].tokens));
      }
      width_.push_back(width);
    }
    widest_ = std::max(widest_, width);
  }
  batches_ = std::move(batches);
}

LtdReads LtdRowTable::of_steps(const LtdSchedule& schedule, std::int64_t step, std::int64_t steps) const {
  if (!in_batches()) {
    const std::int64_t rows = schedule.global_batch();
    return {static_cast<std::int64_t>(static_cast<Int128>(step) * rows % cycle()), steps * rows};
  }
  const auto rows_before = [&](std::int64_t plan_step) {
    return batches_.begin[static_cast<std::size_t>(plan_step * batches_.per_step())];
  };
  const std::int64_t first = step % batches_.steps(), end = first + steps;
  return {rows_before(first), end / batches_.steps() * cycle() + rows_before(end % batches_.steps()) - rows_before(first)};
}

LtdReads LtdRowTable::of_micro_step(const LtdSchedule& schedule, std::int64_t step, std::int64_t micro) const {
  const LtdReads all = of_steps(schedule, step);
  if (!in_batches()) {
    const std::int64_t rows = schedule.micro_batch * schedule.world;
    return {(all.first + micro * rows) % cycle(), rows};
  }
  const std::int64_t batch = step % batches_.steps() * batches_.per_step() + micro * batches_.world;
  const std::int64_t first = batches_.begin[static_cast<std::size_t>(batch)];
  return {first, batches_.begin[static_cast<std::size_t>(batch + batches_.world)] - first};
}

}  // namespace shardpack
