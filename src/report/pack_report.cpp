#include "report/pack_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "io/json.h"
#include "io/manifest_parts.h"
#include "report/figures.h"
#include "shardpack/presets.h"

namespace shardpack {

namespace {

PackingFigures figures_of(const PackResult& result) {
  const Manifest& manifest = result.manifest;
  return {.packer = manifest.plan.packer,
          .bound_kind = manifest.plan.bound_kind,
          .row_tokens = manifest.row_tokens,
          .max_segments = manifest.plan.max_segments,
          .sequences = manifest.sequences,
          .segments = manifest.segments,
          .tokens = manifest.tokens,
          .unslotted = manifest.tokens - manifest.slots(),
          .rows = manifest.rows,
          .planned_rows = manifest.planned_rows(),
          .bound = manifest.plan.bound,
          .max_segments_in_row = manifest.max_segments_in_row,
          .strategies = result.strategies};
}

/// An option that decides the bytes, as JSON text; "" when the manifest does not have it.
std::string recorded_option(const Manifest& manifest, std::string_view name) {
  const auto found =
      std::find_if(manifest.options.begin(), manifest.options.end(), [&](const auto& o) { return o.first == name; });
  return found == manifest.options.end() ? "" : found->second;
}

std::string rows_text(const Manifest& manifest) {
  std::string text = fmt::format("{} of {}", counted(manifest.planned_rows(), "row", "rows"), with_commas(manifest.row_tokens));
  if (manifest.repeated_rows > 0) text += fmt::format(" (and {} repeated)", with_commas(manifest.repeated_rows));
  if (manifest.fill_rows > 0) text += fmt::format(" (and {} of padding)", with_commas(manifest.fill_rows));
  return text;
}

/// Cut sequences are told apart from their pieces.
std::string sequences_text(const PackingFigures& figures) {
  std::string text = counted(figures.sequences, "sequence", "sequences");
  if (figures.segments != figures.sequences) text += fmt::format(" in {}", counted(figures.segments, "piece", "pieces"));
  return text;
}

std::string speedup_text(const PackResult& result, const PackingFigures& figures) {
  if (figures.planned_rows == 0) return "";
  std::string text;
  if (figures.comparable_with_padding()) {
    text += fmt::format("{:.2f}x fewer rows than padding to {} (at most {:.2f}x)\n", figures.speedup(),
                        with_commas(figures.row_tokens), figures.speedup_ceiling());
  }
  const double slots = static_cast<double>(figures.planned_rows) * static_cast<double>(figures.row_tokens);
  const double fewer = static_cast<double>(result.dynamic_padding_slots) / slots;
  if (fewer < 1.05) return text + "no fewer slots than dynamic padding of 64\n";
  return text + fmt::format("{:.1f}x fewer slots than dynamic padding of 64\n", fewer);
}

/// What the equations proved, in words that hold for this run.
std::string proof_text(const PackResult& result) {
  if (!result.verified) return "";
  const Manifest& manifest = result.manifest;
  std::int64_t removed = 0;
  for (const RemovedCount& count : manifest.removed) removed += count.tokens;
  std::string text = removed == 0 ? " · every token once" : " · every other token once";
  if (!manifest.holds_tokens()) text += ", by lengths";
  if (manifest.repeated_rows > 0) text += fmt::format(", and {} again", counted(manifest.repeated_rows, "row", "rows"));
  return text;
}

std::string added_text(const Manifest& manifest) {
  std::string text;
  if (manifest.added_eos > 0) text += fmt::format(" · added {} EOS", with_commas(manifest.added_eos));
  if (manifest.added_bos > 0) text += fmt::format(" · added {} BOS", with_commas(manifest.added_bos));
  return text;
}

/// What the cuts between partitions cost; "" where there are none.
std::string cuts_text(const PackResult& result) {
  if (result.partitions <= 1) return "";
  const std::string cuts = fmt::format("cut into {}", counted(result.partitions, "partition", "partitions"));
  if (!result.cut_rows) return cuts + " (what that costs in rows is not told for rows in input order and for given plans)\n";
  return fmt::format("{}, which costs {}\n", cuts, *result.cut_rows > 0 ? counted(*result.cut_rows, "row", "rows") : "no row");
}

std::string order_text(const PackResult& result) {
  const std::string order = recorded_option(result.manifest, "order");
  if (order == "\"input\"") return "rows are in input order";
  if (order == "\"by-strategy\"") return "rows are ordered by strategy: shuffle them when training";
  if (result.manifest.rows == 0) return "no rows";
  const std::string what = order == "\"balanced\"" ? "steps of rows that cost alike" : "rows";
  const bool windowed = order == "\"windowed\"";
  const bool whole = result.partitions <= 1 && (!windowed || result.shuffle_window_tokens >= result.manifest.tokens);
  if (whole) return what + " are shuffled over the whole dataset";
  if (windowed) {
    const Preset& preset = find_preset(result.manifest.preset);
    std::string then;
    if (!preset.shuffled_by.empty()) then = fmt::format("; {} shuffles them all", preset.shuffled_by);
    if (!preset.keep_order.empty()) then += fmt::format(" (but with {})", preset.keep_order);
    return fmt::format("rows are shuffled within windows of {} tokens (--order shuffled: {}){}",
                       short_count(result.shuffle_window_tokens),
                       result.partitions <= 1 ? "over the whole dataset" : "within whole partitions", then);
  }
  const bool dealt = recorded_option(result.manifest, "partition_order") == "\"shuffled\"";
  return fmt::format("{} are shuffled within {} tokens{}", what, short_count(result.shuffle_window_tokens),
                     dealt ? ", which are blocks from all over the sources" : " (--partition-order shuffled: over more)");
}

/// "1.310", or "1.310 -> 1.021" where an exchange changed it.
std::string changed_text(const StepFigures& steps, double StepBalance::*figure) {
  std::string text = fmt::format("{:.3f}", steps.planned.*figure);
  if (steps.exchanged) text += fmt::format(" -> {:.3f}", (*steps.exchanged).*figure);
  return text;
}

std::string loss_of_steps_text(const StepLoss& loss) {
  const std::string a_rank = loss.least_of_rank > 0
                                 ? fmt::format("a rank has {} or more in a micro-step", with_commas(loss.least_of_rank))
                                 : std::string("some rank has none in a micro-step: divide by the step's");
  return fmt::format("loss tokens a step: {} on average, {} to {} · {}\n", with_commas(std::llround(loss.mean)),
                     with_commas(loss.least), with_commas(loss.most), a_rank);
}

/// Of rows in balanced order: does it last in training?
std::string lasting_text(const Preset& preset, bool exchanged) {
  if (preset.shuffled_by.empty()) {
    return fmt::format("a trainer that shuffles rows itself undoes the order{}\n",
                       exchanged ? ", not the exchange" : "; what --balance attention does lasts");
  }
  return fmt::format("{} shuffles rows itself: the order will not last{}, {}\n", preset.shuffled_by,
                     preset.keep_order.empty() ? std::string() : fmt::format(" (but with {})", preset.keep_order),
                     exchanged ? "the balanced rows will" : "rows of --balance attention would");
}

/// What the options say of steps; "" when they do not.
std::string steps_text(const PackResult& result) {
  if (!result.steps || result.manifest.rows == 0) return "";
  const StepFigures& steps = *result.steps;
  const TrainingShape& shape = steps.shape;
  std::string text;
  if (shape.step_rows() > 1) {
    text += fmt::format("{}: {} an epoch, {} tokens each{}\n", shape_text(shape), counted(steps.steps, "step", "steps"),
                        short_count(std::llround(steps.tokens)),
                        steps.rows_over > 0 ? fmt::format(", {} over", counted(steps.rows_over, "row", "rows")) : std::string());
  }
  if (steps.loss) text += loss_of_steps_text(*steps.loss);
  if (shape.world > 1) {
    text += fmt::format("attention, dearest rank / mean: {} shuffled, {} balanced, at best {:.3f}\n",
                        changed_text(steps, &StepBalance::shuffled), changed_text(steps, &StepBalance::balanced), steps.bound);
  }
  if (steps.exchanged) {
    text += fmt::format("attention of rows varies by {:.1f} % -> {:.1f} % of the mean\n", 100 * steps.planned.variation,
                        100 * steps.exchanged->variation);
  }
  if (recorded_option(result.manifest, "order") == "\"balanced\"" && shape.world > 1) {
    text += lasting_text(find_preset(result.manifest.preset), steps.exchanged.has_value());
  }
  return text;
}

void write_balance(JsonWriter& json, std::string_view key, const StepBalance& balance) {
  json.key(key).begin_object(true);
  json.member("shuffled", balance.shuffled).member("balanced", balance.balanced).member("variation", balance.variation);
  json.end_object();
}

/// Under the key "steps"; nothing when the options do not speak of them.
void write_steps(JsonWriter& json, const std::optional<StepFigures>& steps) {
  if (!steps) return;
  json.key("steps").begin_object();
  json.member("world", steps->shape.world).member("accumulation", steps->shape.accumulation);
  json.member("micro_batch", steps->shape.micro_batch).member("steps", steps->steps).member("rows_over", steps->rows_over);
  json.member("tokens", steps->tokens).member("imbalance", steps->imbalance).member("imbalance_bound", steps->bound);
  write_balance(json, "planned", steps->planned);
  if (steps->exchanged) write_balance(json, "exchanged", *steps->exchanged);
  if (steps->loss) {
    json.key("loss_tokens").begin_object(true).member("mean", steps->loss->mean).member("least", steps->loss->least);
    json.member("most", steps->loss->most).member("least_of_rank", steps->loss->least_of_rank).end_object();
  }
  json.end_object();
}

std::string folder_text(const std::string& output) { return !output.empty() && output.back() == '/' ? output : output + "/"; }

void replace_all(std::string& text, std::string_view word, const std::string& with) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + with.size()))
    text.replace(at, word.size(), with);
}

/// The preset's own words, about this output.
std::string train_with_text(const Manifest& manifest, const std::string& output) {
  std::string text(find_preset(manifest.preset).train_with);
  std::string folder = folder_text(output);
  folder.pop_back();
  replace_all(text, "0000N", fmt::format("{:05}", manifest.shards.size()));
  replace_all(text, "LENGTH", std::to_string(manifest.row_tokens));
  replace_all(text, "OUT", folder);
  return "train with:\n" + text;
}

/// Where the tokens of an index are, and how they come back.
std::string without_tokens_text(const Manifest& manifest, const std::string& folder) {
  const auto decoded = std::count_if(manifest.sources.begin(), manifest.sources.end(),
                                     [](const ManifestSource& source) { return source.tokens > 0 && source.ids_dtype == ""; });
  std::string text = "no token is written: ";
  if (decoded == 0) {
    text += "seq_begin.npy says where they lie in the sources";
  } else {
    text += fmt::format("{} must be decoded, and {}", counted(decoded, "source file", "source files"),
                        manifest.has_begins() ? "seq_begin.npy says where they lie in the others"
                                              : "seq_source.npy names their records; there is no seq_begin.npy");
  }
  return text + fmt::format("\ncheck with: shardpack verify {} --against SOURCES", folder);
}

std::string written_text(const PackResult& result, const PackRun& run) {
  const Manifest& manifest = result.manifest;
  const std::string folder = folder_text(run.output);
  if (run.dry_run) {
    const std::string size = result.bytes_written > 0 ? " about " + short_bytes(result.bytes_written) : "";
    return fmt::format("would write{} to {}; nothing was written (--dry-run)", size, folder);
  }
  std::string text =
      fmt::format("wrote {} in {} to {} in {:.1f} s", short_bytes(result.bytes_written),
                  counted(static_cast<std::int64_t>(manifest.shards.size()), "shard", "shards"), folder, run.seconds);
  if (manifest.shards.empty()) return text;
  if (!manifest.holds_tokens()) return text + "\n" + without_tokens_text(manifest, folder);
  if (!manifest.compress.empty()) return text + "\ncheck with: shardpack verify " + folder;
  if (manifest.preset != "native") return text + "\n" + train_with_text(manifest, run.output);
  return text +
         fmt::format("\nread with: np.load(\"{}{}/input_ids.npy\", mmap_mode=\"r\")", folder, manifest.shards.front().folder);
}

}  // namespace

namespace {

/// Partitions are numbered from 0, as their shards are.
std::string part_summary(const PackResult& result, const PackRun& run) {
  const PartFigures& part = *result.part;
  const std::int64_t partitions = part.last_partition - part.first_partition;
  std::string text = fmt::format("{} part {}/{}: ", run.dry_run ? "would pack" : "packed", part.index, part.of);
  if (partitions == 0) {
    text += fmt::format("nothing to do, for there are {} (scan --save --partition-tokens: more)\n",
                        counted(result.partitions, "partition", "partitions"));
  } else {
    text += partitions == 1 ? fmt::format("partition {}", part.first_partition)
                            : fmt::format("partitions {} to {}", part.first_partition, part.last_partition - 1);
    text += fmt::format(" of {}, {} of {}\n", with_commas(result.partitions), counted(part.rows, "row", "rows"),
                        with_commas(result.manifest.row_tokens));
  }
  text += order_text(result) + "\n";
  if (run.dry_run) return text + "nothing was written (--dry-run)";
  const std::string folder = folder_text(run.output);
  if (part.kept_partitions > 0)
    text += fmt::format("kept {} that stood finished\n", counted(part.kept_partitions, "partition", "partitions"));
  return text + fmt::format("wrote {} in {:.1f} s; when all parts are done: shardpack join {}", short_bytes(part.bytes_written),
                            run.seconds, folder.substr(0, folder.size() - 1));
}

void write_part(JsonWriter& json, const std::optional<PartFigures>& part) {
  if (!part) return;
  json.key("part").begin_object(true);
  json.member("index", part->index).member("of", part->of);
  json.member("first_partition", part->first_partition).member("partitions", part->last_partition - part->first_partition);
  json.member("kept_partitions", part->kept_partitions).member("rows", part->rows).member("shards", part->shards);
  json.member("bytes_written", part->bytes_written).end_object();
}

}  // namespace

std::string pack_summary(const PackResult& result, const PackRun& run) {
  if (result.part) return part_summary(result, run);
  const Manifest& manifest = result.manifest;
  const PackingFigures figures = figures_of(result);
  std::string text = fmt::format("{} {} ({} tokens) into {}: {} full, {:.2f} {} a row\n", run.dry_run ? "would pack" : "packed",
                                 sequences_text(figures), short_count(figures.tokens), rows_text(manifest),
                                 percent_text(figures.efficiency()), figures.speedup(), figures.packed_unit());
  const auto groups = static_cast<std::int64_t>(result.groups.size());
  text +=
      fmt::format("bound {}: {}{}\n", counted(figures.bound, "row", "rows"), gap_text(figures.gap()),
                  groups > 0 ? fmt::format(" · no row mixes two of the {}", counted(groups, "group", "groups")) : std::string());
  text += fmt::format("removed {}{}{}\n", removed_text(manifest.removed), added_text(manifest), proof_text(result));
  if (!manifest.columns.empty()) {
    text += "carried " + columns_text(manifest.columns);
    text += (manifest.loss_column.empty() ? "" : " · " + loss_text(manifest)) + "\n";
  }
  if (manifest.segment_width > 0) {
    text += fmt::format("every row has room for {} masked tokens and {}\n", with_commas(manifest.entry_width),
                        counted(manifest.segment_width, "sequence", "sequences"));
  }
  text += speedup_text(result, figures);
  text += cuts_text(result) + order_text(result) + "\n" + steps_text(result);
  return text + written_text(result, run);
}

std::string pack_to_json(const PackResult& result, const PackRun& run) {
  const Manifest& manifest = result.manifest;
  JsonWriter json;
  json.begin_object();
  json.member("schema", 1).member("command", run.command);
  write_figures(json, figures_of(result), run.seconds);
  json.member("output", run.output).member("dry_run", run.dry_run);
  json.key("shards").begin_array(true);
  for (const ManifestShard& shard : manifest.shards) json.value(shard.folder);
  json.end_array();
  json.member("bytes_written", run.dry_run ? std::int64_t{0} : result.bytes_written);
  json.key("removed");
  write_removed(json, manifest.removed, !manifest.loss_column.empty());
  json.key("added").begin_object(true);
  json.member("eos", manifest.added_eos).member("bos", manifest.added_bos);
  json.end_object();
  json.key("repeated").begin_object(true);
  json.member("rows", manifest.repeated_rows).member("sequences", manifest.repeated_sequences);
  json.member("tokens", manifest.repeated_tokens);
  json.end_object();
  json.key("fingerprint").begin_object(true);
  json.member("source", manifest.source_fingerprint.hex());
  write_fingerprint(json, "packed", manifest.packed_fingerprint);
  write_fingerprint(json, "removed", manifest.removed_fingerprint);
  json.end_object();
  json.member("verified", result.verified);
  json.member("planned_rows", figures_of(result).planned_rows).member("segments", manifest.segments);
  json.member("fill_rows", manifest.fill_rows).member("partitions", result.partitions);
  json.member("source_sequences", manifest.source_sequences).member("source_tokens", manifest.source_tokens);
  json.member("dynamic_padding_slots", result.dynamic_padding_slots);
  json.member("shuffle_window_tokens", result.shuffle_window_tokens);
  if (result.cut_rows) json.member("cut_rows", *result.cut_rows);
  write_part(json, result.part);
  write_groups(json, result.groups);
  write_steps(json, result.steps);
  json.key("columns").begin_array(true);
  for (const Column& column : manifest.columns) json.value(column.name);
  json.end_array();
  if (!manifest.loss_column.empty()) {
    json.member("source_loss_tokens", manifest.source_loss_tokens).member("loss_tokens", manifest.loss_tokens);
  }
  if (manifest.segment_width > 0)
    json.member("entry_width", manifest.entry_width).member("segment_width", manifest.segment_width);
  json.key("not_carried").begin_array(true);
  for (const std::string& column : manifest.not_carried) json.value(column);
  json.end_array();
  json.end_object();
  return json.take() + "\n";
}

}  // namespace shardpack
