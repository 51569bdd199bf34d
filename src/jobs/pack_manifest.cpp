#include "jobs/pack_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/column_values.h"
#include "core/predictions.h"
#include "jobs/index_views.h"
#include "jobs/pack_options.h"
#include "shardpack/version.h"

namespace shardpack {

std::vector<const PackingPlan*> plans_of(const std::vector<Partition>& partitions) {
  std::vector<const PackingPlan*> plans;
  for (const Partition& partition : partitions) {
    if (partition.groups.empty()) plans.push_back(&partition.plan);
    for (const GroupPlan& group : partition.groups) plans.push_back(&group.plan);
  }
  return plans;
}

namespace {

/// Name of the packer or bound kind that all plans share; `mixed` where they differ, `none` where there are none.
template <class Get>
std::string shared_name(const std::vector<const PackingPlan*>& plans, std::string_view none, std::string_view mixed, Get get) {
  if (plans.empty()) return std::string(none);
  const std::string first(get(*plans.front()));
  const bool all = std::all_of(plans.begin(), plans.end(), [&](const PackingPlan* plan) { return get(*plan) == first; });
  return all ? first : std::string(mixed);
}

std::string bound_kind_of(const std::vector<const PackingPlan*>& plans) {
  return shared_name(plans, "l1", "mixed", [](const PackingPlan& plan) { return name(plan.bound.kind); });
}

/// The segments that a row of these plans may have.
std::int32_t segment_limit_of(const std::vector<Partition>& partitions, const PackOptions& options) {
  if (!partitions.empty()) return partitions.front().plan.max_segments;
  return segment_limit(find_packer(options.packer), options.packing.max_segments);
}

}  // namespace

Manifest describe(const PackOptions& options, const ScannedSource& scanned, const std::vector<Partition>& partitions,
                  const PlanningTotals& totals, const TailRows& tail) {
  const SequenceIndex& index = scanned.source->index();
  Manifest manifest;
  manifest.tool_version = kVersion;
  const std::vector<const PackingPlan*> plans = plans_of(partitions);
  if (std::ranges::any_of(plans, [](const PackingPlan* plan) { return plan->packer == "optimal"; }))
    manifest.solver = lp_solver();
  manifest.preset = options.preset;
  manifest.container = info(*options.container).name;
  manifest.row_tokens = options.policy.row_tokens;
  manifest.rows = totals.rows - tail.dropped + tail.extra;
  manifest.source_sequences = index.sequences();
  manifest.source_tokens = index.tokens();
  manifest.sequences = totals.sequences;
  manifest.segments = totals.segments;
  manifest.tokens = totals.tokens;
  manifest.padding_tokens = totals.rows * manifest.row_tokens - manifest.slots();
  manifest.max_segments_in_row = totals.max_segments_in_row;
  manifest.plan = {.packer = shared_name(plans, options.packer, "auto", [](const PackingPlan& plan) { return plan.packer; }),
                   .bound_kind = bound_kind_of(plans),
                   .max_segments = segment_limit_of(partitions, options),
                   .segment_multiple = options.policy.segment_multiple,
                   .rows = totals.rows,
                   .bound = totals.bound};
  manifest.pad_id = *options.pad_id;
  manifest.eos_id = options.read.eos_id;
  manifest.bos_id = options.read.bos_id;
  manifest.position_start = options.position_start;
  manifest.derived = options.derived && manifest.holds_tokens();
  manifest.compress = options.zstd_level > 0 ? fmt::format("zstd:{}", options.zstd_level) : "";
  const std::span<const Column> columns = scanned.source->columns();
  manifest.columns.assign(columns.begin(), columns.end());
  manifest.not_carried = scanned.not_carried;
  if (const int loss = loss_column(columns); loss >= 0) manifest.loss_column = columns[static_cast<std::size_t>(loss)].name;
  manifest.source_loss_tokens = scanned.loss_tokens;
  manifest.options = recorded_options(options);
  add_token_facts(options, scanned, manifest);
  if (!manifest.holds_tokens()) {
    manifest.packed_fingerprint = manifest.removed_fingerprint = std::nullopt;
    for (std::size_t f = 0; f < manifest.sources.size(); ++f) manifest.sources[f].ids_dtype = index.files()[f].ids_dtype;
  }
  manifest.removed = totals.removed;
  manifest.removed[static_cast<std::size_t>(RemovalCause::padding)] = scanned.padding;
  manifest.removed[static_cast<std::size_t>(RemovalCause::null)].sequences = scanned.null_records;
  manifest.removed[static_cast<std::size_t>(RemovalCause::empty)].sequences -= scanned.null_records;  // both have length 0
  manifest.added_eos = totals.added_eos;
  manifest.added_bos = totals.added_bos;
  return manifest;
}

void add_token_facts(const PackOptions& options, const ScannedSource& scanned, Manifest& manifest) {
  manifest.id_type = choose_id_type(options, scanned.totals.id_max);
  manifest.id_min = scanned.totals.id_min;
  manifest.id_max = scanned.totals.id_max;
  manifest.source_fingerprint = scanned.totals.fingerprint;
  manifest.sources = sources_of(scanned.source->index());
}

std::vector<ManifestGroup> groups_of(const Partition& partition) {
  std::vector<ManifestGroup> groups;
  for (const GroupPlan& group : partition.groups) groups.push_back({group.key, group.plan.rows(), group.plan.bound.rows});
  return groups;
}

std::vector<ManifestGroup> groups_of(const std::vector<Partition>& partitions) {
  std::map<GroupKey, ManifestGroup> by_key;
  for (const Partition& partition : partitions) {
    for (const ManifestGroup& group : groups_of(partition)) {
      ManifestGroup& sum = by_key[group.key];
      sum.key = group.key;
      sum.rows += group.rows;
      sum.bound += group.bound;
    }
  }
  std::vector<ManifestGroup> groups;
  groups.reserve(by_key.size());
  for (auto& [key, group] : by_key) groups.push_back(std::move(group));
  return groups;
}

void count_dropped(const DroppedRows& dropped, Manifest& manifest) {
  RemovedCount& tail = manifest.removed[static_cast<std::size_t>(RemovalCause::tail)];
  tail.sequences += dropped.sequences;
  tail.tokens += dropped.source_tokens;
  manifest.sequences -= dropped.sequences;
  manifest.segments -= dropped.segments;
  manifest.tokens -= dropped.source_tokens + dropped.added_bos + dropped.added_eos;
  manifest.added_bos -= dropped.added_bos;
  manifest.added_eos -= dropped.added_eos;
}

void settle_totals(const std::vector<Partition>& partitions, PackResult& result) {
  Manifest& manifest = result.manifest;
  manifest.plan.bound_kind = bound_kind_of(plans_of(partitions));
  manifest.plan.rows = manifest.plan.bound = manifest.max_segments_in_row = result.strategies = 0;
  for (const Partition& partition : partitions) {
    manifest.plan.rows += partition.plan.rows();
    manifest.plan.bound += partition.plan.bound.rows;
    result.strategies += partition.plan.strategies();
    manifest.max_segments_in_row = std::max(manifest.max_segments_in_row, stats(partition.plan).max_segments_in_row);
  }
  manifest.padding_tokens = manifest.plan.rows * manifest.row_tokens - manifest.slots();
}

}  // namespace shardpack
