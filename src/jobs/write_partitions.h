// The rows of partitions into shards: what is planned becomes files.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "io/staged_output.h"
#include "jobs/partition_record.h"
#include "jobs/partitions.h"
#include "jobs/planning.h"
#include "jobs/rewrite.h"
#include "jobs/step_meter.h"
#include "jobs/tail.h"
#include "shardpack/sequence_source.h"

namespace shardpack {

/// The rows of a partition, and what its policy leaves out: all that lengths alone decide.
struct PreparedPartition {
  std::vector<RemovedRange> removed;
  OrderedRows rows;
  PartitionCosts costs;  ///< where they are wanted
};
/// \param policy    what it leaves of the partition's sequences
/// \param planning  with the partition's own AssignOptions
PreparedPartition prepare_partition(PolicyResult policy, const SequenceIndex& index, const Partition& partition,
                                    const PlanningOptions& planning, bool wants_costs);

/// What the writing of all partitions shares.
struct WritingJob {
  StagedOutput& staged;
  const SequenceSource& source;
  std::vector<Partition>& partitions;  ///< the plans of those that are written become what was written
  PlanningOptions planning;
  const RewriteSettings& settings;
  const PackOptions& options;
  TailRows tail;
  const RunContext& context;
  std::optional<PreparedPartition>& first;  ///< partition 0 where it has been prepared; taken when it is written
};

/// All rows, partition by partition; completes the manifest.
void write_dataset(const WritingJob& job, StepMeter& steps, Manifest& manifest);

/// Which of the partitions part `index` of `of` does: [first, last), neighbours, as many as the other parts' or one fewer.
struct Share {
  std::size_t first = 0, last = 0;
};
Share share_of(const PackOptions::Part& part, std::size_t partitions);

/// What it would do; nothing is written yet.
PartFigures planned_part(const PackOptions::Part& part, const std::vector<Partition>& partitions);

/// What part job.options.part reads of the inputs.
std::vector<SequenceRanges> sequences_of_part(const WritingJob& job);

/// Its partitions, each noted in a journal of its own. Under options.resume those that are finished and whole stay as they are.
PartFigures write_part(const WritingJob& job, const RunIdentity& identity);

}  // namespace shardpack
