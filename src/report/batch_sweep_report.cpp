#include "report/batch_sweep_report.h"

#include <fmt/format.h>

#include <cmath>

#include "base/units.h"
#include "io/json.h"
#include "report/figures.h"

namespace shardpack {

namespace {

std::int64_t whole(double value) { return std::llround(value); }

}  // namespace

std::string batch_sweep_to_text(const BatchSweepResult& result) {
  const BatchOptions& plan = result.options.plan;
  std::string text = report_line(
      "sequences", fmt::format("{} with {}", with_commas(result.sequences), counted(result.tokens, "token", "tokens")));
  text += report_line("removed", removed_text(result.removed));
  text += report_line(
      "batches", fmt::format("of {} on {} x {}; times by the {} cost model", with_commas(plan.batch_size),
                             counted(plan.world, "rank", "ranks"), with_commas(plan.accumulation), result.options.cost.name));
  if (result.rows.empty()) return text;
  text += fmt::format("\n{:<20} {:>12} {:>9} {:>8} {:>8} {:>8} {:>8} {:>11}\n", "strategy", "batches", "padding", "shapes",
                      "ranks", "free", "again", "minutes");
  for (const BatchSweepRow& row : result.rows) {
    const BatchPrediction& p = row.prediction;
    text += fmt::format("{:<20} {:>12} {:>7.2f} % {:>8} {:>7.3f}x {:>7.2f}x {:>6.2f} % {:>11.1f}\n", to_text(row.strategy),
                        with_commas(whole(p.batches)), p.padding() * 100, with_commas(whole(p.shapes)), p.imbalance,
                        p.free_imbalance, p.repeat_share * 100, row.minutes);
  }
  return text +
         "\nof one epoch; ranks: costliest against mean, in rank groups; free: if batches were shuffled freely; again: "
         "batch-mates "
         "that meet\nagain in the next epoch\n";
}

std::string batch_sweep_to_csv(const BatchSweepResult& result) {
  std::string csv =
      "strategy,batches,real_tokens,padded_tokens,padding,padded_squares,shapes,imbalance,free_imbalance,repeat_share,minutes,"
      "exact\n";
  for (const BatchSweepRow& row : result.rows) {
    const BatchPrediction& p = row.prediction;
    std::string strategy = to_text(row.strategy);
    if (strategy.find(',') != std::string::npos) strategy = '"' + strategy + '"';
    csv += fmt::format("{},{:.0f},{:.0f},{:.0f},{:.6f},{:.0f},{:.0f},{:.6f},{:.6f},{:.6f},{:.6f},{}\n", strategy, p.batches,
                       p.real_tokens, p.padded_tokens, p.padding(), p.padded_squares, p.shapes, p.imbalance, p.free_imbalance,
                       p.repeat_share, row.minutes, p.exact ? 1 : 0);
  }
  return csv;
}

std::string batch_sweep_to_json(const BatchSweepResult& result, double seconds) {
  const BatchOptions& plan = result.options.plan;
  JsonWriter json;
  json.begin_object();
  json.member("schema", 1).member("command", "sweep").member("batching", true);
  json.member("source_sequences", result.source_sequences).member("source_tokens", result.source_tokens);
  json.member("sequences", result.sequences).member("tokens", result.tokens);
  json.key("removed");
  write_removed(json, result.removed);
  json.member("batch_size", plan.batch_size).member("world", plan.world).member("accumulation", plan.accumulation);
  json.member("cost_model", result.options.cost.name);
  json.key("results").begin_array();
  for (const BatchSweepRow& row : result.rows) {
    const BatchPrediction& p = row.prediction;
    json.begin_object(true).member("strategy", to_text(row.strategy)).member("batches", whole(p.batches));
    json.member("real_tokens", whole(p.real_tokens))
        .member("padded_tokens", whole(p.padded_tokens))
        .member("padding", p.padding());
    json.key("padded_squares").value(p.padded_squares, 0);
    json.member("shapes", whole(p.shapes)).member("imbalance", p.imbalance).member("free_imbalance", p.free_imbalance);
    json.member("repeat_share", p.repeat_share).member("minutes", row.minutes).member("exact", p.exact).end_object();
  }
  json.end_array();
  json.member("seconds", seconds).end_object();
  return json.take() + "\n";
}

}  // namespace shardpack
