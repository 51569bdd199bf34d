#include "report/plan_report.h"

#include <fmt/format.h>

#include "base/units.h"
#include "io/json.h"
#include "report/figures.h"

namespace shardpack {

namespace {

PackingFigures figures_of(const PlanResult& result) {
  const PackingPlan& plan = result.plan;
  const PlanStats plan_stats = stats(plan);
  std::int64_t tokens = result.tokens + result.policy.added_eos + result.policy.added_bos;
  for (const RemovedCount& removed : result.policy.counts) tokens -= removed.tokens;
  return {.packer = plan.packer,
          .bound_kind = std::string(name(plan.bound.kind)),
          .row_tokens = plan.row_tokens,
          .max_segments = plan.max_segments,
          .sequences = result.policy.sequences,
          .segments = plan_stats.segments,
          .tokens = tokens,
          .unslotted = unslotted_tokens(plan.policy.slot_rule) * plan_stats.segments,
          .rows = plan_stats.rows,
          .planned_rows = plan_stats.rows,
          .bound = plan.bound.rows,
          .max_segments_in_row = plan_stats.max_segments_in_row,
          .strategies = plan.strategies()};
}

}  // namespace

std::string plan_to_text(const PlanResult& result, double seconds) {
  const PackingFigures figures = figures_of(result);
  const std::string limit =
      figures.max_segments == 0 ? "any number of segments" : "at most " + counted(figures.max_segments, "segment", "segments");
  std::string text =
      report_line("packer", fmt::format("{}, rows of {} with {}", figures.packer, with_commas(figures.row_tokens), limit));
  text += report_line("sequences",
                      fmt::format("{} with {}", with_commas(figures.sequences), counted(figures.tokens, "token", "tokens")));
  text += report_line("removed", removed_text(result.policy.counts));
  if (const auto& policy = result.policy; policy.added_eos + policy.added_bos > 0) {
    text += report_line("added", fmt::format("{} EOS, {} BOS", with_commas(policy.added_eos), with_commas(policy.added_bos)));
  }
  text += report_line("rows", with_commas(figures.rows));
  text += report_line("efficiency", percent_text(figures.efficiency()));
  text += report_line("padding", counted(figures.padding(), "token", "tokens"));
  std::string packing = fmt::format("{:.4f} {} a row", figures.speedup(), figures.packed_unit());
  if (figures.comparable_with_padding()) {
    packing += fmt::format(" of at most {:.4f}: {} of the possible speed-up over padding", figures.speedup_ceiling(),
                           percent_text(figures.speedup() / figures.speedup_ceiling()));
  }
  text += report_line("packing", packing);
  text += report_line("strategies", fmt::format("{}, up to {} a row", with_commas(figures.strategies),
                                                counted(figures.max_segments_in_row, "segment", "segments")));
  text += report_line(
      "bound", fmt::format("{} ({}): {}", counted(figures.bound, "row", "rows"), figures.bound_kind, gap_text(figures.gap())));
  text += groups_text(figures_of(result.groups));
  text += report_line("time", fmt::format("{:.3f} s", seconds));
  return text;
}

std::string plan_to_json(const PlanResult& result, double seconds) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", 1).member("command", "plan");
  write_figures(json, figures_of(result), seconds);
  json.member("source_sequences", result.sequences).member("source_tokens", result.tokens);
  json.key("removed");
  write_removed(json, result.policy.counts);
  write_groups(json, figures_of(result.groups));
  json.key("added").begin_object(true);
  json.member("eos", result.policy.added_eos).member("bos", result.policy.added_bos);
  json.end_object();
  json.end_object();
  return json.take() + "\n";
}

}  // namespace shardpack
