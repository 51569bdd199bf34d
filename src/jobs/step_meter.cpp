#include "jobs/step_meter.h"

#include <algorithm>
#include <cmath>

#include "exec/ordered_map.h"
#include "jobs/tail.h"

namespace shardpack {

StepMeter::StepMeter(const PackOptions& options)
    : shape_(options.shape),
      row_tokens_(options.policy.row_tokens),
      wanted_(options.shape.step_rows() > 1 || options.balance_attention || options.order == RowOrder::balanced),
      exchanged_(options.balance_attention),
      planned_(shape_),
      written_(shape_),
      waits_(shape_) {}

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
    PolicyResult policy = apply_policy(index, partitions[p].first, partitions[p].last, options.policy);
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
  return figures;
}

}  // namespace shardpack
