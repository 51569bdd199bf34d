#include "jobs/verify_ltd.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/checked.h"
#include "base/hash.h"
#include "base/units.h"
#include "exec/ordered_map.h"
#include "io/file.h"
#include "io/ltd_files.h"
#include "io/npy.h"
#include "io/owned_folder.h"
#include "io/packed_dataset.h"
#include "jobs/ltd_indices.h"
#include "jobs/ltd_rows.h"
#include "jobs/ltd_samples.h"
#include "jobs/verify_issues.h"
#include "shardpack/lint.h"

namespace shardpack {

namespace {

namespace fs = std::filesystem;

/// One folder, checked from its files to its figures.
class LtdCheck {
 public:
  LtdCheck(std::string folder, const RunContext& context, VerifyResult& result)
      : folder_(std::move(folder)), context_(context), result_(result) {}

  void run(const std::vector<std::string>& against) {
    if (!read_manifest() || !check_files()) return finish();
    if (!against.empty()) read_rows(against);
    check_setup();
    if (issues_.empty()) check_steps();
    if (issues_.empty()) check_figures();
    if (issues_.empty()) check_texts();
    if (issues_.empty()) check_indices();
    finish();
  }

 private:
  std::string path(std::string_view name) const { return fmt::format("{}/{}", folder_, name); }
  void add(std::string_view kind, std::string_view file, std::string message) { issues_.add(kind, file, std::move(message)); }
  void checked(std::string line) { result_.checked.push_back(std::move(line)); }
  const LtdRowTable* rows() const { return rows_ ? &rows_->table : nullptr; }
  bool exact() const { return !manifest_.dataset || rows_; }  // every LayerToken can be counted again

  void finish() { result_.issues = issues_.take(); }

  bool read_manifest() {
    const std::string text = read_small_file(path(kManifestName));
    result_.bytes = static_cast<std::int64_t>(text.size());
    try {
      manifest_ = ltd_manifest_from_json(text, path(kManifestName));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_data) throw;
      add("manifest", kManifestName, without_path(error));
      return false;
    }
    return true;
  }

  /// Sizes and hashes of what is listed, and nothing else in the folder.
  bool check_files() {
    std::set<std::string> listed{std::string(kManifestName)};
    std::vector<std::byte> block(std::size_t{1} << 20);
    context_.progress.begin_stage("reading", 0, "bytes");
    for (const ManifestFile& file : manifest_.files) {
      listed.insert(file.name);
      std::error_code missing;
      if (!fs::is_regular_file(fs::symlink_status(path(file.name), missing))) {
        add("missing", file.name, "the manifest lists it");
        continue;
      }
      const File stored(path(file.name), File::Mode::read);
      if (stored.size() != file.bytes) {
        add("size", file.name, fmt::format("{} bytes, expected {}", with_commas(stored.size()), with_commas(file.bytes)));
        continue;
      }
      StreamHash hash;
      for (std::int64_t at = 0; at < file.bytes;) {
        throw_if_stopped(context_.stop);
        const std::size_t read = stored.read_some_at(at, block);
        if (read == 0) break;
        hash.update(std::span<const std::byte>(block).first(read));
        at += static_cast<std::int64_t>(read);
        context_.progress.advance(static_cast<std::int64_t>(read));
      }
      if (hash.hex() != file.hash) add("checksum", file.name, fmt::format("XXH3-128 {}, expected {}", hash.hex(), file.hash));
      result_.bytes += file.bytes;
    }
    context_.progress.end_stage();
    for (const std::string_view name : {kPlateausFile, kStepsFile, kDeepSpeedFile, kSelectionFile}) {
      if (!listed.contains(std::string(name))) add("manifest", kManifestName, fmt::format("{} is not listed", name));
    }
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder_)) {
      const std::string name = entry.path().lexically_relative(folder_).string();
      if (!entry.is_directory() && name != kOwnerMarker && !listed.contains(name))
        add("extra", name, "the manifest does not list it");
    }
    checked(fmt::format("files: {}, {}: sizes, XXH3-128, nothing else in the folder", manifest_.files.size() + 1,
                        short_bytes(result_.bytes)));
    return issues_.empty();
  }

  void read_rows(const std::vector<std::string>& against) {
    if (!manifest_.dataset) {
      throw Error(ErrorCode::usage, "--against: this schedule was made without a dataset", folder_);
    }
    rows_ = read_ltd_rows(against, context_);
    const LtdDataset &made_for = *manifest_.dataset, &given = rows_->dataset;
    if (given.hash != made_for.hash || given.kind != made_for.kind || given.rows_hash != made_for.rows_hash) {
      add("dataset", "", fmt::format("made for the manifest {}; that of {} is {}", made_for.hash, against.front(), given.hash));
    }
  }

  void check_setup() {
    const LtdSetup& setup = manifest_.setup;
    try {
      check_schedule(setup.schedule);
    } catch (const Error& error) {
      add("options", kManifestName, error.message());
    }
    const auto layers = static_cast<std::int64_t>(setup.layer_ids.size());
    const bool ascending =
        std::adjacent_find(setup.layer_ids.begin(), setup.layer_ids.end(), std::greater_equal<>()) == setup.layer_ids.end();
    if (layers != setup.schedule.ltd_layers || !ascending ||
        (layers > 0 && (setup.layer_ids.front() < 0 || setup.layer_ids.back() >= setup.schedule.layers))) {
      add("options", kManifestName, "layer_ids are not ltd_layers different layers in ascending order");
    }
    if (rows() != nullptr && rows()->widest() > setup.schedule.seq_length)
      add("options", kManifestName,
          fmt::format("seq_length {}, but rows have {} slots", setup.schedule.seq_length, rows()->widest()));
    if (rows() != nullptr && rows()->in_batches() &&
        (setup.schedule.world != rows()->batches().world || setup.schedule.accumulation != rows()->batches().accumulation)) {
      add("options", kManifestName, "ranks or micro-steps are not those of the batch plan");
    }
    if (setup.rate.decay != LrDecay::constant && setup.rate.decay_layer_tokens < 1)
      add("options", kManifestName, "a decay that ends at 0 LayerTokens");
  }

  /// What one step must cost: exactly, or with packed rows that are not at hand, at most.
  void check_cost(std::int64_t step, const StepShape& shape, const LtdStep& stored) {
    const LtdSchedule& schedule = manifest_.setup.schedule;
    std::int64_t layer_tokens = 0, effective = 0;
    // (L - K) of the layers see all of the row, K of them at most what is kept.
    const auto cost = [&](std::int64_t tokens, std::int64_t kept) {
      return schedule.layers * tokens - schedule.ltd_layers * std::max<std::int64_t>(0, tokens - kept);
    };
    const auto count = [&](std::int64_t times, std::int64_t tokens, std::int64_t kept) {
      layer_tokens += times * cost(tokens, kept);
      effective += times * (cost(tokens, kept) / schedule.layers);
      dense_ += times * schedule.layers * tokens;
    };
    if (rows() == nullptr) {
      count(schedule.global_batch() * shape.pieces, shape.row_tokens, kept_in(schedule, shape, shape.row_tokens));
    } else {
      const LtdReads reads = rows()->of_steps(schedule, step);
      for (std::int64_t read = reads.first; read < reads.first + reads.count; ++read) {
        const LtdRow row = rows()->at(read);
        const std::int64_t kept = kept_in(schedule, shape, row.width), real = row.counts ? row.tokens : 0;
        count(1, schedule.count == TokenCount::padded ? row.width : real, kept);
        real_.layer_tokens += cost(real, kept);
        real_.dense_layer_tokens += schedule.layers * real;
        padded_.layer_tokens += cost(row.width, kept);
        padded_.dense_layer_tokens += schedule.layers * row.width;
      }
    }
    const std::int64_t before = step == 0 ? 0 : steps_[static_cast<std::size_t>(step) - 1].effective_tokens;
    const std::int64_t more = stored.effective_tokens - before;
    const bool holds = exact()
                           ? stored.layer_tokens == layer_tokens && more == effective
                           : stored.layer_tokens >= 0 && stored.layer_tokens <= layer_tokens && more >= 0 && more <= effective;
    if (!holds) {
      add("steps", kStepsFile,
          fmt::format("step {}: {} LayerTokens and {} effective tokens, expected {}{} and {}", with_commas(step),
                      with_commas(stored.layer_tokens), with_commas(more), exact() ? "" : "at most ", with_commas(layer_tokens),
                      with_commas(effective)));
    }
  }

  void check_steps() {
    try {
      steps_ = steps_from_npy(read_small_file(path(kStepsFile)), std::string(kStepsFile));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_data) throw;
      return add("steps", kStepsFile, without_path(error));
    }
    if (steps_.empty()) return add("steps", kStepsFile, "there are no steps");
    const LtdSetup& setup = manifest_.setup;
    std::int64_t cumulative = 0, counted = 0;  // counted: what the learning rate knows of
    for (std::size_t s = 0; s < steps_.size() && issues_.empty(); ++s) {
      const LtdStep& stored = steps_[s];
      const auto step = static_cast<std::int64_t>(s);
      const StepShape shape = shape_at(setup.schedule, step);
      if (stored.kept != shape.kept) {
        add("steps", kStepsFile, fmt::format("step {} keeps {} tokens, expected {}", with_commas(step), stored.kept, shape.kept));
      }
      check_cost(step, shape, stored);
      const std::int64_t before = cumulative;
      cumulative = checked_add(cumulative, stored.layer_tokens, "LayerTokens");
      if (stored.cumulative != cumulative) {
        add("steps", kStepsFile,
            fmt::format("step {}: cumulative {}, expected {}", with_commas(step), with_commas(stored.cumulative),
                        with_commas(cumulative)));
      }
      // A cosine may differ in its last place between mathematical libraries.
      const double rate = learning_rate(setup.rate, setup.rate.lag == 0 ? before : counted);
      if (!(std::abs(stored.learning_rate - rate) <= 1e-12 * std::max(std::abs(setup.rate.peak), std::abs(rate)))) {
        add("steps", kStepsFile,
            fmt::format("step {}: learning rate {}, expected {}", with_commas(step), stored.learning_rate, rate));
      }
      counted = before;
    }
    checked(fmt::format("steps: {}: kept tokens, {} LayerTokens{}, learning rates",
                        with_commas(static_cast<std::int64_t>(steps_.size())), with_commas(cumulative),
                        exact() ? "" : " (sums and limits; --against the dataset counts them)"));
    result_.tokens = cumulative;
    result_.rows = static_cast<std::int64_t>(steps_.size());
  }

  void expect(std::string_view key, std::int64_t found, std::int64_t expected) {
    if (found != expected)
      add("manifest", kManifestName, fmt::format("{} is {}, expected {}", key, with_commas(found), with_commas(expected)));
  }

  void check_figures() {
    const LtdSetup& setup = manifest_.setup;
    const LtdStep& last = steps_.back();
    expect("steps", manifest_.steps, static_cast<std::int64_t>(steps_.size()));
    expect("layer_tokens", manifest_.layer_tokens, last.cumulative);
    expect("effective_tokens", manifest_.effective_tokens, last.effective_tokens);
    if (exact()) expect("dense_layer_tokens", manifest_.dense_layer_tokens, dense_);
    if (rows_) check_dataset(*manifest_.dataset, rows_->dataset);

    // The run ends with the step in which the budget is reached.
    const std::int64_t steps = manifest_.steps, amount = setup.budget.amount;
    const auto consumed = [&](const LtdStep& step) {
      return setup.budget.kind == BudgetKind::tokens ? step.effective_tokens : step.cumulative;
    };
    const bool ends = setup.budget.kind == BudgetKind::steps
                          ? steps == amount
                          : consumed(last) >= amount && (steps == 1 || consumed(steps_[steps_.size() - 2]) < amount);
    if (!ends)
      add("budget", kStepsFile,
          fmt::format("the last step is not where the budget of {} {} is reached", with_commas(amount),
                      kBudgetKinds[static_cast<std::size_t>(setup.budget.kind)]));
    const BudgetEnd& end = manifest_.budget;
    const std::int64_t accumulation = setup.schedule.accumulation;
    if (ceil_div(end.micro_step, accumulation) != steps || end.optimizer_step != end.micro_step / accumulation ||
        end.tokens > last.effective_tokens || end.layer_tokens > last.cumulative) {
      add("budget", kManifestName, "the budget's end does not lie in the last step");
    }
    if (exact()) {
      const LtdTable again = make_ltd_table(setup.schedule, setup.budget, setup.rate, rows());
      expect("budget.micro_step", end.micro_step, again.budget.micro_step);
      expect("budget.tokens", end.tokens, again.budget.tokens);
      expect("budget.layer_tokens", end.layer_tokens, again.budget.layer_tokens);
    }
    checked(fmt::format("budget: {} {}: reached in micro-step {}", with_commas(amount),
                        kBudgetKinds[static_cast<std::size_t>(setup.budget.kind)], with_commas(end.micro_step)));
  }

  void check_dataset(const LtdDataset& stated, const LtdDataset& found) {
    expect("dataset.rows", stated.rows, found.rows);
    expect("dataset.row_tokens", stated.row_tokens, found.row_tokens);
    expect("dataset.segments", stated.segments, found.segments);
    expect("dataset.tokens", stated.tokens, found.tokens);
    expect("dataset.batches", stated.batches, found.batches);
    expect("dataset.steps", stated.steps, found.steps);
    expect("dataset.real.layer_tokens", manifest_.real.layer_tokens, real_.layer_tokens);
    expect("dataset.real.dense_layer_tokens", manifest_.real.dense_layer_tokens, real_.dense_layer_tokens);
    expect("dataset.padded.layer_tokens", manifest_.padded.layer_tokens, padded_.layer_tokens);
    expect("dataset.padded.dense_layer_tokens", manifest_.padded.dense_layer_tokens, padded_.dense_layer_tokens);
  }

  /// Plateaus from the steps themselves.
  std::vector<LtdPlateau> plateaus_again() const {
    std::vector<LtdPlateau> plateaus;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      const auto step = static_cast<std::int64_t>(s);
      const StepShape shape = shape_at(manifest_.setup.schedule, step);
      if (plateaus.empty() || !(plateaus.back().shape == shape)) {
        plateaus.push_back(
            {.shape = shape, .first_step = step, .layer_tokens_per_step = manifest_.dataset ? -1 : steps_[s].layer_tokens});
      }
      ++plateaus.back().steps;
      plateaus.back().layer_tokens += steps_[s].layer_tokens;
    }
    return plateaus;
  }

  void check_texts() {
    plateaus_ = plateaus_again();
    expect("plateaus", manifest_.plateaus, static_cast<std::int64_t>(plateaus_.size()));
    if (read_small_file(path(kPlateausFile)) != plateaus_to_json(plateaus_))
      add("plateaus", kPlateausFile, "not the plateaus of steps.npy");
    if (exact() && read_small_file(path(kSelectionFile)) !=
                       selection_to_json(manifest_.setup, kept_samples(manifest_.setup, plateaus_, rows()))) {
      add("selection", kSelectionFile, "not what the options and the selection's definition give");
    }
    try {
      const LintResult lint = lint_text(read_small_file(path(kDeepSpeedFile)), std::string(kDeepSpeedFile), {});
      if (!lint.random_ltd) add("config", kDeepSpeedFile, "random-LTD is not switched on");
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_data) throw;
      add("config", kDeepSpeedFile, without_path(error));
    }
    checked(fmt::format("plateaus: {}{}; ds_config.json", plateaus_.size(), exact() ? ", selection samples made again" : ""));
  }

  /// A listed array's header against the shape that it must have; the data follow at the returned place, -1 when it does not
  /// hold.
  std::int64_t check_array(const std::string& name, IdType type, const std::vector<std::int64_t>& shape) {
    const bool listed =
        std::any_of(manifest_.files.begin(), manifest_.files.end(), [&](const ManifestFile& file) { return file.name == name; });
    if (!listed) {
      add("missing", name, "the window in the manifest needs it");
      return -1;
    }
    try {
      const NpyHeader header = read_npy_header(File(path(name), File::Mode::read));
      if (header.descr == info(type).numpy && header.shape == shape && !header.fortran_order) return header.data_begin;
      add("indices", name,
          fmt::format("an array of {} {}, expected {} {}", header.descr, fmt::join(header.shape, " x "), info(type).numpy,
                      fmt::join(shape, " x ")));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_data) throw;
      add("indices", name, without_path(error));
    }
    return -1;
  }

  bool window_holds(const StepWindow& window) {
    if (window.count >= 1 && window.first < manifest_.steps && window.count <= manifest_.steps - window.first) return true;
    add("manifest", kManifestName, "a window of steps that the run does not have");
    return false;
  }

  void check_indices() {
    const LtdSetup& setup = manifest_.setup;
    if (manifest_.kept && window_holds(*manifest_.kept)) {
      if (!exact() && manifest_.dataset->kind == LtdRowSource::batches) {  // sizes are the batches'
        checked("kept: not looked into (--against the batch plan makes them again)");
      } else {
        std::int64_t bytes = 0;
        for (const KeptArray& array : kept_arrays(setup, plateaus_, *manifest_.kept, rows())) {
          bytes += array.bytes();
          const std::int64_t begin = check_array(array.name, array.type, array.npy_shape());
          if (begin >= 0 && exact()) check_kept(array, begin);
          if (!array.offsets.empty())
            compare(kKeptOffsetsFile, offsets_to_npy(array.offsets), "not where the batches' blocks begin");
        }
        checked(fmt::format("kept: {} of indices{}", short_bytes(bytes),
                            exact() ? ": every one regenerated" : ": sizes (--against the dataset regenerates them)"));
      }
    }
    if (manifest_.boundaries && window_holds(*manifest_.boundaries)) check_boundaries(*manifest_.boundaries);
  }

  void check_kept(const KeptArray& array, std::int64_t begin) {
    const File file(path(array.name), File::Mode::read);
    std::vector<std::byte> stored;
    std::int64_t at = begin;
    bool same = true;
    for_each_piece(array, manifest_.setup, rows(), context_, [&](std::span<const std::byte> expected) {
      stored.resize(expected.size());
      file.read_at(at, stored);
      same = same && std::ranges::equal(stored, expected);
      at += static_cast<std::int64_t>(expected.size());
    });
    if (!same) add("indices", array.name, "not what the selection's definition gives");
  }

  void compare(std::string_view name, const std::string& expected, const std::string& otherwise) {
    std::error_code missing;
    if (fs::is_regular_file(path(name), missing) && read_small_file(path(name), std::int64_t{1} << 40) == expected) return;
    add("indices", name, otherwise);
  }

  void check_boundaries(const StepWindow& window) {
    if (rows() == nullptr) {
      checked("cu_seqlens: not looked into (--against the dataset makes them again)");
      return;
    }
    const BoundaryFiles again = make_boundaries(manifest_.setup, window, rows_->table);
    compare(kBoundariesFile, again.boundaries, "not the boundaries of the kept tokens");
    compare(kBoundaryOffsetsFile, again.offsets, "not the boundaries of the kept tokens");
    checked("cu_seqlens: boundaries of every step and row made again");
  }

  const std::string folder_;
  const RunContext& context_;
  VerifyResult& result_;
  IssueList issues_;
  LtdManifest manifest_;
  std::optional<LtdRows> rows_;
  std::vector<LtdStep> steps_;
  std::vector<LtdPlateau> plateaus_;
  std::int64_t dense_ = 0;
  LtdTotals real_, padded_;  // with rows at hand
};

}  // namespace

VerifyResult verify_ltd(const std::string& path, const VerifyOptions& options, const RunContext& context) {
  const fs::path given(path), parent = given.parent_path();
  const std::string folder = given.filename() != kManifestName ? path : parent.empty() ? std::string(".") : parent.string();
  VerifyResult result;
  LtdCheck(folder, context, result).run(options.against);
  if (!result.ok()) result.checked.clear();
  return result;
}

}  // namespace shardpack
