#include "report/batch_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "base/units.h"
#include "io/json.h"
#include "report/figures.h"

namespace shardpack {

namespace {

const char* unit(const BatchManifest& manifest) { return manifest.rows ? "rows" : "sequences"; }

double padding(const BatchManifest& manifest) {
  return manifest.padded_tokens > 0 ? 1 - static_cast<double>(manifest.real_tokens) / static_cast<double>(manifest.padded_tokens)
                                    : 0;
}

std::string minutes_text(double minutes) {
  if (minutes >= 120) return fmt::format("{:.1f} h", minutes / 60);
  if (minutes >= 1) return fmt::format("{:.1f} min", minutes);
  return fmt::format("{:.1f} s", minutes * 60);
}

std::string size_text(const BatchManifest& manifest) {
  const BatchOptions& plan = manifest.plan;
  if (!plan.strategy.has_budget()) return fmt::format("{} of {}", to_text(plan.strategy), with_commas(plan.batch_size));
  return to_text(plan.strategy);
}

/// What became of the last step; empty when it was full.
std::string tail_text(const BatchManifest& manifest) {
  std::string text;
  const auto totals = [&](const BatchTotals& t) {
    return fmt::format("{} {} ({} tokens)", with_commas(t.items), unit(manifest), with_commas(t.tokens));
  };
  if (manifest.dropped.items > 0) text = fmt::format("left out by --tail drop: {}", totals(manifest.dropped));
  if (manifest.repeated.items > 0) {
    text = fmt::format("repeated to fill the last step: {}{}", totals(manifest.repeated),
                       manifest.plan.tail == BatchTail::short_step ? " of weight 0" : "");
  }
  if (!text.empty() && manifest.epochs > 1) text += fmt::format(" over {} epochs", with_commas(manifest.epochs));
  return text;
}

std::string ranks_text(const BatchManifest& manifest) {
  const BatchOptions& plan = manifest.plan;
  if (plan.world == 1) {
    return plan.accumulation == 1 ? "one rank" : fmt::format("one rank, {} micro-batches a step", plan.accumulation);
  }
  return fmt::format("{} ranks{} wait {:.3f}x the mean (shuffled freely: {:.2f}x)", with_commas(plan.world),
                     plan.accumulation > 1 ? fmt::format(" x {} micro-batches", with_commas(plan.accumulation)) : "",
                     manifest.imbalance, manifest.free_imbalance);
}

/// "1,234 of 3,010 tokens take part in the loss (labels), 176 a step".
std::string loss_text(const BatchManifest& manifest) {
  const std::int64_t steps = manifest.steps_per_epoch() * manifest.epochs;
  std::string text = fmt::format("{} of {} tokens take part in the loss ({})", with_commas(manifest.label_tokens),
                                 with_commas(manifest.real_tokens), printable(manifest.loss_column));
  if (steps > 0) text += fmt::format(", {} a step", with_commas(manifest.label_tokens / steps));
  return text;
}

/// "shards: 3 padded, 2 epochs: 2 copies of the tokens".
std::string shards_text(const BatchManifest& manifest) {
  const BatchShards& shards = *manifest.shards;
  std::string text = shards.shards.empty() ? std::string("shards") : counted(std::ssize(shards.shards), "shard", "shards");
  text += fmt::format(" of {} batches", kBatchLayouts[static_cast<std::size_t>(shards.options.layout)]);
  if (manifest.epochs > 1)
    text += fmt::format(", the tokens {} times over: each epoch has an order of its own", with_commas(manifest.epochs));
  if (!shards.columns.empty()) text += " · carried " + columns_text(shards.columns);
  if (!shards.not_carried.empty()) text += fmt::format(" · not carried: {}", fmt::join(shards.not_carried, ", "));
  return text;
}

double quadratic_waste(const BatchResult& result) {
  return result.manifest.padded_squares > 0 ? 1 - result.real_squares / result.manifest.padded_squares : 0;
}

std::string folder_text(const std::string& output) { return !output.empty() && output.back() == '/' ? output : output + "/"; }

}  // namespace

std::string batch_summary(const BatchResult& result, const BatchRun& run) {
  const BatchManifest& manifest = result.manifest;
  std::string text =
      fmt::format("{} {} {} ({} tokens) into {} an epoch, {}: {:.2f} % padding\n", run.dry_run ? "would batch" : "batched",
                  with_commas(manifest.items), unit(manifest), short_count(manifest.tokens),
                  counted(manifest.batches_per_epoch, "batch", "batches"), size_text(manifest), padding(manifest) * 100);
  text += fmt::format("{} an epoch · {} · largest batch {} padded tokens · {} of attention is padding\n",
                      counted(manifest.steps_per_epoch(), "step", "steps"), counted(manifest.shapes, "shape", "shapes"),
                      with_commas(manifest.largest_batch), percent_text(quadratic_waste(result)));
  if (!manifest.loss_column.empty()) text += loss_text(manifest) + "\n";
  text += ranks_text(manifest);
  if (result.repeat_share) {
    text += fmt::format(" · batch-mates meet again in the next epoch: {:.2f} %", *result.repeat_share * 100);
  }
  text += fmt::format("\nremoved {}", removed_text(manifest.removed));
  if (const std::string tail = tail_text(manifest); !tail.empty()) text += " · " + tail;
  if (manifest.shards) text += fmt::format("\n{}", shards_text(manifest));
  text += fmt::format("\npredicted {} for {} ({} cost model)\n", minutes_text(manifest.predicted_minutes()),
                      counted(manifest.epochs, "epoch", "epochs"), manifest.cost.name);
  const std::string folder = folder_text(run.output);
  if (run.dry_run) {
    const std::string size =
        result.bytes_written > 0 ? fmt::format("about {} to ", short_bytes(result.bytes_written)) : std::string();
    return text + fmt::format("would write {}{}; nothing was written (--dry-run)", size, folder);
  }
  const std::string first =
      manifest.shards && !manifest.shards->shards.empty() ? manifest.shards->shards.front().folder + "/input_ids" : "members";
  return text + fmt::format("wrote {} to {} in {:.1f} s; read with: np.load(\"{}{}.npy\")", short_bytes(result.bytes_written),
                            folder, run.seconds, folder, first);
}

void write_batch_manifest(JsonWriter& json, const BatchManifest& manifest) {
  json.member("strategy", to_text(manifest.plan.strategy)).member("members", unit(manifest));
  json.member("sequences", manifest.items).member("tokens", manifest.tokens);
  json.member("source_sequences", manifest.source_sequences).member("source_tokens", manifest.source_tokens);
  json.member("batch_size", manifest.plan.batch_size);
  json.member("world", manifest.plan.world).member("accumulation", manifest.plan.accumulation).member("epochs", manifest.epochs);
  json.member("batches_per_epoch", manifest.batches_per_epoch).member("steps_per_epoch", manifest.steps_per_epoch());
  json.member("real_tokens", manifest.real_tokens).member("padded_tokens", manifest.padded_tokens);
  json.member("padding", padding(manifest)).member("padded_squares", manifest.padded_squares);
  if (!manifest.loss_column.empty())
    json.member("loss_column", manifest.loss_column).member("label_tokens", manifest.label_tokens);
  json.member("shapes", manifest.shapes).member("largest_batch", manifest.largest_batch);
  json.member("imbalance", manifest.imbalance).member("free_imbalance", manifest.free_imbalance);
  json.member("predicted_minutes", manifest.predicted_minutes()).member("cost_model", manifest.cost.name);
  if (manifest.shards) {
    json.key("shards").begin_object().member("layout", kBatchLayouts[static_cast<std::size_t>(manifest.shards->options.layout)]);
    json.key("folders").begin_array(true);
    for (const ManifestShard& shard : manifest.shards->shards) json.value(shard.folder);
    json.end_array().key("fingerprint").begin_object(true).member("source", manifest.shards->source.hex());
    json.member("batched", manifest.shards->batched.hex()).member("removed", manifest.shards->removed.hex());
    json.member("dropped", manifest.shards->dropped.hex()).member("repeated", manifest.shards->repeated.hex()).end_object();
    json.end_object();
  }
  json.key("removed");
  write_removed(json, manifest.removed);
  const auto totals = [&json](std::string_view key, const BatchTotals& t) {
    json.key(key).begin_object(true).member("items", t.items).member("tokens", t.tokens).end_object();
  };
  totals("repeated", manifest.repeated);
  totals("dropped", manifest.dropped);
}

std::string batch_to_json(const BatchResult& result, const BatchRun& run) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", 1).member("command", "batch");
  write_batch_manifest(json, result.manifest);
  json.member("quadratic_waste", quadratic_waste(result)).member("length_correlation", result.length_correlation);
  json.key("repeat_share");
  if (result.repeat_share) {
    json.value(*result.repeat_share);
  } else {
    json.null();
  }
  json.member("output", run.output).member("dry_run", run.dry_run).member("bytes_written", result.bytes_written);
  json.member("seconds", run.seconds);
  json.end_object();
  return json.take() + "\n";
}

std::string batch_manifest_to_text(const BatchManifest& manifest) {
  const BatchOptions& plan = manifest.plan;
  std::string text = report_line("strategy", fmt::format("{}, seed {}", size_text(manifest), plan.seed));
  text += report_line(unit(manifest),
                      fmt::format("{} with {}", with_commas(manifest.items), counted(manifest.tokens, "token", "tokens")));
  text += report_line("removed", removed_text(manifest.removed));
  text += report_line("batches", fmt::format("{} an epoch, {} of {} x {}, {}", with_commas(manifest.batches_per_epoch),
                                             counted(manifest.steps_per_epoch(), "step", "steps"), with_commas(plan.world),
                                             with_commas(plan.accumulation), counted(manifest.epochs, "epoch", "epochs")));
  text += report_line("padding",
                      fmt::format("{:.3f} % of {} padded tokens", padding(manifest) * 100, with_commas(manifest.padded_tokens)));
  text += report_line("shapes", fmt::format("{}, largest batch {} padded tokens", with_commas(manifest.shapes),
                                            with_commas(manifest.largest_batch)));
  if (!manifest.loss_column.empty()) text += report_line("loss", loss_text(manifest));
  if (manifest.shards) text += report_line("shards", shards_text(manifest));
  text += report_line("ranks", ranks_text(manifest));
  if (const std::string tail = tail_text(manifest); !tail.empty()) text += report_line("tail", tail);
  text +=
      report_line("predicted", fmt::format("{} ({} cost model)", minutes_text(manifest.predicted_minutes()), manifest.cost.name));
  for (const ManifestSource& source : manifest.sources) {
    text += fmt::format("  {}: {}, {}\n", source.name, source.format, counted(source.sequences, "sequence", "sequences"));
  }
  return text;
}

}  // namespace shardpack
