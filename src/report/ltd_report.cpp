#include "report/ltd_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "base/wrap.h"
#include "report/figures.h"

namespace shardpack {

namespace {

constexpr std::size_t kShownPlateaus = 16;
constexpr std::int64_t kBarColumns = 20;  ///< of a row that is kept whole

std::string schedule_text(const LtdSetup& setup) {
  const LtdSchedule& schedule = setup.schedule;
  std::string text =
      fmt::format("{} to {} of {} tokens in steps of {} over {} steps, in {} of {} layers", with_commas(schedule.growth.start),
                  with_commas(schedule.growth.max), with_commas(schedule.seq_length), schedule.growth.granularity,
                  with_commas(schedule.growth.ramp_steps), schedule.ltd_layers, schedule.layers);
  if (schedule.kept_length == KeptLength::ratio) text += ", the same share of shorter batches";
  if (schedule.curriculum.kind != CurriculumKind::none) {
    text += fmt::format("; rows under a {} curriculum ({})", kCurriculumKinds[static_cast<std::size_t>(schedule.curriculum.kind)],
                        kCurriculumUses[static_cast<std::size_t>(schedule.curriculum.use)]);
  }
  return text;
}

std::string saving_text(const LtdManifest& manifest) {
  std::string text = fmt::format("{} of LayerTokens, {} of attention", percent_text(manifest.saving()),
                                 percent_text(manifest.attention.saving()));
  if (manifest.setup.hidden_size > 0) text += fmt::format(", {} of FLOPs", percent_text(manifest.flop_saving));
  return text;
}

std::string budget_text(const LtdManifest& manifest) {
  const BudgetEnd& end = manifest.budget;
  return fmt::format("{} {}: reached in micro-step {}, {} optimizer steps finished, at {} effective tokens",
                     with_commas(manifest.setup.budget.amount),
                     manifest.setup.budget.kind == BudgetKind::layer_tokens
                         ? "LayerTokens"
                         : kBudgetKinds[static_cast<std::size_t>(manifest.setup.budget.kind)],
                     with_commas(end.micro_step), with_commas(end.optimizer_step), with_commas(end.tokens));
}

std::string dataset_text(const LtdManifest& manifest) {
  const LtdAttention& attention = manifest.attention;
  const LtdDataset& dataset = *manifest.dataset;
  std::string text =
      dataset.kind == LtdRowSource::packed
          ? fmt::format("{} rows of {} slots, {} segments; packing", with_commas(dataset.rows), with_commas(dataset.row_tokens),
                        with_commas(dataset.segments))
          : fmt::format(
                "{} batches in {} steps: {} rows of {} tokens, padded to {} at most; with padding {} of {} LayerTokens; "
                "leaving padding out",
                with_commas(dataset.batches), with_commas(dataset.steps), with_commas(dataset.rows), with_commas(dataset.tokens),
                with_commas(dataset.row_tokens), with_commas(manifest.padded.layer_tokens),
                with_commas(manifest.padded.dense_layer_tokens));
  text +=
      fmt::format(" and dropping together save {} of attention", percent_text(1 - attention.pairs / attention.full_row_pairs));
  if (attention.segments > 0 && attention.empty_segments > 0) {
    text +=
        fmt::format("; {:.3g} % of segments are left without a kept token", 100 * attention.empty_segments / attention.segments);
  }
  return text;
}

std::string rate_text(const LearningRate& rate) {
  return fmt::format("peak {:g}, {} to {:g}, warm-up over {} LayerTokens, end at {}", rate.peak,
                     kLrDecays[static_cast<std::size_t>(rate.decay)], rate.decay == LrDecay::constant ? rate.peak : rate.min,
                     with_commas(rate.warmup_layer_tokens), with_commas(rate.decay_layer_tokens));
}

/// A report line that goes on below its value where it would leave the page.
std::string wrapped_line(std::string_view label, std::string_view value) {
  std::string text = report_line(label, "");
  text.pop_back();  // its newline
  append_words(text, value, text.size());
  return text + '\n';
}

/// The figures that ltd and inspect have in common.
void write_figures(JsonWriter& json, const LtdManifest& manifest) {
  json.member("steps", manifest.steps).member("plateaus", manifest.plateaus);
  json.member("layer_tokens", manifest.layer_tokens).member("dense_layer_tokens", manifest.dense_layer_tokens);
  json.member("effective_tokens", manifest.effective_tokens);
  json.member("saving", manifest.saving()).member("attention_saving", manifest.attention.saving());
  json.key("flop_saving");
  if (manifest.setup.hidden_size > 0) {
    json.value(manifest.flop_saving);
  } else {
    json.null();
  }
  json.key("budget").begin_object(true);
  json.member("kind", kBudgetKinds[static_cast<std::size_t>(manifest.setup.budget.kind)])
      .member("amount", manifest.setup.budget.amount);
  json.member("micro_step", manifest.budget.micro_step).member("optimizer_step", manifest.budget.optimizer_step);
  json.member("tokens", manifest.budget.tokens).member("layer_tokens", manifest.budget.layer_tokens).end_object();
  json.member("selection", kKeptModes[static_cast<std::size_t>(manifest.setup.mode)]);
  json.member("count", kTokenCounts[static_cast<std::size_t>(manifest.setup.schedule.count)]);
  json.key("dataset");
  if (manifest.dataset) {
    const LtdDataset& dataset = *manifest.dataset;
    json.begin_object(true).member("kind", kLtdRowSources[static_cast<std::size_t>(dataset.kind)]);
    json.member("rows", dataset.rows).member("segments", dataset.segments).member("tokens", dataset.tokens);
    json.member("batches", dataset.batches).member("steps", dataset.steps);
    json.member("real_layer_tokens", manifest.real.layer_tokens).member("padded_layer_tokens", manifest.padded.layer_tokens);
    json.end_object();
  } else {
    json.null();
  }
  json.key("warnings").begin_array();
  for (const std::string& warning : manifest.warnings) json.value(warning);
  json.end_array();
}

}  // namespace

std::string ltd_summary(const LtdResult& result, const LtdRun& run) {
  const LtdManifest& manifest = result.manifest;
  std::string text = fmt::format("keeps {}\n", schedule_text(manifest.setup));
  text += fmt::format("{} steps, {} LayerTokens: saves {}\n", with_commas(manifest.steps), with_commas(manifest.layer_tokens),
                      saving_text(manifest));
  text += fmt::format("budget {}\n", budget_text(manifest));
  if (manifest.dataset) text += dataset_text(manifest) + "\n";
  const std::string folder = !run.output.empty() && run.output.back() == '/' ? run.output : run.output + "/";
  if (run.dry_run) return text + "nothing was written (--dry-run)";
  return text + fmt::format("wrote {} to {} in {:.1f} s; read with: np.load(\"{}steps.npy\")", short_bytes(result.bytes_written),
                            folder, run.seconds, folder);
}

std::string ltd_to_json(const LtdResult& result, const LtdRun& run) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", 1).member("command", "ltd");
  write_figures(json, result.manifest);
  json.member("output", run.output).member("dry_run", run.dry_run).member("bytes_written", result.bytes_written);
  json.member("seconds", run.seconds);
  json.end_object();
  return json.take() + "\n";
}

std::string kept_to_text(const KeptSlots& kept) { return fmt::format("{}\n", fmt::join(kept.slots, " ")); }

std::string kept_to_json(const KeptSlots& kept) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", 1).member("command", "ltd");
  json.member("step", kept.place.step).member("layer", kept.place.layer).member("row", kept.place.row);
  json.member("row_tokens", kept.shape.row_tokens).member("kept", static_cast<std::int64_t>(kept.slots.size()));
  json.key("slots").begin_array(true);
  for (const std::uint32_t slot : kept.slots) json.value(std::int64_t{slot});
  json.end_array().end_object();
  return json.take() + "\n";
}

std::string ltd_view_to_text(const LtdView& view, const std::string& path) {
  const LtdManifest& manifest = view.manifest;
  const LtdSetup& setup = manifest.setup;
  std::string text = fmt::format("{}: random-LTD schedule by shardpack {}\n", path, manifest.tool_version);
  text += report_line("kept", schedule_text(setup));
  const bool batches = manifest.dataset && manifest.dataset->kind == LtdRowSource::batches;
  text += report_line("steps", fmt::format("{} of {}{} rows ({} x {} x {})", with_commas(manifest.steps), batches ? "up to " : "",
                                           with_commas(setup.schedule.global_batch()), setup.schedule.micro_batch,
                                           setup.schedule.accumulation, setup.schedule.world));
  text += report_line("LayerTokens", fmt::format("{} of {} without dropping", with_commas(manifest.layer_tokens),
                                                 with_commas(manifest.dense_layer_tokens)));
  text += report_line("saves", saving_text(manifest));
  text += report_line("budget", budget_text(manifest));
  text += report_line("lr", rate_text(setup.rate));
  text += report_line("selection", fmt::format("{}, seed {}", kKeptModes[static_cast<std::size_t>(setup.mode)], setup.seed));
  if (manifest.dataset) text += wrapped_line("dataset", dataset_text(manifest));
  for (const std::string& warning : manifest.warnings) text += wrapped_line("warning", warning);

  text += fmt::format("plateaus\n  {:>11} {:>11} {:>7} {:>7}  {:<{}} {:>20} {:>12}\n", "first step", "steps", "kept", "row", "",
                      kBarColumns, "LayerTokens", "lr at first");
  const std::size_t count = view.plateaus.size(), shown = std::min(count, kShownPlateaus);
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t p = shown < 2 ? 0 : i * (count - 1) / (shown - 1);
    const LtdPlateau& plateau = view.plateaus[p];
    const std::int64_t bar = kBarColumns * plateau.shape.kept / std::max<std::int64_t>(setup.schedule.seq_length, 1);
    text += fmt::format("  {:>11} {:>11} {:>7} {:>7}  {:<{}} {:>20} {:>12.4g}\n", with_commas(plateau.first_step),
                        with_commas(plateau.steps), plateau.shape.kept, plateau.shape.row_tokens,
                        std::string(static_cast<std::size_t>(bar), '#'), kBarColumns, with_commas(plateau.layer_tokens),
                        view.rates[p]);
  }
  if (count > shown) text += fmt::format("  {} of {} plateaus (--json and plateaus.json have all)\n", shown, count);
  return text;
}

void write_ltd_view(JsonWriter& json, const LtdView& view) {
  json.member("kind", "ltd");
  write_figures(json, view.manifest);
  json.key("schedule").begin_array();
  for (std::size_t p = 0; p < view.plateaus.size(); ++p) {
    const LtdPlateau& plateau = view.plateaus[p];
    json.begin_object(true).member("kept", plateau.shape.kept).member("row_tokens", plateau.shape.row_tokens);
    json.member("first_step", plateau.first_step).member("steps", plateau.steps).member("layer_tokens", plateau.layer_tokens);
    json.key("lr").value(view.rates[p], 12).end_object();
  }
  json.end_array();
  json.key("last_lr").value(view.last_rate, 12);
}

}  // namespace shardpack
