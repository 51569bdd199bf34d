// ltd: the schedule folder of a random-LTD run. Read ltd() as the table of contents.
#include "shardpack/ltd.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/checked.h"
#include "base/hash.h"
#include "base/units.h"
#include "io/file.h"
#include "io/ltd_files.h"
#include "io/manifest_parts.h"
#include "io/npy.h"
#include "io/packed_dataset.h"
#include "io/staged_output.h"
#include "jobs/ltd_indices.h"
#include "jobs/ltd_rows.h"
#include "jobs/ltd_samples.h"
#include "jobs/ltd_setup.h"
#include "jobs/output_place.h"
#include "jobs/pack_options.h"
#include "shardpack/error.h"
#include "shardpack/version.h"

namespace shardpack {

namespace {

const LtdRowTable* table_of(const std::optional<LtdRows>& rows) { return rows ? &rows->table : nullptr; }

/// Optimizer steps of the run.
std::int64_t steps_of(const LtdSetup& setup, const std::optional<LtdRows>& rows) {
  if (setup.budget.kind == BudgetKind::steps) return setup.budget.amount;
  return static_cast<std::int64_t>(make_ltd_table(setup.schedule, setup.budget, setup.rate, table_of(rows)).steps.size());
}

/// What batches of different lengths and sizes mean.
void append_batch_warnings(const LtdSchedule& schedule, const LtdRows& rows, std::vector<std::string>& warnings) {
  if (!rows.table.in_batches()) return;
  const LtdBatches& batches = rows.table.batches();
  std::int64_t fewest = schedule.micro_batch, untouched = 0;
  const StepShape first = shape_at(schedule, 0);
  for (std::int64_t b = 0; b < batches.batches(); ++b) {
    const Length width = batches.width[static_cast<std::size_t>(b)];
    fewest = std::min(fewest, batches.size(b));
    if (kept_in(schedule, first, width) == width) ++untouched;
  }
  if (untouched > 0 && schedule.kept_length == KeptLength::absolute) {
    warnings.push_back(
        fmt::format("{} of {} batches are padded to no more than the {} tokens that are kept at first and never drop any; "
                    "--kept-length ratio keeps a share of each",
                    with_commas(untouched), with_commas(batches.batches()), with_commas(first.kept)));
  }
  if (schedule.kept_length == KeptLength::ratio) {
    warnings.push_back(
        fmt::format("{}: the released trainer keeps equally many tokens in every batch and cannot follow "
                    "--kept-length ratio; read what each keeps from the indices",
                    kDeepSpeedFile));
  }
  if (fewest < schedule.micro_batch) {
    warnings.push_back(
        fmt::format("{}: batches hold {} to {} rows, and its batch sizes are the most; the trainer's own count of "
                    "LayerTokens is too high, take that of {}",
                    kDeepSpeedFile, fewest, schedule.micro_batch, kStepsFile));
  }
}

/// What the figures say that nobody asked for.
std::vector<std::string> warnings_of(const LtdSetup& setup, const LtdTable& table, const LtdAttention& attention,
                                     const std::optional<LtdRows>& rows) {
  std::vector<std::string> warnings;
  const KeptGrowth& growth = setup.schedule.growth;
  if (kept_at(growth, 0) < growth.start) {
    warnings.push_back(
        fmt::format("the first steps keep {} tokens, fewer than --kept-start {}: it is rounded down to a multiple of "
                    "--kept-step {}",
                    kept_at(growth, 0), growth.start, growth.granularity));
  }
  if (const LtdStep& last = table.steps.back(); last.kept < std::min(growth.max, setup.schedule.seq_length)) {
    warnings.push_back(fmt::format("the run ends at {} kept tokens: the ramp takes {} steps, and there are {}",
                                   with_commas(last.kept), with_commas(growth.ramp_steps),
                                   with_commas(static_cast<std::int64_t>(table.steps.size()))));
  }
  const LearningRate& rate = setup.rate;
  if (rate.warmup_layer_tokens >= rate.decay_layer_tokens && rate.decay != LrDecay::constant) {
    warnings.push_back(fmt::format("the warm-up of {} LayerTokens takes the whole run", with_commas(rate.warmup_layer_tokens)));
  }
  if (setup.schedule.growth.max > setup.schedule.seq_length) {
    warnings.push_back(fmt::format("--kept-max {} is above the row's {} tokens: dropping ends earlier than the ramp",
                                   with_commas(growth.max), with_commas(setup.schedule.seq_length)));
  }
  if (rows) append_batch_warnings(setup.schedule, *rows, warnings);
  if (attention.empty_segments >= 1) {
    warnings.push_back(
        fmt::format("about {} of {} times a segment is left without a kept token in a layer; cu_seqlens.npy leaves it "
                    "out{}",
                    with_commas(static_cast<std::int64_t>(attention.empty_segments)),
                    with_commas(static_cast<std::int64_t>(attention.segments)),
                    setup.mode == KeptMode::quota_min1 ? "" : "; --selection quota-min1 keeps one of each"));
  }
  return warnings;
}

/// The window of the indices. \throws Error{usage} when it is not in the run
StepWindow window_of(const LtdOptions& options, std::int64_t steps) {
  if (!options.window) return {0, steps};
  const StepWindow& window = *options.window;
  if (window.first < 0 || window.count < 1 || window.first >= steps || window.count > steps - window.first) {
    throw Error(ErrorCode::usage,
                fmt::format("--window {}:{}: the run has the steps 0 to {}", window.first, window.count, with_commas(steps - 1)));
  }
  return window;
}

void check_cap(std::int64_t bytes, const LtdOptions& options, const StepWindow& window) {
  if (bytes <= options.index_cap) return;
  throw Error(
      ErrorCode::limit,
      fmt::format("the indices of {} steps take {} bytes ({}), above --index-cap {}; write fewer with --window FIRST:COUNT, "
                  "regenerate them from {} (docs/ltd.md), or raise the cap",
                  with_commas(window.count), with_commas(bytes), short_bytes(bytes), short_bytes(options.index_cap),
                  kSelectionFile));
}

/// What of the large files is written. \throws Error{limit}
struct Indices {
  std::vector<KeptArray> kept;
  bool boundaries = false;
  StepWindow window;
  std::int64_t bytes = 0;  ///< of the kept slots; of the boundaries at most
};
Indices plan_indices(const LtdOptions& options, const LtdSetup& setup, const std::vector<LtdPlateau>& plateaus,
                     const std::optional<LtdRows>& rows, std::int64_t steps, std::vector<std::string>& warnings) {
  Indices indices;
  indices.window = window_of(options, steps);
  if (options.write_indices && rows && rows->table.in_batches()) {  // their list alone may be too much
    const std::int64_t blocks = checked_mul(indices.window.count, rows->table.batches().per_step(), "batches");
    check_cap(checked_mul(blocks, 8, "indices"), options, indices.window);
  }
  if (options.write_indices) indices.kept = kept_arrays(setup, plateaus, indices.window, table_of(rows));
  for (const KeptArray& array : indices.kept) {
    indices.bytes = checked_add(indices.bytes, array.bytes() + 8 * static_cast<std::int64_t>(array.offsets.size()), "indices");
  }
  check_cap(indices.bytes, options, indices.window);
  if (!rows) return indices;
  if (setup.mode == KeptMode::uniform) {
    warnings.emplace_back(
        "uniform selection has other segment boundaries in every layer, so there is no cu_seqlens.npy; "
        "--selection quota has one for all layers");
    return indices;
  }
  const std::int64_t bytes = boundary_bytes(setup, indices.window, rows->table);
  indices.boundaries = options.write_indices || options.window || bytes <= options.index_cap;
  if (!indices.boundaries) {
    warnings.push_back(fmt::format("no cu_seqlens.npy: it would take up to {}; --window FIRST:COUNT or --index-cap writes it",
                                   short_bytes(bytes)));
    return indices;
  }
  indices.bytes += bytes;
  check_cap(indices.bytes, options, indices.window);
  return indices;
}

/// Files of the folder, each with its entry in the manifest.
class LtdWriter {
 public:
  LtdWriter(const StagedOutput& staged, LtdManifest& manifest) : staged_(staged), manifest_(manifest) {}

  void write(std::string_view name, const std::string& bytes) {
    staged_.write_file(name, bytes);
    manifest_.files.push_back({std::string(name), static_cast<std::int64_t>(bytes.size()), hash_hex(bytes)});
  }

  void write(const std::vector<LtdStep>& steps) {
    write_pieces(std::string(kStepsFile), [&](const Append& append) {
      steps_to_npy(steps, [&](std::string_view piece) { append(std::as_bytes(std::span(piece))); });
    });
  }

  void write(const KeptArray& array, const LtdSetup& setup, const LtdRowTable* rows, const RunContext& context) {
    const std::string folder = fmt::format("{}/{}", staged_.folder(), kKeptFolder);
    if (!std::filesystem::exists(folder)) make_folder(folder);
    write_pieces(array.name, [&](const Append& append) {
      const std::string header = make_npy_header(info(array.type).numpy, array.npy_shape());
      append(std::as_bytes(std::span(header)));
      for_each_piece(array, setup, rows, context, [&](std::span<const std::byte> bytes) {
        append(bytes);
        context.progress.advance(static_cast<std::int64_t>(bytes.size()));
      });
    });
  }

 private:
  using Append = std::function<void(std::span<const std::byte>)>;

  /// A file too large to be held whole. \param produce  gives its bytes in order
  template <class Produce>
  void write_pieces(const std::string& name, Produce produce) {
    File file(fmt::format("{}/{}", staged_.folder(), name), File::Mode::create);
    StreamHash hash;
    std::int64_t at = 0;
    produce(Append([&](std::span<const std::byte> bytes) {
      file.write_at(at, bytes);
      hash.update(bytes);
      at += static_cast<std::int64_t>(bytes.size());
    }));
    file.sync();
    file.close();
    manifest_.files.push_back({name, at, hash.hex()});
  }

  const StagedOutput& staged_;
  LtdManifest& manifest_;
};

}  // namespace

LtdResult ltd(const std::vector<std::string>& row_paths, const std::string& output, const LtdOptions& options,
              const RunContext& context) {
  // The place, before anything is read.
  if (!row_paths.empty() && !output.empty()) check_output_apart(output, row_paths);
  std::optional<StagedOutput> staged;
  if (!options.dry_run) {
    staged.emplace(output, kLtdFormat, options.force, context.diagnostics);
  } else if (!output.empty()) {
    check_output_place(output, kLtdFormat, options.force);
  }

  // The rows' lengths, when there are rows; then what the run is.
  std::optional<LtdRows> rows;
  if (!row_paths.empty()) rows = read_ltd_rows(row_paths, context);
  SettledLtd settled = settle_ltd(options, rows);
  LtdSetup& setup = settled.setup;

  // Every step and what it costs, up to the budget's end.
  const LtdTable table = make_ltd_table(setup.schedule, setup.budget, setup.rate, table_of(rows));
  if (setup.rate.decay_layer_tokens == 0) setup.rate.decay_layer_tokens = table.layer_tokens;

  LtdResult result;
  LtdManifest& manifest = result.manifest;
  manifest.tool_version = kVersion;
  manifest.setup = setup;
  if (rows) manifest.dataset = rows->dataset;
  manifest.steps = static_cast<std::int64_t>(table.steps.size());
  manifest.plateaus = static_cast<std::int64_t>(table.plateaus.size());
  manifest.layer_tokens = table.layer_tokens;
  manifest.dense_layer_tokens = table.dense_layer_tokens;
  manifest.effective_tokens = table.effective_tokens;
  manifest.real = table.real;
  manifest.padded = table.padded;
  manifest.budget = table.budget;
  manifest.attention = ltd_attention(setup.schedule, table, setup.mode, table_of(rows));
  if (setup.hidden_size > 0) manifest.flop_saving = flop_saving(table, manifest.attention, setup.hidden_size);
  manifest.warnings = warnings_of(setup, table, manifest.attention, rows);
  result.plateaus = table.plateaus;

  // What a trainer of the released kind would do with it, and how large the large files get: both may refuse.
  const std::string config = settle_deepspeed(settled, rows.has_value(), options.deepspeed, manifest.warnings);
  const Indices indices = plan_indices(options, setup, table.plateaus, rows, manifest.steps, manifest.warnings);
  for (const std::string& warning : manifest.warnings) context.diagnostics.warn(warning);
  if (options.dry_run) return result;

  LtdWriter writer(*staged, manifest);
  writer.write(kPlateausFile, plateaus_to_json(table.plateaus));
  writer.write(table.steps);
  writer.write(kDeepSpeedFile, config);
  writer.write(kSelectionFile, selection_to_json(setup, kept_samples(setup, table.plateaus, table_of(rows))));
  if (indices.boundaries) {
    const BoundaryFiles files = make_boundaries(setup, indices.window, rows->table);
    writer.write(kBoundariesFile, files.boundaries);
    writer.write(kBoundaryOffsetsFile, files.offsets);
    manifest.boundaries = indices.window;
  }
  if (options.write_indices) {
    std::int64_t kept_bytes = 0;
    for (const KeptArray& array : indices.kept) kept_bytes += array.bytes();
    context.progress.begin_stage("selecting", kept_bytes, "bytes");
    for (const KeptArray& array : indices.kept) {
      writer.write(array, setup, table_of(rows), context);
      if (!array.offsets.empty()) writer.write(kKeptOffsetsFile, offsets_to_npy(array.offsets));
    }
    context.progress.end_stage();
    manifest.kept = indices.window;
  }

  // The manifest is the commit record; one rename publishes the whole.
  const std::string text = to_json(manifest);
  staged->write_file(kManifestName, text);
  result.bytes_written = static_cast<std::int64_t>(text.size());
  for (const ManifestFile& file : manifest.files) result.bytes_written += file.bytes;
  staged->publish();
  return result;
}

KeptSlots ltd_kept_at(const std::vector<std::string>& row_paths, const LtdOptions& options, const KeptPlace& place,
                      const RunContext& context) {
  if (place.step > 0xFFFFFFFF) throw Error(ErrorCode::usage, "--kept-at: steps count to 2^32 - 1");
  std::optional<LtdRows> rows;
  if (!row_paths.empty()) rows = read_ltd_rows(row_paths, context);
  LtdOptions enough = options;  // one place asks for no budget
  if (!enough.total_steps && !enough.total_tokens && !enough.total_layer_tokens) enough.total_steps = place.step + 1;
  const LtdSetup setup = settle_ltd(enough, rows).setup;
  if (const std::int64_t steps = steps_of(setup, rows); place.step >= steps)
    throw Error(ErrorCode::usage, fmt::format("--kept-at: the run has the steps 0 to {}", with_commas(steps - 1)));
  KeptSlots kept{.place = place, .shape = shape_at(setup.schedule, place.step), .slots = {}};
  const std::int64_t batch = rows_in_step(setup.schedule, kept.shape, place.step, table_of(rows));
  if (std::find(setup.layer_ids.begin(), setup.layer_ids.end(), place.layer) == setup.layer_ids.end()) {
    throw Error(ErrorCode::usage, fmt::format("--kept-at: layer {} drops no tokens; those that do are {}", place.layer,
                                              fmt::join(setup.layer_ids, ", ")));
  }
  if (place.row >= batch) throw Error(ErrorCode::usage, fmt::format("--kept-at: a step has the rows 0 to {}", batch - 1));
  kept.slots = kept_of(setup, kept.shape, place, table_of(rows));
  if (rows) kept.shape.row_tokens = rows->table.at(rows->table.of_steps(setup.schedule, place.step).first + place.row).width;
  return kept;
}

}  // namespace shardpack
