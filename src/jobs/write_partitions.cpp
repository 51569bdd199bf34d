#include "jobs/write_partitions.h"

#include "base/hash.h"
#include "io/plan_file.h"
#include "jobs/index_views.h"
#include "jobs/pack_manifest.h"
#include "jobs/removed_log.h"

namespace shardpack {

namespace {

/// Writes `rows` as the next shards of partition `number` and lists them in its entry.
void write_rows(Rewriter& rewriter, const OrderedRows& rows, std::size_t number, ManifestPartition& entry) {
  const std::int64_t first = rewriter.shards_written();
  rewriter.write(rows, static_cast<std::int32_t>(number), static_cast<std::int64_t>(entry.shards.size()));
  for (std::int64_t shard = first; shard < rewriter.shards_written(); ++shard) entry.shards.push_back(rewriter.shard_name(shard));
}

/// A small file beside the manifest, and its entry.
void write_listed(const StagedOutput& staged, Manifest& manifest, const std::string& file_name, const std::string& text) {
  staged.write_file(file_name, text);
  manifest.files.push_back({file_name, static_cast<std::int64_t>(text.size()), hash_hex(text)});
}

}  // namespace

void write_dataset(StagedOutput& staged, const SequenceSource& source, std::vector<Partition>& partitions,
                   PlanningOptions planning, const RewriteSettings& settings, const PackOptions& options, const TailRows& tail,
                   StepMeter& steps, Manifest& manifest, const RunContext& context) {
  const SequenceIndex& index = source.index();
  const DatasetKeys keys(lengths_of(index).max_length(), source.columns());
  RewriteSettings rewriting = settings;
  if (steps.wanted() && !manifest.loss_column.empty())
    rewriting.row_loss = [&steps](std::int64_t tokens) { steps.loss().add(tokens); };
  Rewriter rewriter(source, keys, rewriting, staged, context);
  RemovedLog removed(source, keys, settings.single_segments, staged.folder(), context);
  OrderedRows head;  // the dataset's first rows, for --tail repeat

  context.progress.begin_stage("packing", manifest.rows, "rows");
  for (std::size_t p = 0; p < partitions.size(); ++p) {
    Partition& partition = partitions[p];
    planning.assign.partition = static_cast<std::int32_t>(p);
    PolicyResult policy = apply_policy(index, partition.first, partition.last, planning.policy);
    removed.add(policy.removed);
    PartitionCosts costs;
    OrderedRows rows = assign_partition(std::move(policy.items), index, partition, planning, steps.wanted() ? &costs : nullptr);
    if (planning.balance_attention) static_cast<PartitionPlan&>(partition) = derive_plans(rows, index, partition);
    if (partition.dropped_rows > 0) {
      const DroppedRows dropped = drop_last_rows(rows, index, partition);
      removed.add(dropped.ranges);
      count_dropped(dropped, manifest);
    }
    if (options.tail == Tail::repeat) keep_head(head, rows, tail.extra);
    steps.add(rows, costs, planning.assign);
    planning.assign.first_row += rows.rows.rows();

    ManifestPartition entry{.first_sequence = partition.first,
                            .sequences = partition.last - partition.first,
                            .rows = partition.plan.rows(),
                            .bound = partition.plan.bound.rows,
                            .plan = plan_file_name(p),
                            .shards = {},
                            .groups = groups_of(partition)};
    write_rows(rewriter, rows, p, entry);
    write_listed(staged, manifest, entry.plan,
                 partition.groups.empty() ? to_json(partition.plan, covered_items(partition.plan))
                                          : to_json(options.read.group_column, partition.groups));
    manifest.partitions.push_back(std::move(entry));
  }

  // Extra rows lie in a shard of their own behind the last partition's, so that planned rows stay what their plans say.
  const auto planned_shards = static_cast<std::size_t>(rewriter.shards_written());
  if (tail.extra > 0) {
    const OrderedRows rows = tail_rows(head, tail.extra, options.tail);
    if (options.tail == Tail::repeat) {
      const RemovedCount repeated = count_contents(rows);
      manifest.repeated_rows = tail.extra;
      manifest.repeated_sequences = repeated.sequences;
      manifest.repeated_tokens = repeated.tokens;
    } else {
      manifest.fill_rows = tail.extra;
    }
    write_rows(rewriter, rows, partitions.size() - 1, manifest.partitions.back());
  }

  manifest.shards = rewriter.finish();
  for (std::size_t shard = 0; shard < planned_shards; ++shard) {
    manifest.packed_fingerprint += manifest.shards[shard].fingerprint;
    manifest.loss_tokens += manifest.shards[shard].loss_tokens;
    manifest.hidden_labels += manifest.shards[shard].hidden_labels;
  }
  for (ManifestFile& file : removed.finish()) manifest.files.push_back(std::move(file));
  manifest.removed_fingerprint = removed.fingerprint();
  for (std::size_t cause = 0; cause < manifest.removed.size(); ++cause)
    manifest.removed[cause].loss_tokens += removed.loss_tokens()[cause];
  context.progress.end_stage();
}

}  // namespace shardpack
