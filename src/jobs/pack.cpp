// pack: the main job. Read pack() as the table of contents; every step says what holds after it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>

#include "base/checked.h"
#include "base/hash.h"
#include "base/units.h"
#include "core/column_values.h"
#include "core/predictions.h"
#include "io/hf_json.h"
#include "io/json.h"
#include "io/manifest_parts.h"
#include "io/plan_file.h"
#include "io/source.h"
#include "io/staged_output.h"
#include "io/trainer_files.h"
#include "jobs/given_plans.h"
#include "jobs/index_views.h"
#include "jobs/pack_options.h"
#include "jobs/partitions.h"
#include "jobs/removed_log.h"
#include "jobs/rewrite.h"
#include "jobs/step_meter.h"
#include "jobs/tail.h"
#include "shardpack/error.h"
#include "shardpack/version.h"

namespace shardpack {

namespace {

std::string parent_of(const std::string& output) {
  std::filesystem::path path = std::filesystem::absolute(output).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "packed/"
  return path.parent_path().string();
}

/// What a user would otherwise notice only when the training goes wrong.
void warn_of_losses(const ScannedSource& scanned, Diagnostics& diagnostics) {
  if (!scanned.not_carried.empty()) {
    diagnostics.warn(fmt::format("not carried along: {}; --columns names what is", fmt::join(scanned.not_carried, ", ")));
  }
  if (scanned.source->index().tokens() == 0) diagnostics.warn("the inputs hold no token");
}

/// Every plan: of the partitions, or of their groups.
std::vector<const PackingPlan*> plans_of(const std::vector<Partition>& partitions) {
  std::vector<const PackingPlan*> plans;
  for (const Partition& partition : partitions) {
    if (partition.groups.empty()) plans.push_back(&partition.plan);
    for (const GroupPlan& group : partition.groups) plans.push_back(&group.plan);
  }
  return plans;
}

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

/// The manifest as far as the options, the scan and the plans decide it.
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
  manifest.id_type = choose_id_type(options, scanned.totals.id_max);
  manifest.id_min = scanned.totals.id_min;
  manifest.id_max = scanned.totals.id_max;
  manifest.pad_id = *options.pad_id;
  manifest.eos_id = options.read.eos_id;
  manifest.bos_id = options.read.bos_id;
  manifest.position_start = options.position_start;
  manifest.derived = options.derived;
  manifest.compress = options.zstd_level > 0 ? fmt::format("zstd:{}", options.zstd_level) : "";
  const std::span<const Column> columns = scanned.source->columns();
  manifest.columns.assign(columns.begin(), columns.end());
  manifest.not_carried = scanned.not_carried;
  if (const int loss = loss_column(columns); loss >= 0) manifest.loss_column = columns[static_cast<std::size_t>(loss)].name;
  manifest.source_loss_tokens = scanned.loss_tokens;
  manifest.options = recorded_options(options);
  manifest.sources = sources_of(index);
  manifest.source_fingerprint = scanned.totals.fingerprint;
  manifest.removed = totals.removed;
  manifest.removed[static_cast<std::size_t>(RemovalCause::padding)] = scanned.padding;
  manifest.removed[static_cast<std::size_t>(RemovalCause::null)].sequences = scanned.null_records;
  manifest.removed[static_cast<std::size_t>(RemovalCause::empty)].sequences -= scanned.null_records;  // both have length 0
  manifest.added_eos = totals.added_eos;
  manifest.added_bos = totals.added_bos;
  return manifest;
}

/// How the dataset's columns become the preset's. \throws Error{usage} when they cannot, Error{bad_data} for ids that do not fit
OutputRules rules_of_output(const PackOptions& options, const Manifest& manifest) {
  const Preset& preset = find_preset(options.preset);
  OutputRules rules = output_rules(preset, *options.container, manifest.columns, manifest.id_type);
  rules.row_tokens = manifest.row_tokens;
  rules.position_start = static_cast<std::uint32_t>(options.position_start);
  rules.eos_id = static_cast<std::uint32_t>(options.read.eos_id.value_or(0));
  rules.refuses_inner_eos = preset.ends_in_eos && !options.allow_inner_eos;
  const std::int64_t largest = std::max({manifest.id_max, manifest.pad_id, options.read.eos_id.value_or(0)});
  if (!rules.native() && largest > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorCode::bad_data,
                fmt::format("the token id {} takes more than the 31 bits that --for {} has for it; --for native "
                            "has 32",
                            with_commas(largest), preset.name));
  }
  return rules;
}

/// The shards that will be written: each of a partition, the last one's extra rows on their own.
std::int64_t count_shards(const std::vector<Partition>& partitions, const TailRows& tail, std::int64_t rows_per_shard) {
  std::int64_t shards = ceil_div(tail.extra, rows_per_shard);
  for (const Partition& partition : partitions) shards += ceil_div(partition.kept_rows(), rows_per_shard);
  return shards;
}

RewriteSettings rewrite_settings(const PackOptions& options, const Manifest& manifest, const PlanningTotals& totals,
                                 const OutputRules& output) {
  return {
      .row_tokens = manifest.row_tokens,
      .segment_multiple = options.policy.segment_multiple,
      .unslotted = unslotted_tokens(options.policy.slot_rule),
      .max_segments = manifest.plan.max_segments,
      .max_segments_in_row = static_cast<std::int32_t>(totals.max_segments_in_row),
      .id_type = manifest.id_type,
      .fill = {.pad = static_cast<std::uint32_t>(*options.pad_id),
               .bos = static_cast<std::uint32_t>(options.read.bos_id.value_or(0)),
               .eos = static_cast<std::uint32_t>(options.read.eos_id.value_or(0))},
      .position_start = static_cast<std::uint32_t>(options.position_start),
      .derived = options.derived,
      .write_added = totals.added_eos + totals.added_bos > 0,
      .write_slots = totals.gaps_in_segments,
      .zstd_level = options.zstd_level,
      .shard_bytes = options.shard_bytes,
      .columns = manifest.columns,
      .single_segments = options.policy.overlong == Overlong::truncate && options.policy.truncate_side == TruncateSide::start,
      .output = output,
  };
}

/// Bytes of all shards; 0 with compression, when it is not known before. Rows without padding count as full ones.
std::int64_t expected_bytes(const Manifest& manifest, const RewriteSettings& settings) {
  if (settings.zstd_level > 0 || settings.output.container == Container::parquet) return 0;
  std::int64_t segment_bytes = 4 + 24 + (settings.write_added ? 1 : 0) + (settings.write_slots ? 4 : 0);
  for (const Column& column : settings.columns)
    segment_bytes += column.kind == ColumnKind::token ? 0 : info(column.type).bytes;  // of lists their number is not known
  return checked_add(checked_mul(manifest.rows, settings.row_bytes() + 8, "output bytes"),
                     checked_mul(manifest.segments, segment_bytes, "output bytes"), "output bytes");
}

/// Everything that decides the bytes: `identity` with what reading and planning found.
RunIdentity identity_of_run(RunIdentity identity, const Manifest& manifest, const std::vector<Partition>& partitions) {
  identity.emplace_back("the number of inputs", std::to_string(manifest.sources.size()));
  for (std::size_t i = 0; i < manifest.sources.size(); ++i) {
    const ManifestSource& source = manifest.sources[i];
    identity.emplace_back(fmt::format("input {}", i + 1),
                          fmt::format("{} ({}, {} bytes, {} sequences, hash {})", as_utf8(source.name), source.format,
                                      with_commas(source.bytes), with_commas(source.sequences), source.hash));
  }
  identity.emplace_back("the solver", manifest.solver.empty() ? "none" : manifest.solver);
  StreamHash hash;
  for (const PackingPlan* plan : plans_of(partitions)) {
    hash.update(std::as_bytes(std::span(plan->lengths)));
    hash.update(std::as_bytes(std::span(plan->begin)));
    hash.update(std::as_bytes(std::span(plan->count)));
  }
  identity.emplace_back("the plan", "of hash " + hash.hex());
  return identity;
}

void check_free_space(const std::string& output, std::int64_t needed) {
  struct statvfs status {};
  if (::statvfs(parent_of(output).c_str(), &status) != 0) return;  // the writes will tell
  const auto free = static_cast<std::int64_t>(status.f_bavail) * static_cast<std::int64_t>(status.f_frsize);
  if (needed > free) {
    throw Error(ErrorCode::io,
                fmt::format("the packed dataset takes {} and {} are free; free some space, choose another place with -o, or use "
                            "--no-derived or --compress zstd",
                            short_bytes(needed), short_bytes(free)),
                output);
  }
}

/// Take dropped rows out of the manifest's totals.
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

std::vector<ManifestGroup> groups_of(const Partition& partition) {
  std::vector<ManifestGroup> groups;
  for (const GroupPlan& group : partition.groups) groups.push_back({group.key, group.plan.rows(), group.plan.bound.rows});
  return groups;
}

/// Of all partitions together.
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
  for (auto& [key, group] : by_key) groups.push_back(std::move(group));
  return groups;
}

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

/// What Megatron-Bridge asks before it reads a row. All lengths are in slots, which are pairs of input and target.
std::string packed_metadata_json(const Manifest& manifest, const std::vector<Partition>& partitions) {
  std::int64_t longest = 0, shortest_row = manifest.rows > 0 ? manifest.row_tokens : 0;
  for (const PackingPlan* plan : plans_of(partitions)) {
    for (const Length length : plan->lengths) longest = std::max<std::int64_t>(longest, length);
    for (std::int64_t strategy = 0; strategy < plan->strategies(); ++strategy) {
      const std::span<const Length> lengths = plan->strategy(strategy);
      shortest_row = std::min(shortest_row, std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}));
    }
  }
  JsonWriter json;
  json.begin_array(true).begin_object(true);
  json.member("dataset_max_seqlen", longest).member("max_samples_per_bin", manifest.max_segments_in_row);
  json.member("min_packed_seqlen", shortest_row).member("pack_size", manifest.row_tokens);
  json.end_object().end_array();
  return json.take() + "\n";
}

/// What a trainer reads beside the shards' files; and where there is no shard, a file without rows that has the columns.
void write_trainer_extras(const StagedOutput& staged, const RewriteSettings& settings, const std::vector<Partition>& partitions,
                          Manifest& manifest) {
  const OutputRules& rules = settings.output;
  if (rules.native()) return;
  if (manifest.shards.empty()) {
    manifest.trainer_files = make_trainer_files(rules, staged.trainer_folder(), trainer_file_name(rules, 0, 1))->finish();
  }
  std::vector<ManifestFile> files = manifest.trainer_files;
  for (const ManifestShard& shard : manifest.shards)
    files.insert(files.end(), shard.trainer_files.begin(), shard.trainer_files.end());
  const auto write = [&](std::string name, const std::string& text) {
    staged.write_trainer_file(name, text);
    manifest.trainer_files.push_back({std::move(name), static_cast<std::int64_t>(text.size()), hash_hex(text)});
  };
  if (rules.container == Container::arrow) {
    write("dataset_info.json", dataset_info_json(rules.columns));
    write("state.json", hf_state_json(files));
  }
  if (has_source(*rules.preset, OutputSource::seq_starts))
    write("packed_metadata.jsonl", packed_metadata_json(manifest, partitions));
}

/// All rows into `staged`, partition by partition; completes the manifest.
void write_dataset(StagedOutput& staged, const SequenceSource& source, std::vector<Partition>& partitions,
                   PlanningOptions planning, const RewriteSettings& settings, const PackOptions& options, const TailRows& tail,
                   StepMeter& steps, Manifest& manifest, const RunContext& context) {
  const SequenceIndex& index = source.index();
  const DatasetKeys keys(lengths_of(index).max_length(), source.columns());
  Rewriter rewriter(source, keys, settings, staged, context);
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
  write_trainer_extras(staged, settings, partitions, manifest);
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

/// Figures that dropping a tail or exchanging items changes, from the partitions as written.
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

/// Source + added = packed + removed, in sequences, tokens, loss tokens and fingerprints. \throws Error{internal};
/// Error{bad_data} when tokens of an interrupted run are other ones, and may have been read while an input was another.
void check_conservation(const Manifest& manifest, bool resumed) {
  std::int64_t sequences = manifest.sequences, tokens = manifest.tokens, loss_tokens = manifest.loss_tokens;
  for (std::size_t cause = 0; cause < manifest.removed.size(); ++cause) {
    if (cause == static_cast<std::size_t>(RemovalCause::padding)) continue;  // was never part of the source tokens
    if (cause != static_cast<std::size_t>(RemovalCause::truncated)) sequences += manifest.removed[cause].sequences;
    tokens += manifest.removed[cause].tokens;
    loss_tokens += manifest.removed[cause].loss_tokens;
  }
  ensure(sequences == manifest.source_sequences, "source sequences differ from packed plus removed ones");
  ensure(tokens == manifest.source_tokens + manifest.added_bos + manifest.added_eos,
         "source plus added tokens differ from packed plus removed ones");
  if (!(manifest.source_fingerprint == manifest.packed_fingerprint + manifest.removed_fingerprint)) {
    if (resumed) {
      throw Error(
          ErrorCode::bad_data,
          "the finished shards are not of these inputs: one was changed while the interrupted run read it, and changed back; "
          "they are removed, so run again");
    }
    throw Error(ErrorCode::internal,
                "the packed tokens are not the tokens that were scanned; if no input was changed meanwhile, please report it");
  }
  ensure(loss_tokens == manifest.source_loss_tokens, "source loss tokens differ from packed plus removed ones");
}

/// pack() from the reading on. Until it publishes, `staged` holds what there is; none = a dry run.
PackResult read_plan_write(const std::vector<std::string>& inputs, const std::string& output, const PackOptions& options,
                           const PlanningOptions& planning, const std::vector<GivenPlan>& given,
                           std::optional<StagedOutput>& staged, const RunContext& context) {
  // One pass over the inputs: boundaries, id range, fingerprint. The index then says where every token is.
  RunContext reading = context;
  if (reading.temp_dir.empty()) reading.temp_dir = staged ? staged->trainer_folder() : parent_of(output);
  const ScanNeeds needs{.random_access = !options.dry_run,
                        .loss_places = loss_side(planning.policy),
                        .ends = options.policy.append_eos || options.policy.prepend_bos};
  const ScannedSource scanned = open_source(inputs, options.read, needs, reading);
  const SequenceIndex& index = scanned.source->index();
  warn_of_losses(scanned, context.diagnostics);

  // Partitions are cut by the data and planned: rows, bounds and removals are known, and nothing is written yet.
  check_overlong(index, planning.policy);
  std::vector<Partition> partitions = cut_partitions(index, options.partition_tokens, options.policy.keep_together);
  if (!given.empty()) check_plan_count(given, options.plan, partitions.size());
  const PlanningTotals totals = plan_partitions(partitions, index, planning, given, context);
  const TailRows tail = plan_tail(partitions, totals.rows, options);

  PackResult result;
  result.manifest = describe(options, scanned, partitions, totals, tail);
  result.strategies = totals.strategies;
  result.dynamic_padding_slots = expected_dynamic_slots(totals.lengths, 64);
  result.shuffle_window_tokens = totals.largest_partition_tokens;
  result.partitions = static_cast<std::int64_t>(partitions.size());
  result.groups = groups_of(partitions);
  RewriteSettings settings = rewrite_settings(options, result.manifest, totals, rules_of_output(options, result.manifest));
  settings.shards = count_shards(partitions, tail, settings.rows_per_shard());
  result.bytes_written = expected_bytes(result.manifest, settings);
  StepMeter steps(options);
  if (options.dry_run) {
    check_free_space(output, result.bytes_written);
    steps.add_unwritten(partitions, index, planning, context);
    result.steps = steps.finish(result.manifest);
    return result;
  }
  staged->begin_shards(identity_of_run(identity_before_reading(options), result.manifest, partitions), context);
  check_free_space(output, result.bytes_written - staged->finished_bytes());

  // Rewrite. Every row is checked before it is encoded; the packed fingerprint is taken from the rows' own ids.
  write_dataset(*staged, *scanned.source, partitions, planning, settings, options, tail, steps, result.manifest, context);
  settle_totals(partitions, result);
  result.steps = steps.finish(result.manifest);
  result.groups = groups_of(partitions);

  // Inputs that changed meanwhile are the likelier cause of any sum that does not come out.
  scanned.source->check_unchanged();

  // Every token that was read is in the rows or in removed.csv: the equations hold, or nothing is published.
  check_conservation(result.manifest, staged->finished_bytes() > 0);
  result.verified = true;

  // The manifest is the commit record; one rename publishes the whole.
  const std::string manifest_text = to_json(result.manifest);
  staged->write_file(kManifestName, manifest_text);
  result.bytes_written = listed_bytes(result.manifest) + static_cast<std::int64_t>(manifest_text.size());
  staged->publish();
  return result;
}

}  // namespace

PackResult pack(const std::vector<std::string>& inputs, const std::string& output, const PackOptions& asked,
                const RunContext& context) {
  // Plans that are given say how long a row is, and must be of the policy that is asked for.
  PackOptions options = with_preset(asked);
  std::vector<GivenPlan> given;
  if (!options.plan.empty()) {
    given = read_given_plans(options.plan);
    adopt(options, given);
  }
  if (options.rows_multiple == 0) options.rows_multiple = options.shape.step_rows();

  // What can be refused is refused before anything is read; the place is ours from here on.
  check_pack_options(options);
  PlanningOptions planning{.policy = effective_policy(options.policy, options.packer, options.packing.max_segments),
                           .packer = options.packer,
                           .packing = options.packing,
                           .assign = {.seed = options.seed, .order = row_order(options), .shape = options.shape},
                           .balance_attention = options.balance_attention};
  planning.packing.row_tokens = options.policy.row_tokens;
  check_output_apart(output, inputs);
  std::optional<StagedOutput> staged;
  if (options.dry_run) {
    check_output_place(output, kPackedFormat, options.force);
  } else {
    staged.emplace(output, kPackedFormat, options.force, context.diagnostics,
                   options.resume ? StagedOutput::Leftovers::resume : StagedOutput::Leftovers::remove,
                   is_native(find_preset(options.preset)) ? StagedOutput::Place::beside : StagedOutput::Place::hidden);
    staged->check_same_run(identity_before_reading(options));
  }

  // What is finished outlives whatever is no fault of the data: a full disk, a signal, a machine that goes down.
  try {
    return read_plan_write(inputs, output, options, planning, given, staged, context);
  } catch (const Error& error) {
    const bool may_go_on =
        error.code() == ErrorCode::io || error.code() == ErrorCode::limit || error.code() == ErrorCode::cancelled;
    const std::string kept = staged && may_go_on ? staged->keep_finished_shards() : "";
    if (kept.empty()) throw;
    throw Error(error.code(), fmt::format("{}; {}", error.message(), kept), error.path(), error.position());
  } catch (const std::bad_alloc&) {
    if (const std::string kept = staged ? staged->keep_finished_shards() : ""; !kept.empty()) context.diagnostics.warn(kept);
    throw;
  }
}

}  // namespace shardpack
