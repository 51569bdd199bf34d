// The order of rows in which the ranks of a step do not wait for each other, and how long they wait in any order.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/batching/steps.h"
#include "shardpack/row_balance.h"

namespace shardpack {

namespace {

/// Deal the rows of a micro-step, ascending in cost, to the ranks: the next dearest `world` rows go one to each rank, the dearest
/// of them to the rank that has least. So the sums differ by no more than the costs within such a round.
void deal_to_ranks(std::span<std::int32_t> rows, std::span<const std::int64_t> costs, const TrainingShape& shape) {
  const auto world = static_cast<std::size_t>(shape.world), each = static_cast<std::size_t>(shape.micro_batch);
  if (each == 1) return;
  const std::vector<std::int32_t> ascending(rows.begin(), rows.end());
  std::vector<std::pair<std::int64_t, std::size_t>> ranks(world);  // cost so far, rank
  for (std::size_t rank = 0; rank < world; ++rank) ranks[rank] = {0, rank};
  for (std::size_t i = 0; i < each; ++i) {
    std::sort(ranks.begin(), ranks.end());
    for (std::size_t k = 0; k < world; ++k) {
      const std::int32_t row = ascending[ascending.size() - 1 - (i * world + k)];
      ranks[k].first += costs[static_cast<std::size_t>(row)];
      rows[ranks[k].second * each + i] = row;
    }
  }
}

}  // namespace

std::vector<std::int64_t> row_costs(const Assignment& rows, const std::vector<Item>& items) {
  std::vector<std::int64_t> costs(static_cast<std::size_t>(rows.rows()), 0);
  for (std::size_t r = 0; r < costs.size(); ++r) {
    for (const std::int32_t i : rows.row(static_cast<std::int64_t>(r))) {
      const std::int64_t length = items[static_cast<std::size_t>(i)].length();
      costs[r] += length * length;
    }
  }
  return costs;
}

std::vector<std::int32_t> shuffled_order(std::int64_t rows, const AssignOptions& options) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  RandomStream(options.seed, RandomPurpose::row_order, static_cast<std::uint32_t>(options.partition)).shuffle(std::span(order));
  return order;
}

std::vector<std::int32_t> balanced_order(std::span<const std::int64_t> costs, const AssignOptions& options) {
  const auto cost = [&](std::int32_t row) { return costs[static_cast<std::size_t>(row)]; };
  const auto rows = static_cast<std::int64_t>(costs.size());
  std::vector<std::int32_t> ascending = shuffled_order(rows, options);
  std::ranges::stable_sort(ascending, {}, cost);

  // Rows that share a step with others come from the middle, between whole steps of cheaper and of dearer ones.
  const std::int64_t step = options.shape.step_rows();
  const std::int64_t head = std::min(rows, step - options.first_row % step), tail = (rows - head) % step;
  const auto middle = ascending.begin() + (rows - head - tail) / step / 2 * step;
  const auto after_head = middle + head, after_tail = after_head + tail;
  std::vector<std::int32_t> whole(ascending.begin(), middle);
  whole.insert(whole.end(), after_tail, ascending.end());

  std::vector<std::int32_t> order(middle, after_head);
  order.reserve(ascending.size());
  std::vector<std::uint64_t> keys;
  keys.reserve(whole.size());
  for (const std::int32_t row : whole) keys.push_back(static_cast<std::uint64_t>(cost(row)));
  const RandomStream stream(options.seed, RandomPurpose::row_groups, static_cast<std::uint32_t>(options.partition));
  for (const std::uint32_t place : order_groups(keys, step, false, stream)) order.push_back(whole[place]);
  order.insert(order.end(), after_head, after_tail);

  const std::int64_t micro_step = options.shape.micro_step_rows();
  for (std::int64_t at = (micro_step - options.first_row % micro_step) % micro_step; at + micro_step <= rows; at += micro_step) {
    deal_to_ranks(std::span(order).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(micro_step)), costs,
                  options.shape);
  }
  return order;
}

RankWaits::RankWaits(const TrainingShape& shape, std::int64_t first_row) : shape_(shape) {
  const std::int64_t micro_step = shape.micro_step_rows();
  skip_ = (micro_step - first_row % micro_step) % micro_step;
}

void RankWaits::add(std::int64_t cost) {
  if (skip_ > 0) {
    --skip_;
    return;
  }
  rank_ += static_cast<double>(cost);
  total_ += static_cast<double>(cost);
  ++at_;
  if (at_ % shape_.micro_batch == 0) {
    dearest_ = std::max(dearest_, rank_);
    rank_ = 0;
  }
  if (at_ < shape_.micro_step_rows()) return;
  longest_ += dearest_;
  mean_ += total_ / static_cast<double>(shape_.world);
  ++micro_steps_;
  at_ = 0;
  dearest_ = total_ = 0;
}

double imbalance_bound(const RankWaits& waits, const TrainingShape& shape, const LengthHistogram& segments, Length row_tokens,
                       std::int64_t rows) {
  if (waits.micro_steps() == 0 || !(waits.mean() > 0)) return 1;
  const std::vector<LengthCount> counts = segments.counts();  // ascending
  const std::int64_t micro_step = shape.micro_step_rows();
  const double world = static_cast<double>(shape.world), total = waits.mean() * world;

  // Micro-steps by their dearest rank, descending. The j-th of them waits at least for the longest segment of a row that is
  // behind at most as many dearer rows as the steps before it hold, and the rows that are in no step. All but the first j hold
  // what is left when the first j hold as much as they can.
  auto longest = counts.rbegin(), filler = counts.rbegin();
  std::int64_t behind = longest == counts.rend() ? 0 : longest->count;  // rows with a segment at least as long as *longest
  std::int64_t used = 0;                                                // of *filler
  double room = 0, held = 0, waited = 0, bound = waits.mean();
  for (std::int64_t j = 0; j < waits.micro_steps(); ++j) {
    const std::int64_t row = rows - (waits.micro_steps() - j) * micro_step;
    while (longest != counts.rend() && behind <= row) {
      ++longest;
      if (longest != counts.rend()) behind += longest->count;
    }
    if (longest == counts.rend() || 2 * longest->length <= row_tokens) break;
    waited += static_cast<double>(longest->length) * static_cast<double>(longest->length);

    room += static_cast<double>(micro_step) * static_cast<double>(row_tokens);
    while (room > 0 && filler != counts.rend()) {
      const auto length = static_cast<double>(filler->length);
      const double left = static_cast<double>(filler->count - used);
      const double taken = std::min(left, std::floor(room / std::max(1.0, length)));
      held += taken * length * length;
      room -= taken * length;
      used += static_cast<std::int64_t>(taken);
      if (taken < left) break;
      ++filler;
      used = 0;
    }
    const double part = filler == counts.rend() ? 0 : room * static_cast<double>(filler->length);  // of the next segment
    bound = std::max(bound, waited + std::max(0.0, total - held - part) / world);
  }
  return bound / waits.mean();
}

}  // namespace shardpack
