#include "jobs/write_partitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/equal_parts.h"
#include "base/hash.h"
#include "exec/ordered_map.h"
#include "io/plan_file.h"
#include "io/trainer_files.h"
#include "io/whole_shards.h"
#include "jobs/index_views.h"
#include "jobs/pack_manifest.h"
#include "jobs/removed_log.h"

namespace shardpack {

namespace {

/// Of the ids and columns that are read; nothing is where the rows hold no tokens.
DatasetKeys keys_of(const WritingJob& job) {
  const bool reads = job.settings.output.holds_tokens();
  return DatasetKeys(reads ? job.source.index().longest_sequence() : 0, job.source.columns());
}
const DatasetKeys* if_read(const WritingJob& job, const DatasetKeys& keys) {
  return job.settings.output.holds_tokens() ? &keys : nullptr;
}

/// Writes `rows` as the next shards of partition `number` and lists them in its entry.
void write_rows(Rewriter& rewriter, const OrderedRows& rows, std::size_t number, ManifestPartition& entry) {
  const std::int64_t first = rewriter.shards_written();
  rewriter.write(rows, static_cast<std::int32_t>(number), static_cast<std::int64_t>(entry.shards.size()));
  for (std::int64_t shard = first; shard < rewriter.shards_written(); ++shard) entry.shards.push_back(rewriter.shard_name(shard));
}

/// Rows of the dataset before a partition.
std::int64_t rows_before(const std::vector<Partition>& partitions, std::size_t number) {
  std::int64_t rows = 0;
  for (std::size_t p = 0; p < number; ++p) rows += partitions[p].kept_rows();
  return rows;
}

/// With the partition's own AssignOptions. The writing of partitions changes plans, but not how many rows they have.
PlanningOptions planning_of(const WritingJob& job, std::size_t number) {
  PlanningOptions planning = job.planning;
  planning.assign.partition = static_cast<std::int32_t>(number);
  planning.assign.first_row = rows_before(job.partitions, number);
  return planning;
}

}  // namespace

PreparedPartition prepare_partition(PolicyResult policy, const SequenceIndex& index, const Partition& partition,
                                    const PlanningOptions& planning, bool wants_costs) {
  PreparedPartition prepared;
  prepared.removed = std::move(policy.removed);
  prepared.rows = assign_partition(std::move(policy.items), index, partition, planning, wants_costs ? &prepared.costs : nullptr);
  return prepared;
}

namespace {

PreparedPartition prepare(const WritingJob& job, std::size_t number, const PlanningOptions& planning, bool wants_costs) {
  const SequenceIndex& index = job.source.index();
  const Partition& partition = job.partitions[number];
  return prepare_partition(apply_policy(index, partition.sequences, planning.policy), index, partition, planning, wants_costs);
}

/// All partitions, each prepared while that before it is written: if there are threads, and all sequences together are no more
/// than one partition may have, so that no more memory is needed than for that one.
class PartitionsAhead {
 public:
  PartitionsAhead(const WritingJob& job, bool wants_costs) : job_(job), wants_costs_(wants_costs) {}

  /// To be called for one after the other. \throws what preparing it throws
  PreparedPartition take(std::size_t number) {
    PreparedPartition taken = next_.valid()               ? next_.get()
                              : number == 0 && job_.first ? *std::exchange(job_.first, std::nullopt)
                                                          : prepare(job_, number, planning_of(job_, number), wants_costs_);
    const std::size_t next = number + 1;
    if (goes_ahead_ && next < job_.partitions.size()) {
      next_ = std::async(std::launch::async | std::launch::deferred, [this, next, planning = planning_of(job_, next)] {
        return prepare(job_, next, planning, wants_costs_);
      });
    }
    return taken;
  }

 private:
  const WritingJob& job_;
  const bool wants_costs_;
  const bool goes_ahead_ = !job_.context.pool.inline_only() && job_.context.memory_limit == 0 &&
                           job_.source.index().sequences() <= kPartitionSequences;
  std::future<PreparedPartition> next_;  // waits for it on destruction
};

/// Writes the rows of a partition and its part of the log of what is removed. `head` collects the dataset's first rows, for
/// --tail repeat; the last partition's extra rows are made of them, in a shard of their own behind its others, so that planned
/// rows stay what their plans say.
PartitionRecord write_partition(const WritingJob& job, std::size_t number, PreparedPartition prepared, Rewriter& rewriter,
                                RemovedLog& removed, OrderedRows& head, StepMeter* steps) {
  const SequenceIndex& index = job.source.index();
  Partition& partition = job.partitions[number];
  removed.add(prepared.removed);
  OrderedRows& rows = prepared.rows;
  if (job.planning.balance_attention) static_cast<PartitionPlan&>(partition) = derive_plans(rows, index, partition);
  PartitionRecord record;
  if (partition.dropped_rows > 0) {
    record.dropped = drop_last_rows(rows, index, partition);
    removed.add(record.dropped.ranges);
  }
  if (job.options.tail == Tail::repeat) keep_head(head, rows, job.tail.extra);
  if (steps != nullptr && steps->wanted()) steps->add(rows, prepared.costs, planning_of(job, number).assign);

  record.entry = {.sequences = partition.sequences,
                  .rows = partition.plan.rows(),
                  .bound = partition.plan.bound.rows,
                  .plan = plan_file_name(number),
                  .shards = {},
                  .groups = groups_of(partition)};
  write_rows(rewriter, rows, number, record.entry);
  record.planned_shards = std::ssize(record.entry.shards);
  const std::string plan = partition.groups.empty() ? to_json(partition.plan, covered_items(partition.plan))
                                                    : to_json(job.options.read.group_column, partition.groups);
  job.staged.write_file(record.entry.plan, plan);
  record.plan = {record.entry.plan, static_cast<std::int64_t>(plan.size()), hash_hex(plan)};
  if (job.tail.extra > 0 && number + 1 == job.partitions.size()) {
    rows = tail_rows(head, job.tail.extra, job.options.tail);
    if (job.options.tail == Tail::repeat) record.repeated = count_contents(rows);
    write_rows(rewriter, rows, number, record.entry);
  }
  return record;
}

}  // namespace

void write_dataset(const WritingJob& job, StepMeter& steps, Manifest& manifest) {
  const DatasetKeys keys = keys_of(job);
  RewriteSettings settings = job.settings;
  if (steps.wanted() && !manifest.loss_column.empty())
    settings.row_loss = [&steps](std::int64_t tokens) { steps.loss().add(tokens); };
  Rewriter rewriter(job.source, keys, settings, job.staged, job.context);
  RemovedLog removed(job.source, if_read(job, keys), settings.single_segments, job.staged.folder(), job.context);
  OrderedRows head;
  std::vector<PartitionRecord> records;
  job.context.progress.begin_stage("packing", manifest.rows, "rows");
  PartitionsAhead prepared(job, steps.wanted());
  for (std::size_t p = 0; p < job.partitions.size(); ++p)
    records.push_back(write_partition(job, p, prepared.take(p), rewriter, removed, head, &steps));
  std::vector<ManifestShard> shards = rewriter.finish();
  add_partitions(manifest, records, std::move(shards), job.tail, job.options.tail, removed.finish());
  job.context.progress.end_stage();
}

// ---- parts ------------------------------------------------------------------------------------------------------------------

namespace {

std::string part_text(const PackOptions::Part& part) { return fmt::format("{}/{}", part.index, part.of); }

std::int64_t shards_of(const WritingJob& job, std::size_t number) {
  const std::int64_t extra = number + 1 == job.partitions.size() ? job.settings.shards_of(job.tail.extra) : 0;
  return job.settings.shards_of(job.partitions[number].kept_rows()) + extra;
}

/// What the names of the partition's trainer files begin with.
std::vector<std::string> trainer_stems(const WritingJob& job, std::size_t number, std::int64_t first_shard) {
  std::vector<std::string> stems;
  if (job.settings.output.native()) return stems;
  for (std::int64_t shard = 0; shard < shards_of(job, number); ++shard)
    stems.push_back(trainer_file_name(job.settings.output, first_shard + shard, job.settings.shards));
  return stems;
}

bool needs_head(const WritingJob& job, const Share& share) {
  return job.options.tail == Tail::repeat && job.tail.extra > 0 && share.last == job.partitions.size() &&
         share.first < share.last;
}

/// The first rows of the dataset, as far as they lie before partition `number`.
OrderedRows head_before(const WritingJob& job, std::size_t number) {
  OrderedRows head;
  for (std::size_t p = 0; p < number && head.rows.rows() < job.tail.extra; ++p)
    keep_head(head, prepare(job, p, planning_of(job, p), false).rows, job.tail.extra);
  return head;
}

/// What was noted of a partition, if the files beside its shards are whole too.
std::optional<PartitionRecord> finished_record(const WritingJob& job, const std::string& noted, std::size_t number) {
  if (noted.empty()) return std::nullopt;
  const PartitionRecord record = partition_record_from_json(noted, plan_file_name(number));
  const bool whole = is_whole(fmt::format("{}/{}", job.staged.folder(), record.plan.name), record.plan) &&
                     (!record.removed.file || is_whole(job.staged.parts().file(record.removed.file->name), *record.removed.file));
  return whole ? std::optional(record) : std::nullopt;
}

}  // namespace

Share share_of(const PackOptions::Part& part, std::size_t partitions) {
  const auto boundary = [&](std::int64_t index) {
    return static_cast<std::size_t>(part_begin(static_cast<std::int64_t>(partitions), index, part.of));
  };
  return {boundary(part.index - 1), boundary(part.index)};
}

PartFigures planned_part(const PackOptions::Part& part, const std::vector<Partition>& partitions) {
  const Share share = share_of(part, partitions.size());
  PartFigures figures{.index = part.index, .of = part.of};
  figures.first_partition = static_cast<std::int64_t>(share.first);
  figures.last_partition = static_cast<std::int64_t>(share.last);
  for (std::size_t p = share.first; p < share.last; ++p) figures.rows += partitions[p].kept_rows();
  return figures;
}

std::vector<SequenceRanges> sequences_of_part(const WritingJob& job) {
  const Share share = share_of(*job.options.part, job.partitions.size());
  std::vector<SequenceRanges> sequences;
  for (std::size_t p = share.first; p < share.last; ++p) sequences.push_back(job.partitions[p].sequences);
  if (needs_head(job, share)) {
    for (const Item& item : head_before(job, share.first).items)
      sequences.emplace_back(item.sequence, item.sequence + item.segments);
  }
  return sequences;
}

PartFigures write_part(const WritingJob& job, const RunIdentity& identity) {
  const Share share = share_of(*job.options.part, job.partitions.size());
  PartFigures figures = planned_part(*job.options.part, job.partitions);
  const DatasetKeys keys = keys_of(job);
  OrderedRows head = needs_head(job, share) ? head_before(job, share.first) : OrderedRows();
  RewriteSettings settings = job.settings;
  for (std::size_t p = 0; p < share.first; ++p) settings.shards_before += shards_of(job, p);
  job.context.progress.begin_stage("packing", std::exchange(figures.rows, 0), "rows");
  for (std::size_t p = share.first; p < share.last; ++p) {
    throw_if_stopped(job.context.stop);
    const std::string noted = job.staged.begin_partition(static_cast<std::int64_t>(p), identity, job.options.resume,
                                                         trainer_stems(job, p, settings.shards_before), job.context);
    const std::int64_t shards = shards_of(job, p);
    if (const auto finished = finished_record(job, noted, p)) {
      ++figures.kept_partitions;
      figures.rows += finished->entry.rows;
      // The head of a dataset whose last partition is redone was not collected from this one.
      if (needs_head(job, share) && head.rows.rows() < job.tail.extra) head = head_before(job, p + 1);
      job.context.progress.advance(finished->entry.rows);
    } else {
      Rewriter rewriter(job.source, keys, settings, job.staged, job.context);
      RemovedLog removed(job.source, if_read(job, keys), settings.single_segments, job.staged.parts().file(""), job.context,
                         fmt::format("removed-{:05}.csv", p));
      PartitionRecord record =
          write_partition(job, p, prepare(job, p, planning_of(job, p), false), rewriter, removed, head, nullptr);
      const std::vector<ManifestShard> written = rewriter.finish();
      ensure(std::ssize(written) == shards, "as many shards are written as were counted");
      record.removed = removed.finish();
      record.part = part_text(*job.options.part);
      job.source.check_unchanged();  // what was read of it is what was scanned
      job.staged.partition_finished(to_json(record));
      figures.rows += record.entry.rows;
      for (const ManifestShard& shard : written) {
        for (const ManifestFile& file : shard.files) figures.bytes_written += file.bytes;
        for (const ManifestFile& file : shard.trainer_files) figures.bytes_written += file.bytes;
      }
    }
    figures.shards += shards;
    settings.shards_before += shards;
  }
  job.context.progress.end_stage();
  return figures;
}

}  // namespace shardpack
