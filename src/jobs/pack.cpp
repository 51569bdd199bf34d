// pack: the main job. Read pack() as the table of contents; every step says what holds after it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/free_memory.h"
#include "base/hash.h"
#include "base/units.h"
#include "core/predictions.h"
#include "io/json.h"
#include "io/manifest_parts.h"
#include "io/saved_inputs.h"
#include "io/source.h"
#include "io/staged_output.h"
#include "jobs/conservation.h"
#include "jobs/early_plans.h"
#include "jobs/given_plans.h"
#include "jobs/index_views.h"
#include "jobs/memory_need.h"
#include "jobs/output_place.h"
#include "jobs/pack_manifest.h"
#include "jobs/pack_options.h"
#include "jobs/pack_settings.h"
#include "jobs/part_run.h"
#include "jobs/partitions.h"
#include "jobs/resumable.h"
#include "jobs/row_widths.h"
#include "jobs/scan_options.h"
#include "jobs/step_meter.h"
#include "jobs/tail.h"
#include "jobs/trainer_extras.h"
#include "jobs/write_partitions.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::string_view kSavesSpace = "--no-derived, --compress zstd or --as index";

bool holds_tokens(const PackOptions& options) { return info(*options.container).holds_tokens; }

/// What a user would otherwise notice only when the training goes wrong.
void warn_of_losses(const ScannedSource& scanned, bool holds_tokens, Diagnostics& diagnostics) {
  if (!scanned.not_carried.empty() && holds_tokens) {
    diagnostics.warn(fmt::format("not carried along: {}; --columns names what is", fmt::join(scanned.not_carried, ", ")));
  }
  if (scanned.source->index().tokens() == 0) diagnostics.warn("the inputs hold no token");
}

/// What a preset has a place for is not left out without a word of the user's.
void check_left_out(const ScannedSource& scanned, const PackOptions& options) {
  if (options.read.columns.which != ColumnChoice::Which::aligned) return;
  for (const OutputColumn& column : find_preset(options.preset).columns) {
    if (column.source != OutputSource::segment_values) continue;
    for (const std::string_view name : column.from) {
      if (std::ranges::find(scanned.not_carried, name) == scanned.not_carried.end()) continue;
      throw Error(ErrorCode::usage,
                  fmt::format("--for {}: {} is not one number for each sequence, for which there is a place; make it "
                              "one, or leave it out with --columns and the names of the others",
                              options.preset, name));
    }
  }
}

/// Rows in windows are made in the order of the input. So tokens need not be read once to know them and once more to write them,
/// if nothing that is written depends on what the pass finds, and nothing has to be compared with it beforehand.
bool may_scan_in_passing(const PackOptions& options, const std::optional<StagedOutput>& staged, const RunContext& context) {
  constexpr int kMostThreads = 4;  // more of them read faster beside each other: in passing, one reads at a time
  const std::span<const OutputColumn> columns = find_preset(options.preset).columns;
  const auto ids = std::ranges::find(columns, OutputSource::ids, &OutputColumn::source);
  const bool type_is_fixed =
      !is_native(find_preset(options.preset)) && ids != columns.end() && info(ids->type).bytes >= info(IdType::u32).bytes;
  return row_order(options) == RowOrder::windowed && options.partition_order == PartitionOrder::input && type_is_fixed &&
         holds_tokens(options) && !options.part && staged && !staged->goes_on() && context.pool.threads() <= kMostThreads;
}

/// What there is to know of the inputs before their tokens are read; of a saved scan none of them is open yet.
struct Inputs {
  ScannedSource scanned;
  std::optional<SavedInputs> saved;
  std::string scan_hash;  // of a saved scan
};

/// One pass over the inputs: boundaries, id range, fingerprint. Or what a pass has found before. `in_passing`: its end may be
/// left to finish_scan().
Inputs read_inputs(const std::vector<std::string>& inputs, const PackOptions& options, std::optional<SavedScan>& scan,
                   const LengthPolicy& policy, EarlyPlans& plans, bool in_passing, const RunContext& context) {
  Inputs read;
  if (!scan) {
    const ScanNeeds needs{.random_access = !options.dry_run && holds_tokens(options),
                          .loss_places = loss_side(policy),
                          .ends = options.policy.append_eos || options.policy.prepend_bos,
                          .meanwhile = plans.maker(),
                          .meanwhile_stage = "planning",
                          .in_passing = in_passing};
    read.scanned = open_source(inputs, options.read, needs, context);
    return read;
  }
  read.scan_hash = scan->hash;
  read.saved.emplace(inputs, options.read, std::move(*scan));
  read.scanned = read.saved->take_source();
  return read;
}

/// Everything that decides the bytes: the options, and what reading and planning found. Parts go by the saved scan, which says
/// all of the inputs.
RunIdentity identity_of_run(const PackOptions& options, const std::string& scan_hash, const Manifest& manifest,
                            const std::vector<Partition>& partitions) {
  RunIdentity identity = identity_before_reading(options);
  if (options.part) {
    identity.emplace_back("the saved scan", "of hash " + scan_hash);
  } else {
    add_inputs(identity, manifest.sources);
  }
  identity.emplace_back("the row length", with_commas(manifest.row_tokens));
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

/// pack() from the reading on. Until it publishes, `staged` holds what there is; none = a dry run.
PackResult read_plan_write(const std::vector<std::string>& inputs, const std::string& output, const PackOptions& options,
                           const PlanningOptions& planning, const std::vector<GivenPlan>& given, std::optional<SavedScan>& scan,
                           std::optional<StagedOutput>& staged, const RunContext& context) {
  // The index says where every token is.
  RunContext reading = context;
  if (reading.temp_dir.empty()) reading.temp_dir = staged ? staged->trainer_folder() : parent_of(output);
  EarlyPlans early(options, planning, given, context);
  Inputs read =
      read_inputs(inputs, options, scan, planning.policy, early, may_scan_in_passing(options, staged, context), reading);
  const ScannedSource& scanned = read.scanned;
  const SequenceIndex& index = scanned.source->index();
  check_left_out(scanned, options);
  warn_of_losses(scanned, holds_tokens(options), context.diagnostics);

  // Partitions are cut by the data and planned: rows, bounds and removals are known, and nothing is written yet.
  Plans plans = early.take(index);
  release_free_memory();  // of reading and planning, before blocks of rows are made
  std::vector<Partition>& partitions = plans.partitions;
  const PlanningTotals& totals = plans.totals;
  const TailRows tail = plan_tail(partitions, totals.rows, options);

  PackResult result;
  result.manifest = describe(options, scanned, partitions, totals, tail);
  settle_widths(options, *scanned.source, partitions, planning, result.manifest, context);
  result.strategies = totals.strategies;
  result.dynamic_padding_slots = expected_dynamic_slots(totals.lengths, 64);
  result.shuffle_window_tokens = totals.shuffle_window_tokens;
  result.partitions = static_cast<std::int64_t>(partitions.size());
  result.groups = groups_of(partitions);
  if (plans.rows_of_one_plan) result.cut_rows = totals.rows - *plans.rows_of_one_plan;
  const RewriteSettings settings = rewrite_settings(options, result.manifest, partitions, totals, tail);
  result.bytes_written = expected_bytes(result.manifest, settings);
  const RunContext writing = with_memory_left(index, partitions, planning, settings, context);
  StepMeter steps(options);
  if (options.part) result.part = planned_part(*options.part, partitions);
  if (options.dry_run) {
    check_free_space(output, result.bytes_written, kSavesSpace);
    steps.add_unwritten(partitions, index, planning, context);
    result.steps = steps.finish(result.manifest);
    return result;
  }
  const WritingJob job{.staged = *staged,
                       .source = *scanned.source,
                       .partitions = partitions,
                       .planning = planning,
                       .settings = settings,
                       .options = options,
                       .tail = tail,
                       .context = writing,
                       .first = plans.first};
  const RunIdentity identity = identity_of_run(options, read.scan_hash, result.manifest, partitions);
  if (read.saved) {
    const SequenceRanges all(0, index.sequences());
    read.saved->open(options.part ? sequences_of_part(job) : std::vector<SequenceRanges>{all},
                     holds_tokens(options) ? LaterReading::tokens : LaterReading::places, reading);
  }

  // One part of several: its partitions, each noted when it is finished. join() does what follows here.
  if (options.part) {
    if (!options.resume) {  // other parts' files, and earlier ones of this part, may be there already
      const std::int64_t row_bytes = result.bytes_written / std::max<std::int64_t>(result.manifest.rows, 1);
      check_free_space(output, checked_mul(row_bytes, planned_part(*options.part, partitions).rows, "output bytes"), kSavesSpace);
    }
    staged->parts().write(part_run_name(identity), part_run_text(result));
    result.part = write_part(job, identity);
    return result;
  }
  staged->begin_shards(identity, context);
  check_free_space(output, result.bytes_written - staged->finished_bytes(), kSavesSpace);

  // Rewrite. Every row is checked before it is encoded; the packed fingerprint is taken from the rows' own ids.
  write_dataset(job, steps, result.manifest);
  if (scanned.passing != nullptr) {
    finish_scan(read.scanned, context);
    add_token_facts(options, scanned, result.manifest);
    check_ids_fit(result.manifest);
  }
  settle_totals(partitions, result);
  write_trainer_extras(*staged, settings.output, partitions, result.manifest);
  result.steps = steps.finish(result.manifest);
  result.groups = groups_of(partitions);

  // Inputs that changed meanwhile are the likelier cause of any sum that does not come out.
  scanned.source->check_unchanged();

  // Every token that was read is in the rows or in removed.csv: the equations hold, or nothing is published.
  check_conservation(result.manifest, staged->finished_bytes() > 0 ? kInputChangedBack : read.saved ? kNotOfTheScan : "");
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
  std::optional<SavedScan> scan;
  if (!options.scan.empty()) {
    scan = read_saved_scan(options.scan);
    adopt(options, *scan);
  }
  if (options.rows_multiple == 0) options.rows_multiple = options.shape.step_rows();

  // What can be refused is refused before anything is read; the place is ours from here on.
  check_pack_options(options);
  if (!holds_tokens(options)) {
    if (std::ranges::find(inputs, "-") != inputs.end())
      throw Error(ErrorCode::usage, "--as index: the tokens stay in the sources, and standard input ('-') is gone; give files");
    options.read.columns = {.which = ColumnChoice::Which::none, .names = {}};
  }
  PlanningOptions planning{.policy = effective_policy(options.policy, options.packer, options.packing.max_segments),
                           .packer = options.packer,
                           .packing = options.packing,
                           .assign = {.seed = options.seed,
                                      .order = row_order(options),
                                      .row_tokens = options.policy.row_tokens,
                                      .shape = options.shape},
                           .balance_attention = options.balance_attention};
  planning.packing.row_tokens = options.policy.row_tokens;
  if (scan) check_scan_serves(*scan, planning.policy);
  check_output_apart(output, inputs);
  std::optional<StagedOutput> staged;
  if (options.dry_run) {
    check_output_place(output, kPackedFormat, options.force);
  } else {
    staged.emplace(output, kPackedFormat, options.force, context.diagnostics,
                   options.part     ? StagedOutput::Leftovers::share
                   : options.resume ? StagedOutput::Leftovers::resume
                                    : StagedOutput::Leftovers::remove,
                   is_native(find_preset(options.preset)) ? StagedOutput::Place::beside : StagedOutput::Place::hidden);
    staged->check_same_run(identity_before_reading(options));
  }

  return keeping_finished_shards(staged, context.diagnostics, [&] {
    return read_plan_write(inputs, output, options, planning, given, scan, staged, context);
  });
}

}  // namespace shardpack
