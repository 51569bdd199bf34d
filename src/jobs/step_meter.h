// What pack tells of optimizer steps: how many, and how long their ranks wait for each other.
#pragma once

#include <optional>

#include "jobs/partitions.h"
#include "jobs/planning.h"
#include "shardpack/jobs.h"
#include "shardpack/row_balance.h"

namespace shardpack {

/// Loss tokens of steps, from those of the dataset's rows in turn.
class LossMeter {
 public:
  explicit LossMeter(const TrainingShape& shape) : shape_(shape) {}

  void add(std::int64_t row_tokens);

  std::optional<StepLoss> finish() const;  ///< nothing where no step is whole

 private:
  TrainingShape shape_;
  std::int64_t rows_ = 0, steps_ = 0;
  std::int64_t rank_ = 0, step_ = 0, least_of_rank_ = 0;  // since the last rank's rows, or step, were complete
  StepLoss sums_;                                         // mean: the sum over steps
};

/// The shape that a dataset was packed for.
TrainingShape training_shape_of(const Manifest& manifest);

/// Fed with the rows of each partition in turn, it tells the figures of the whole dataset.
class StepMeter {
 public:
  explicit StepMeter(const PackOptions& options);

  bool wanted() const { return wanted_; }  ///< do the options say anything of steps?

  /// \param rows  as written, those that the tail leaves out taken out; \param costs  of assign_partition()
  void add(const OrderedRows& rows, const PartitionCosts& costs, const AssignOptions& options);

  /// The rows of all partitions, where nothing is written.
  void add_unwritten(const std::vector<Partition>& partitions, const SequenceIndex& index, PlanningOptions options,
                     const RunContext& context);

  LossMeter& loss() { return loss_; }  ///< to be fed with all rows that are written, where a column tells their loss tokens

  /// Nothing when it is not wanted. `manifest` has the rows that the tail adds.
  std::optional<StepFigures> finish(const Manifest& manifest) const;

 private:
  /// Of one composition of the rows, in two orders.
  struct Orders {
    explicit Orders(const TrainingShape& shape) : shuffled(shape), balanced(shape) {}
    void add(const std::vector<std::int64_t>& costs, std::int64_t kept_rows, const AssignOptions& options);
    StepBalance balance() const;

    RankWaits shuffled, balanced;
    double rows = 0, sum = 0, squares = 0;  // of costs
  };

  TrainingShape shape_;
  Length row_tokens_;
  bool wanted_, exchanged_;
  Orders planned_, written_;
  RankWaits waits_;  // as written
  LossMeter loss_;
  LengthHistogram segments_;
  std::int64_t rows_ = 0;
};

}  // namespace shardpack
