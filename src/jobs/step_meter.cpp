#include "jobs/step_meter.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "exec/ordered_map.h"
#include "jobs/tail.h"

namespace shardpack {

void LossMeter::add(std::int64_t row_tokens) {
  ++rows_;
  rank_ += row_tokens;
  step_ += row_tokens;
  if (rows_ % shape_.micro_batch == 0) {
    const bool first = rows_ % shape_.step_rows() == shape_.micro_batch % shape_.step_rows();
    least_of_rank_ = first ? rank_ : std::min(least_of_rank_, rank_);
    rank_ = 0;
  }
  if (rows_ % shape_.step_rows() != 0) return;
  sums_.mean += static_cast<double>(step_);
  sums_.least = steps_ == 0 ? step_ : std::min(sums_.least, step_);
  sums_.most = std::max(sums_.most, step_);
  sums_.least_of_rank = steps_ == 0 ? least_of_rank_ : std::min(sums_.least_of_rank, least_of_rank_);
  ++steps_;
  step_ = 0;
}

std::optional<StepLoss> LossMeter::finish() const {
  if (steps_ == 0) return std::nullopt;
  StepLoss loss = sums_;
  loss.mean /= static_cast<double>(steps_);
  return loss;
}

TrainingShape training_shape_of(const Manifest& manifest) {
  TrainingShape shape;
  const auto read = [&](std::string_view name, std::int64_t& value) {
    const auto found = std::ranges::find(manifest.options, name, &std::pair<std::string, std::string>::first);
    if (found == manifest.options.end()) return;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(found->second.data(), found->second.data() + found->second.size(), number);
    if (error == std::errc() && number >= 1 && number <= (std::int64_t{1} << 20)) value = number;
  };
  read("world", shape.world);
  read("accumulation", shape.accumulation);
  read("micro_batch", shape.micro_batch);
  return shape;
}

StepMeter::StepMeter(const PackOptions& options)
    : shape_(options.shape),
      row_tokens_(options.policy.row_tokens),
      wanted_(options.shape.step_rows() > 1 || options.balance_attention || options.order == RowOrder::balanced),
      exchanged_(options.balance_attention),
      planned_(shape_),
      written_(shape_),
      waits_(shape_),
      loss_(shape_) {}

void StepMeter::Orders::add(const std::vector<std::int64_t>& costs, std::int64_t kept_rows, const AssignOptions& options) {
  const auto feed = [&](RankWaits& waits, const std::vector<std::int32_t>& order) {
    for (std::int64_t place = 0; place < kept_rows; ++place) {
      waits.add(costs[static_cast<std::size_t>(order[static_cast<std::size_t>(place)])]);
    }
  };
  feed(shuffled, shuffled_order(std::ssize(costs), options));
  feed(balanced, balanced_order(costs, options));
  for (const std::int64_t cost : costs) {
    const auto value = static_cast<double>(cost);
    sum += value;
    squares += value * value;
  }
  rows += static_cast<double>(costs.size());
}

StepBalance StepMeter::Orders::balance() const {
  const double mean = sum / std::max(1.0, rows), variance = squares / std::max(1.0, rows) - mean * mean;
  return {.shuffled = shuffled.imbalance(),
          .balanced = balanced.imbalance(),
          .variation = mean > 0 ? std::sqrt(std::max(0.0, variance)) / mean : 0};
}

void StepMeter::add(const OrderedRows& rows, const PartitionCosts& costs, const AssignOptions& options) {
  if (!wanted_) return;
  planned_.add(costs.planned, rows.rows.rows(), options);
  if (exchanged_) written_.add(costs.written, rows.rows.rows(), options);
  for (const std::int64_t cost : row_costs(rows.rows, rows.items)) waits_.add(cost);
  for (const std::int32_t i : rows.rows.items) segments_.add(rows.items[static_cast<std::size_t>(i)].length());
  rows_ += rows.rows.rows();
}

void StepMeter::add_unwritten(const std::vector<Partition>& partitions, const SequenceIndex& index, PlanningOptions options,
                              const RunContext& context) {
  if (!wanted_) return;
  for (std::size_t p = 0; p < partitions.size(); ++p) {
    throw_if_stopped(context.stop);
    options.assign.partition = static_cast<std::int32_t>(p);
    PolicyResult policy = apply_policy(index, partitions[p].sequences, options.policy);
    PartitionCosts costs;
    OrderedRows rows = assign_partition(std::move(policy.items), index, partitions[p], options, &costs);
    keep_first_rows(rows.rows, partitions[p].kept_rows());
    add(rows, costs, options.assign);
    options.assign.first_row += rows.rows.rows();
  }
}

std::optional<StepFigures> StepMeter::finish(const Manifest& manifest) const {
  if (!wanted_) return std::nullopt;
  StepFigures figures;
  figures.shape = shape_;
  figures.steps = manifest.rows / shape_.step_rows();
  figures.rows_over = manifest.rows % shape_.step_rows();
  figures.imbalance = waits_.imbalance();
  figures.bound = imbalance_bound(waits_, shape_, segments_, row_tokens_, rows_);
  figures.planned = planned_.balance();
  if (manifest.rows > 0) {
    figures.tokens = static_cast<double>(manifest.tokens + manifest.repeated_tokens) / static_cast<double>(manifest.rows) *
                     static_cast<double>(shape_.step_rows());
  }
  if (exchanged_) figures.exchanged = written_.balance();
  if (!manifest.loss_column.empty()) figures.loss = loss_.finish();
  return figures;
}

}  // namespace shardpack
