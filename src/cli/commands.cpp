#include "cli/commands.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>

#include "cli/versions.h"
#include "io/histogram_file.h"
#include "io/npy.h"
#include "io/plan_file.h"
#include "io/saved_scan.h"
#include "io/times_file.h"
#include "jobs/pack_options.h"
#include "report/batch_report.h"
#include "report/batch_sweep_report.h"
#include "report/figures.h"
#include "report/formats_report.h"
#include "report/inspect_report.h"
#include "report/lint_report.h"
#include "report/ltd_report.h"
#include "report/pack_report.h"
#include "report/plan_report.h"
#include "report/scan_report.h"
#include "report/sweep_report.h"
#include "report/unpack_report.h"
#include "report/verify_json.h"
#include "report/verify_text.h"
#include "shardpack/batch_sweep.h"
#include "shardpack/error.h"
#include "shardpack/inspect.h"

namespace shardpack {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Text to standard output, or JSON when that was asked for.
void print_report(Session& session, const std::string& text, const std::string& json) {
  session.progress.close();
  write_standard_output(session.settings.json ? json : text);
}

/// A report that comes on top of what the command did: -q leaves its text out, and -o - sends it to standard error.
void print_summary(Session& session, const std::string& text, const std::string& json) {
  const Settings& settings = session.settings;
  if (settings.output == "-" && !settings.quiet) {
    session.progress.close();
    session.console.line(text.substr(0, text.size() - 1));
  } else if (settings.json || !settings.quiet) {
    print_report(session, text, json);
  }
}

void write_output(const std::string& path, std::string_view bytes) {
  if (path == "-") {
    write_standard_output(bytes);
  } else {
    write_output_file(path, bytes);
  }
}

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::int64_t total_bytes(const std::vector<ManifestSource>& files) {
  std::int64_t bytes = 0;
  for (const ManifestSource& file : files) bytes += file.bytes;
  return bytes;
}

// ---- scan -------------------------------------------------------------------------------------------------------------------

constexpr std::string_view kCsvSignature = "length,count", kJsonSignature = "{";

std::string lengths_npy(const std::vector<std::int64_t>& lengths) {
  std::string bytes = make_npy_header("<i8", {static_cast<std::int64_t>(lengths.size())});
  const std::size_t header = bytes.size();
  bytes.resize(header + lengths.size() * sizeof(std::int64_t));
  if (!lengths.empty()) std::memcpy(bytes.data() + header, lengths.data(), lengths.size() * sizeof(std::int64_t));
  return bytes;
}

/// From which side pack will ask for a sequence's loss.
LossSide loss_side_of(LengthPolicy policy) {
  policy.overlong = Overlong::truncate;  // its side is all that scan is told
  return loss_side(policy);
}

Outcome run_scan(Session& session) {
  const Settings& settings = session.settings;
  const bool as_json = ends_with(settings.output, ".json");
  if (!settings.output.empty() && settings.output != "-") {
    if (!as_json && !ends_with(settings.output, ".csv")) {
      throw Error(ErrorCode::usage, "a histogram is .csv or .json", settings.output);
    }
    if (as_json && !settings.pack.read.group_column.empty()) {
      throw Error(ErrorCode::usage, "a histogram with groups is .csv", settings.output);
    }
    check_output_file(settings.output, settings.pack.force, as_json ? kJsonSignature : kCsvSignature);
  }
  if (!settings.write_lengths.empty()) check_output_file(settings.write_lengths, settings.pack.force, kNpyMagic);
  if (!settings.save_scan.empty()) check_output_file(settings.save_scan, settings.pack.force, kSavedScanMagic);

  const auto begin = Clock::now();
  ScanWants wants{.record_lengths = !settings.write_lengths.empty(), .save = {}};
  if (!settings.save_scan.empty()) {
    wants.save = SaveOptions{
        .cut = {.tokens = settings.pack.partition_tokens, .order = settings.pack.partition_order, .seed = settings.pack.seed},
        .loss_side = loss_side_of(settings.pack.policy)};
  }
  const ScanResult result = scan(settings.inputs, settings.pack.read, session.context, wants);
  const double seconds = seconds_since(begin);

  Outcome outcome{
      .facts = {
          .tokens = result.lengths.tokens(), .input_bytes = total_bytes(result.files), .output_bytes = 0, .seconds = seconds}};
  if (!settings.pack.dry_run) {
    if (!settings.output.empty()) {
      const std::string histogram = as_json                 ? histogram_to_json(result.lengths)
                                    : result.groups.empty() ? histogram_to_csv(result.lengths)
                                                            : grouped_histogram_to_csv(result.groups);
      write_output(settings.output, histogram);
      outcome.facts.output_bytes += static_cast<std::int64_t>(histogram.size());
    }
    if (!settings.save_scan.empty()) {
      write_output_file(settings.save_scan, result.saved);
      outcome.facts.output_bytes += std::ssize(result.saved);
    }
    if (wants.record_lengths) {
      const std::string lengths = lengths_npy(result.record_lengths);
      write_output_file(settings.write_lengths, lengths);
      outcome.facts.output_bytes += static_cast<std::int64_t>(lengths.size());
    }
  }
  print_summary(session, scan_to_text(result), scan_to_json(result, seconds));
  return outcome;
}

// ---- plan -------------------------------------------------------------------------------------------------------------------

constexpr std::string_view kPlanSignature = "{\n  \"format\": \"shardpack-plan\"";

Outcome run_plan(Session& session) {
  const Settings& settings = session.settings;
  const PackOptions pack_options = with_preset(settings.pack);
  if (!settings.output.empty() && settings.output != "-") {
    check_output_file(settings.output, pack_options.force, kPlanSignature);
  }

  const auto begin = Clock::now();
  const PlanOptions options{.policy = pack_options.policy, .packer = pack_options.packer, .packing = pack_options.packing};
  const PlanResult result = plan(settings.inputs, pack_options.read, options, session.context);
  const double seconds = seconds_since(begin);

  Outcome outcome{.facts = {.tokens = result.tokens, .input_bytes = 0, .output_bytes = 0, .seconds = seconds}};
  if (!settings.output.empty() && !pack_options.dry_run) {
    const std::string& column = pack_options.read.group_column;  // a histogram calls it "group"
    const std::string text =
        result.groups.empty() ? to_json(result.plan, result.items) : to_json(column.empty() ? "group" : column, result.groups);
    write_output(settings.output, text);
    outcome.facts.output_bytes = static_cast<std::int64_t>(text.size());
  }
  print_summary(session, plan_to_text(result, seconds), plan_to_json(result, seconds));
  return outcome;
}

// ---- sweep ------------------------------------------------------------------------------------------------------------------

CostModel cost_model(const Settings& settings) {
  return settings.calibrate.empty() ? published_cost_model() : fit_cost_model(read_times(settings.calibrate));
}

/// The tables and JSON of a sweep, whichever kind.
struct SweepTexts {
  std::string text, csv, json;
  std::int64_t tokens = 0;
  double seconds = 0;
};

SweepTexts sweep_batches(Session& session) {
  const Settings& settings = session.settings;
  BatchSweepOptions options{.policy = settings.pack.policy, .plan = settings.batch.plan, .cost = cost_model(settings)};
  options.policy.row_tokens = settings.max_length;
  options.policy.overlong = settings.sweep.overlong.empty() ? Overlong::error : settings.sweep.overlong.back();
  const auto begin = Clock::now();
  const BatchSweepResult result = sweep_batching(settings.inputs, settings.pack.read, options, session.context);
  const double seconds = seconds_since(begin);
  return {.text = batch_sweep_to_text(result),
          .csv = batch_sweep_to_csv(result),
          .json = batch_sweep_to_json(result, seconds),
          .tokens = result.source_tokens,
          .seconds = seconds};
}

SweepTexts sweep_packing(Session& session) {
  const Settings& settings = session.settings;
  SweepOptions options = settings.sweep;
  options.policy = settings.pack.policy;
  options.packing = settings.pack.packing;
  options.seed = settings.pack.seed;
  const auto begin = Clock::now();
  const SweepResult result = sweep(settings.inputs, settings.pack.read, options, session.context);
  const double seconds = seconds_since(begin);
  return {.text = sweep_to_text(result, settings.verbose),
          .csv = sweep_to_csv(result),
          .json = sweep_to_json(result, seconds),
          .tokens = result.lengths.tokens(),
          .seconds = seconds};
}

Outcome run_sweep(Session& session) {
  const Settings& settings = session.settings;
  const bool as_json = ends_with(settings.output, ".json");
  if (!settings.output.empty() && settings.output != "-") {
    if (!as_json && !ends_with(settings.output, ".csv"))
      throw Error(ErrorCode::usage, "a sweep is .csv or .json", settings.output);
    check_output_file(settings.output, settings.pack.force,
                      as_json             ? kSweepJsonSignature
                      : settings.batching ? kBatchSweepCsvSignature
                                          : kSweepCsvSignature);
  }
  const SweepTexts swept = settings.batching ? sweep_batches(session) : sweep_packing(session);

  Outcome outcome{.facts = {.tokens = swept.tokens, .input_bytes = 0, .output_bytes = 0, .seconds = swept.seconds}};
  if (!settings.output.empty() && !settings.pack.dry_run) {
    write_output(settings.output, as_json ? swept.json : swept.csv);
    outcome.facts.output_bytes = static_cast<std::int64_t>(as_json ? swept.json.size() : swept.csv.size());
  }
  if (settings.csv) {
    print_report(session, swept.csv, swept.csv);
  } else {
    print_summary(session, swept.text, swept.json);
  }
  return outcome;
}

// ---- pack -------------------------------------------------------------------------------------------------------------------

Outcome run_pack(Session& session) {
  const Settings& settings = session.settings;
  const auto begin = Clock::now();
  const PackResult result = pack(settings.inputs, settings.output, settings.pack, session.context);
  const PackRun run{.output = settings.output, .dry_run = settings.pack.dry_run, .seconds = seconds_since(begin)};

  session.progress.close();
  if (!settings.quiet) session.console.line(pack_summary(result, run));
  if (settings.json) write_standard_output(pack_to_json(result, run));
  Outcome outcome{.facts = {.tokens = result.manifest.source_tokens,
                            .input_bytes = total_bytes(result.manifest.sources),
                            .output_bytes = run.dry_run ? 0 : result.bytes_written,
                            .seconds = run.seconds}};
  if (settings.fail_under && result.manifest.rows == 0) {
    session.log.error("there are no rows, which --fail-under takes for a failure: are these the right inputs?");
    outcome.negative = true;
  } else if (settings.fail_under && result.manifest.efficiency() * 100 < *settings.fail_under) {
    session.log.error(fmt::format("efficiency {} is under --fail-under {:g}", percent_text(result.manifest.efficiency()),
                                  *settings.fail_under));
    outcome.negative = true;
  }
  return outcome;
}

// ---- join -------------------------------------------------------------------------------------------------------------------

Outcome run_join(Session& session) {
  const Settings& settings = session.settings;
  const std::string& output = settings.inputs.front();
  const auto begin = Clock::now();
  const PackResult result = join(output, {.force = settings.pack.force, .dry_run = settings.pack.dry_run}, session.context);
  const PackRun run{.output = output, .dry_run = settings.pack.dry_run, .seconds = seconds_since(begin), .command = "join"};
  session.progress.close();
  if (!settings.quiet) session.console.line(pack_summary(result, run));
  if (settings.json) write_standard_output(pack_to_json(result, run));
  return {.facts = {.tokens = result.manifest.source_tokens,
                    .input_bytes = total_bytes(result.manifest.sources),
                    .output_bytes = run.dry_run ? 0 : result.bytes_written,
                    .seconds = run.seconds},
          .negative = false};
}

// ---- batch ------------------------------------------------------------------------------------------------------------------

Outcome run_batch(Session& session) {
  const Settings& settings = session.settings;
  BatchJobOptions options = settings.batch;
  options.read = settings.pack.read;
  options.policy = settings.pack.policy;
  options.force = settings.pack.force;
  options.dry_run = settings.pack.dry_run;
  options.policy.row_tokens = settings.max_length;
  options.resume = settings.pack.resume;
  if (options.write_shards) {
    options.write_shards->pad_id = settings.pack.pad_id.value_or(0);
    options.write_shards->id_type = settings.pack.id_type;
    options.write_shards->zstd_level = settings.pack.zstd_level;
    options.write_shards->shard_bytes = settings.pack.shard_bytes;
  }
  options.cost = cost_model(settings);

  const auto begin = Clock::now();
  const BatchResult result = batch(settings.inputs, settings.output, options, session.context);
  const BatchRun run{.output = settings.output, .dry_run = options.dry_run, .seconds = seconds_since(begin)};

  session.progress.close();
  if (!settings.quiet) session.console.line(batch_summary(result, run));
  if (settings.json) write_standard_output(batch_to_json(result, run));
  return {.facts = {.tokens = result.manifest.source_tokens,
                    .input_bytes = total_bytes(result.manifest.sources),
                    .output_bytes = result.bytes_written,
                    .seconds = run.seconds},
          .negative = false};
}

// ---- verify and inspect -----------------------------------------------------------------------------------------------------

Outcome run_verify(Session& session) {
  const Settings& settings = session.settings;
  const std::string& path = settings.inputs.front();
  const auto begin = Clock::now();
  const VerifyResult result = verify(path, settings.verify, session.context);
  const double seconds = seconds_since(begin);

  const std::string text = verify_to_text(result, path, seconds), json = verify_to_json(result, path, seconds);
  if (result.ok()) {
    print_summary(session, text, json);
  } else {
    print_report(session, text, json);  // what is wrong is said even with -q
  }
  return {.facts = {.tokens = result.tokens, .input_bytes = result.bytes, .output_bytes = 0, .seconds = seconds},
          .negative = !result.ok()};
}

Outcome run_inspect(Session& session) {
  const Settings& settings = session.settings;
  const InspectOptions options{.read = settings.pack.read, .row = settings.row, .sequence = settings.sequence};
  const auto begin = Clock::now();
  const InspectResult result = inspect(settings.inputs.front(), options, session.context);
  const double seconds = seconds_since(begin);
  print_report(session, inspect_to_text(result), inspect_to_json(result, seconds));
  return {.facts = {.tokens = 0, .input_bytes = 0, .output_bytes = 0, .seconds = seconds}, .negative = false};
}

// ---- unpack -----------------------------------------------------------------------------------------------------------------

Outcome run_unpack(Session& session) {
  const Settings& settings = session.settings;
  const UnpackOptions options{.format = settings.unpack_format,
                              .zstd_level = settings.pack.zstd_level,
                              .against = settings.verify.against,
                              .force = settings.pack.force,
                              .dry_run = settings.pack.dry_run};
  const auto begin = Clock::now();
  const UnpackResult result = unpack(settings.inputs.front(), settings.output, options, session.context);
  const UnpackRun run{.output = settings.output, .dry_run = options.dry_run, .seconds = seconds_since(begin)};
  session.progress.close();
  if (!settings.quiet) session.console.line(unpack_summary(result, run));
  if (settings.json) write_standard_output(unpack_to_json(result, run));
  return {.facts = {.tokens = result.tokens, .input_bytes = 0, .output_bytes = result.bytes_written, .seconds = run.seconds},
          .negative = false};
}

// ---- ltd and lint -----------------------------------------------------------------------------------------------------------

Outcome run_ltd(Session& session) {
  const Settings& settings = session.settings;
  LtdOptions options = settings.ltd;
  options.seed = settings.pack.seed;
  options.force = settings.pack.force;
  options.dry_run = settings.pack.dry_run;
  const auto begin = Clock::now();
  if (settings.kept_at) {
    const KeptSlots kept = ltd_kept_at(settings.inputs, options, *settings.kept_at, session.context);
    print_report(session, kept_to_text(kept), kept_to_json(kept));
    return {};
  }
  const LtdResult result = ltd(settings.inputs, settings.output, options, session.context);
  const LtdRun run{.output = settings.output, .dry_run = options.dry_run, .seconds = seconds_since(begin)};
  session.progress.close();
  if (!settings.quiet) session.console.line(ltd_summary(result, run));
  if (settings.json) write_standard_output(ltd_to_json(result, run));
  return {.facts = {.tokens = result.manifest.effective_tokens,
                    .input_bytes = 0,
                    .output_bytes = result.bytes_written,
                    .seconds = run.seconds},
          .negative = false};
}

Outcome run_lint(Session& session) {
  const std::string& path = session.settings.inputs.front();
  const LintResult result = lint(path, session.settings.lint);
  const std::string text = lint_to_text(result, path), json = lint_to_json(result, path);
  if (result.findings.empty()) {
    print_summary(session, text, json);
  } else {
    print_report(session, text, json);
  }
  return {.facts = {}, .negative = !result.ok()};
}

}  // namespace

Outcome run_command(Session& session) {
  switch (session.settings.command) {
    case Command::scan:
      return run_scan(session);
    case Command::plan:
      return run_plan(session);
    case Command::sweep:
      return run_sweep(session);
    case Command::pack:
      return run_pack(session);
    case Command::join:
      return run_join(session);
    case Command::batch:
      return run_batch(session);
    case Command::verify:
      return run_verify(session);
    case Command::inspect:
      return run_inspect(session);
    case Command::unpack:
      return run_unpack(session);
    case Command::ltd:
      return run_ltd(session);
    case Command::lint:
      return run_lint(session);
    case Command::formats:
      if (const std::string& preset = session.settings.formats_for; preset.empty()) {
        print_report(session, formats_to_text(), formats_to_json());
      } else {
        print_report(session, preset_to_text(find_preset(preset)), preset_to_json(find_preset(preset)));
      }
      break;
    case Command::version:
      print_report(session, versions_text(), versions_json());
      break;
  }
  return {};
}

}  // namespace shardpack
