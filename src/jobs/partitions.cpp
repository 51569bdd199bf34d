#include "jobs/partitions.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "base/checked.h"
#include "base/rng.h"
#include "exec/ordered_map.h"

namespace shardpack {

namespace {

/// Consecutive sequences, and their tokens.
struct Run {
  SequenceRange sequences;
  std::int64_t tokens = 0;
};

/// Whole units, as many as stay within the limits; at least one.
std::vector<Run> cut_runs(const SequenceIndex& index, std::int64_t most_tokens, std::int64_t most_sequences,
                          std::int32_t keep_together) {
  std::vector<Run> runs;
  Run open;
  for (const SourceFile& file : index.files()) {
    const std::vector<std::int64_t>& begin = file.record_begin;
    for (auto record = begin.begin(); begin.end() - record > keep_together;) {
      // The first boundary that is too far, if not for the tokens then for the sequences.
      const auto beyond = std::upper_bound(record, begin.end(), most_tokens - open.tokens,
                                           [&](std::int64_t tokens, std::int64_t end) { return tokens < end - *record; });
      std::int64_t units = std::min<std::int64_t>(beyond - record - 1, most_sequences - open.sequences.count()) / keep_together;
      if (units <= 0 && open.sequences.count() > 0) {
        runs.push_back(open);
        open = {{open.sequences.last, open.sequences.last}, 0};
        continue;
      }
      units = std::max<std::int64_t>(units, 1);
      const auto end = record + units * keep_together;
      open.sequences.last += units * keep_together;
      open.tokens += *end - *record;
      record = end;
    }
  }
  if (open.sequences.count() > 0) runs.push_back(open);
  return runs;
}

/// The blocks in a seeded order, as many to each partition as stay within the limits.
std::vector<Partition> deal(std::vector<Run> blocks, const PartitionCut& cut) {
  RandomStream(cut.seed, RandomPurpose::partition_order).shuffle(std::span(blocks));
  std::vector<Partition> partitions;
  for (auto first = blocks.begin(); first != blocks.end();) {
    std::int64_t tokens = 0, sequences = 0;
    auto last = first;
    while (last != blocks.end() && (last == first || (tokens + last->tokens <= cut.tokens &&
                                                      sequences + last->sequences.count() <= kPartitionSequences))) {
      tokens += last->tokens;
      sequences += last->sequences.count();
      ++last;
    }
    // Inside a partition sequences keep the order of the input.
    std::sort(first, last, [](const Run& a, const Run& b) { return a.sequences.first < b.sequences.first; });
    Partition& partition = partitions.emplace_back();
    for (; first != last; ++first) partition.sequences.append(first->sequences);
  }
  return partitions;
}

}  // namespace

std::vector<Partition> cut_partitions(const SequenceIndex& index, const PartitionCut& cut) {
  if (cut.order == PartitionOrder::shuffled) {
    return deal(cut_runs(index, cut.tokens / kBlocksAPartition, kPartitionSequences / kBlocksAPartition, cut.keep_together), cut);
  }
  std::vector<Partition> partitions;
  for (const Run& run : cut_runs(index, cut.tokens, kPartitionSequences, cut.keep_together)) {
    partitions.emplace_back().sequences.append(run.sequences);
  }
  return partitions;
}

namespace {

/// \return tokens of all items
std::int64_t add_lengths(const std::vector<Item>& items, const LengthPolicy& policy, PlanningTotals& totals) {
  const Length unslotted = unslotted_tokens(policy.slot_rule);
  std::vector<std::int64_t> counts;  // by length; one checked sum for each of these, not for each item
  std::int64_t tokens = 0;
  for (const Item& item : items) {
    const auto length = static_cast<std::size_t>(item.length());
    if (length >= counts.size()) counts.resize(length + 1);
    ++counts[length];
    totals.gaps_in_segments |= item.slots + unslotted != item.length();
    tokens += item.length();
  }
  for (std::size_t length = 0; length < counts.size(); ++length) {
    if (counts[length] > 0) totals.lengths.add(static_cast<std::int64_t>(length), counts[length]);
  }
  return tokens;
}

}  // namespace

PlanningTotals plan_partitions(std::vector<Partition>& partitions, const SequenceIndex& index, PlanningOptions options,
                               const std::vector<GivenPlan>& given, const RunContext& context,
                               std::optional<PolicyResult>* kept) {
  PlanningTotals totals;
  context.progress.begin_stage("planning", static_cast<std::int64_t>(partitions.size()), "partitions");
  for (std::size_t p = 0; p < partitions.size(); ++p) {
    throw_if_stopped(context.stop);
    Partition& partition = partitions[p];
    options.assign.partition = static_cast<std::int32_t>(p);
    PolicyResult policy = apply_policy(index, partition.sequences, options.policy);
    static_cast<PartitionPlan&>(partition) = given.empty() ? plan_partition(policy.items, index, options, context.stop)
                                                           : plan_for(given[p], planned_items(policy.items, options.policy),
                                                                      planned_groups(policy.items, index, options.policy));

    totals.removed += policy.counts;
    const std::int64_t tokens = add_lengths(policy.items, options.policy, totals);
    const PlanStats plan = stats(partition.plan);
    totals.sequences += policy.sequences;
    totals.segments += plan.segments;
    totals.tokens += tokens;
    totals.added_eos += policy.added_eos;
    totals.added_bos += policy.added_bos;
    totals.strategies += partition.plan.strategies();
    totals.rows += plan.rows;
    totals.bound += partition.plan.bound.rows;
    totals.max_segments_in_row = std::max(totals.max_segments_in_row, plan.max_segments_in_row);
    const bool windowed = options.assign.order == RowOrder::windowed;
    const std::int64_t windows = windowed ? window_count(plan.rows, options.policy.row_tokens) : 1;
    totals.shuffle_window_tokens = std::max(totals.shuffle_window_tokens, ceil_div(tokens, windows));
    if (kept != nullptr && p == 0 && index.sequences() <= kPartitionSequences) *kept = std::move(policy);
    context.progress.advance(1);
  }
  context.progress.end_stage();
  return totals;
}

std::optional<std::int64_t> rows_of_one_plan(const std::vector<Partition>& partitions, const PlanningOptions& options,
                                             const std::stop_token& stop) {
  if (partitions.size() < 2 || find_packer(options.packer).input_order) return std::nullopt;
  std::map<GroupKey, LengthHistogram> items;  // of all partitions; one entry where there are no groups
  for (const Partition& partition : partitions) {
    if (partition.groups.empty()) items[GroupKey()].merge(covered_items(partition.plan));
    for (const GroupPlan& group : partition.groups) items[group.key].merge(group.items);
  }
  std::int64_t rows = 0;
  for (const auto& [key, lengths] : items) rows += plan_counts(lengths, options, stop).rows();
  return rows;
}

}  // namespace shardpack
