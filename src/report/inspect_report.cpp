#include "report/inspect_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "base/printable.h"
#include "base/units.h"
#include "io/json.h"
#include "report/batch_report.h"
#include "report/figures.h"
#include "report/ltd_report.h"
#include "report/row_picture.h"
#include "report/scan_report.h"

namespace shardpack {

namespace {

constexpr std::size_t kListed = 8;  // sources, shards and strategies on the screen
constexpr std::int64_t kHistogramLines = 12, kBarColumns = 50;
constexpr double kQuantiles[] = {0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99};

std::string more_line(std::size_t all, std::string_view where = "--json lists all") {
  return all > kListed ? fmt::format("  ... and {} more ({})\n", with_commas(static_cast<std::int64_t>(all - kListed)), where)
                       : std::string();
}

/// A report line of parts separated by commas, broken where it would leave the screen.
std::string wrapped_line(std::string_view label, const std::vector<std::string>& parts) {
  constexpr std::size_t kColumns = 100 - 14;
  std::string text, line;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string part = parts[i] + (i + 1 < parts.size() ? "," : "");
    if (!line.empty() && line.size() + 1 + part.size() > kColumns) {
      text += report_line(text.empty() ? label : "", line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + part;
  }
  return text + report_line(text.empty() ? label : "", line);
}

/// Text cut in the middle to `columns`: the end of a path tells more than what comes before it.
std::string shortened(const std::string& text, std::size_t columns) {
  if (text.size() <= columns) return text;
  const std::size_t tail = (columns - 3) * 2 / 3;
  return text.substr(0, columns - 3 - tail) + "..." + text.substr(text.size() - tail);
}

/// Counts by value, in at most kHistogramLines ranges of equal width.
std::string histogram_lines(const LengthHistogram& values) {
  const std::vector<LengthCount> counts = values.counts();
  if (counts.empty()) return {};
  const std::int64_t first = counts.front().length, last = counts.back().length;
  const std::int64_t width = ceil_div(last - first + 1, kHistogramLines);
  std::vector<std::int64_t> ranges(static_cast<std::size_t>(ceil_div(last - first + 1, width)));
  for (const LengthCount& entry : counts) ranges[static_cast<std::size_t>((entry.length - first) / width)] += entry.count;
  const std::int64_t most = *std::max_element(ranges.begin(), ranges.end());
  std::string text;
  for (std::size_t r = 0; r < ranges.size(); ++r) {
    const std::int64_t from = first + static_cast<std::int64_t>(r) * width, to = std::min(from + width - 1, last);
    const auto bar =
        static_cast<std::size_t>(std::lround(static_cast<double>(ranges[r]) / static_cast<double>(most) * kBarColumns));
    const std::string label = from == to ? with_commas(from) : fmt::format("{}-{}", with_commas(from), with_commas(to));
    text += fmt::format("  {:>17} |{:<{}} {}\n", label, std::string(bar, '#'), kBarColumns, with_commas(ranges[r]));
  }
  return text;
}

// ---- dataset ----------------------------------------------------------------------------------------------------------------

std::string show_id(const std::optional<std::int64_t>& id) { return id ? std::to_string(*id) : "none"; }

std::string ids_text(const Manifest& manifest) {
  const std::string range = manifest.id_max < 0 ? "none" : fmt::format("{} to {}", manifest.id_min, manifest.id_max);
  return fmt::format("{} as {}; pad {}, EOS {}, BOS {}", range, info(manifest.id_type).name, manifest.pad_id,
                     show_id(manifest.eos_id), show_id(manifest.bos_id));
}

std::string rows_text(const Manifest& manifest) {
  std::string text = fmt::format("{} of {} slots", with_commas(manifest.rows), with_commas(manifest.row_tokens));
  if (manifest.repeated_rows > 0) text += fmt::format(", the last {} repeated", with_commas(manifest.repeated_rows));
  if (manifest.fill_rows > 0) text += fmt::format(", the last {} all padding", with_commas(manifest.fill_rows));
  return text;
}

/// What an index has instead of ids.
std::string without_tokens_text(const Manifest& manifest) {
  return fmt::format("an index: the tokens are in the sources{}", manifest.has_begins() ? ", seq_begin says where" : "");
}

std::string arrays_text(const Manifest& manifest) {
  std::string text = !manifest.holds_tokens() ? without_tokens_text(manifest)
                     : manifest.derived       ? fmt::format("segment ids, position ids from {}", manifest.position_start)
                                              : "without segment and position ids";
  if (manifest.plan.segment_multiple > 1)
    text += fmt::format("; segments begin on multiples of {}", manifest.plan.segment_multiple);
  if (!manifest.compress.empty()) text += "; " + manifest.compress;
  return text;
}

/// For and as what.
std::string written_text(const Manifest& manifest) {
  std::string text = fmt::format("for {} as {}", printable(manifest.preset), printable(manifest.container));
  if (manifest.hidden_labels > 0)
    text += fmt::format("; {} at a segment's first token", counted(manifest.hidden_labels, "label hidden", "labels hidden"));
  return text;
}

std::string waits_text(const RowWaits& waits) {
  return fmt::format("{}: attention of the dearest {:.3f}x the mean, at best {:.3f}x", shape_text(waits.shape), waits.imbalance,
                     waits.bound);
}

std::string dataset_to_text(const DatasetView& view, const std::string& path) {
  const Manifest& manifest = view.manifest;
  std::string text = fmt::format("{}: packed by shardpack {}\n", path, manifest.tool_version);
  text += report_line("rows", rows_text(manifest));
  text += report_line("fill", fmt::format("{}, {}", percent_text(manifest.efficiency()),
                                          counted(manifest.padding_tokens, "padding slot", "padding slots")));
  text += report_line(
      "tokens", fmt::format("{} in {} of {}", with_commas(manifest.tokens), counted(manifest.segments, "segment", "segments"),
                            counted(manifest.sequences, "sequence", "sequences")));
  text += report_line("packing", fmt::format("{:.4f} sequences a row, at most {}", manifest.packing_factor(),
                                             counted(manifest.max_segments_in_row, "segment", "segments")));
  text +=
      report_line("plan", fmt::format("{}; bound {} ({}), {}", manifest.plan.packer, counted(manifest.plan.bound, "row", "rows"),
                                      manifest.plan.bound_kind, gap_text(manifest.plan.rows - manifest.plan.bound)));
  if (view.waits) text += report_line("ranks", waits_text(*view.waits));
  text += report_line("token ids", ids_text(manifest));
  if (manifest.preset == "native") {
    text += report_line("arrays", arrays_text(manifest));
  } else {
    text += report_line("written", written_text(manifest));
  }
  if (!manifest.columns.empty()) text += report_line("columns", columns_text(manifest.columns));
  if (!manifest.loss_column.empty()) text += report_line("loss", loss_text(manifest));
  text += report_line("removed", removed_text(manifest.removed));
  text += report_line("added", fmt::format("{} EOS, {} BOS", with_commas(manifest.added_eos), with_commas(manifest.added_bos)));
  if (!manifest.not_carried.empty()) text += wrapped_line("not carried", manifest.not_carried);
  std::vector<std::string> options;
  for (const auto& [name, value] : view.chosen_options) options.push_back(name + " " + value);
  text += wrapped_line("options", options.empty() ? std::vector<std::string>{"defaults"} : options);

  text += report_line(
      "sources",
      fmt::format("{}, {}, {}", counted(static_cast<std::int64_t>(manifest.sources.size()), "file", "files"),
                  counted(manifest.source_sequences, "record", "records"), counted(manifest.source_tokens, "token", "tokens")));
  for (std::size_t s = 0; s < std::min(kListed, manifest.sources.size()); ++s) {
    const ManifestSource& source = manifest.sources[s];
    text += fmt::format("  {:<34} {:<9} {:>11} records {:>15} tokens {:>9}\n", shortened(printable(source.name), 34),
                        source.format, with_commas(source.sequences), with_commas(source.tokens), short_bytes(source.bytes));
  }
  text += more_line(manifest.sources.size());

  text +=
      report_line("shards", fmt::format("{} in {}, {}", with_commas(static_cast<std::int64_t>(manifest.shards.size())),
                                        counted(static_cast<std::int64_t>(manifest.partitions.size()), "partition", "partitions"),
                                        short_bytes(view.bytes)));
  for (std::size_t s = 0; s < std::min(kListed, manifest.shards.size()); ++s) {
    const ManifestShard& shard = manifest.shards[s];
    text += fmt::format("  {:<20} {:>11} rows {:>16} tokens {:>13} segments\n", shard.folder, with_commas(shard.rows),
                        with_commas(shard.tokens), with_commas(shard.segments));
  }
  text += more_line(manifest.shards.size());
  if (view.segments_in_rows.sequences() > 0) text += "segments in a row\n" + histogram_lines(view.segments_in_rows);
  return text;
}

void write_dataset(JsonWriter& json, const DatasetView& view) {
  const Manifest& manifest = view.manifest;
  json.member("kind", "dataset");
  json.member("preset", manifest.preset).member("container", manifest.container);
  json.member("rows", manifest.rows).member("planned_rows", manifest.planned_rows()).member("row_tokens", manifest.row_tokens);
  json.member("tokens", manifest.tokens).member("padding_tokens", manifest.padding_tokens);
  json.member("sequences", manifest.sequences).member("segments", manifest.segments);
  json.member("efficiency", manifest.efficiency()).member("packing_factor", manifest.packing_factor());
  json.member("max_segments_in_row", manifest.max_segments_in_row);
  json.member("packer", manifest.plan.packer).member("bound", manifest.plan.bound).member("bound_kind", manifest.plan.bound_kind);
  json.member("gap", manifest.plan.rows - manifest.plan.bound);
  if (view.waits) {
    json.key("ranks").begin_object(true).member("world", view.waits->shape.world);
    json.member("accumulation", view.waits->shape.accumulation).member("micro_batch", view.waits->shape.micro_batch);
    json.member("imbalance", view.waits->imbalance).member("imbalance_bound", view.waits->bound).end_object();
  }
  json.member("dtype", info(manifest.id_type).name).member("pad_id", manifest.pad_id);
  json.key("removed");
  write_removed(json, manifest.removed);
  json.key("added").begin_object(true).member("eos", manifest.added_eos).member("bos", manifest.added_bos).end_object();
  json.key("chosen_options").begin_object(true);
  for (const auto& [name, value] : view.chosen_options) json.key(name).raw(value);
  json.end_object();
  json.key("sources").begin_array();
  for (const ManifestSource& source : manifest.sources) {
    json.begin_object(true).member("name", source.name).member("format", source.format).member("bytes", source.bytes);
    json.member("sequences", source.sequences).member("tokens", source.tokens).end_object();
  }
  json.end_array().key("shards").begin_array();
  for (const ManifestShard& shard : manifest.shards) {
    json.begin_object(true).member("folder", shard.folder).member("rows", shard.rows).member("tokens", shard.tokens);
    json.member("segments", shard.segments).end_object();
  }
  json.end_array().key("segments_in_rows").begin_object(true);
  for (const LengthCount& entry : view.segments_in_rows.counts()) json.member(std::to_string(entry.length), entry.count);
  json.end_object().member("bytes", view.bytes);
}

// ---- plan and histogram -----------------------------------------------------------------------------------------------------

std::string lengths_to_text(const LengthHistogram& lengths) {
  std::string text = report_line("sequences", with_commas(lengths.sequences()));
  if (lengths.empty() > 0) text += report_line("empty", with_commas(lengths.empty()));
  text += report_line("tokens", with_commas(lengths.tokens()));
  if (lengths.tokens() == 0) return text;
  text += report_line("lengths", fmt::format("{} to {}, mean {:.1f}", with_commas(lengths.min_length()),
                                             with_commas(lengths.max_length()), lengths.mean_length()));
  std::string quantiles;
  for (const double q : kQuantiles) {
    quantiles += fmt::format("{}{:g} %: {}", quantiles.empty() ? "" : ", ", q * 100, with_commas(lengths.quantile(q)));
  }
  return text + report_line("quantiles", quantiles) + "sequences by length\n" + histogram_lines(lengths);
}

void write_lengths(JsonWriter& json, const LengthHistogram& lengths) {
  json.member("kind", "histogram").member("sequences", lengths.sequences()).member("empty", lengths.empty());
  json.member("tokens", lengths.tokens()).member("min_length", lengths.min_length()).member("max_length", lengths.max_length());
  json.member("mean_length", lengths.mean_length());
  json.key("quantiles").begin_object(true);
  for (const double q : kQuantiles) json.member(fmt::format("{:g}", q), lengths.quantile(q));
  json.end_object();
}

/// Strategies by rows, most first; equal ones in the plan's order.
std::vector<std::int64_t> by_rows(const PackingPlan& plan) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(plan.strategies()));
  for (std::size_t s = 0; s < order.size(); ++s) order[s] = static_cast<std::int64_t>(s);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return plan.count[static_cast<std::size_t>(a)] > plan.count[static_cast<std::size_t>(b)];
  });
  order.resize(std::min(order.size(), kListed));
  return order;
}

std::string plan_to_text(const PlanView& view) {
  const PackingPlan& plan = view.plan;
  const PlanStats figures = stats(plan);
  std::string text = report_line(
      "plan", fmt::format("{}, rows of {} slots{}", plan.packer, with_commas(plan.row_tokens),
                          plan.max_segments > 0 ? fmt::format(", at most {} segments", plan.max_segments) : std::string()));
  text += report_line("rows", with_commas(figures.rows));
  const std::int32_t together = plan.policy.keep_together;
  text += report_line("items", fmt::format("{}{} of {} in all, {} lengths", with_commas(figures.items),
                                           together > 1 ? fmt::format(" units of {} sequences", together) : std::string(),
                                           counted(figures.slots_used, "slot", "slots"),
                                           with_commas(static_cast<std::int64_t>(view.items.counts().size()))));
  text += report_line(
      "fill", fmt::format("{}, {}", percent_text(figures.efficiency), counted(figures.padding, "padding slot", "padding slots")));
  text +=
      report_line("packing", fmt::format("{:.4f} {} a row, at most {}", figures.packing_factor, together > 1 ? "units" : "items",
                                         with_commas(figures.max_segments_in_row / together)));
  text += report_line(
      "bound", fmt::format("{} ({}): {}", counted(plan.bound.rows, "row", "rows"), name(plan.bound.kind), gap_text(plan.gap())));
  text += groups_text(figures_of(view.groups));
  text += report_line("strategies", fmt::format("{}, by rows:", with_commas(plan.strategies())));
  for (const std::int64_t s : by_rows(plan)) {
    const std::int64_t rows = plan.count[static_cast<std::size_t>(s)];
    const std::string lengths = fmt::format("{}", fmt::join(plan.strategy(s), " "));
    text += fmt::format("  {:>13} {:>9}  {}\n", with_commas(rows),
                        percent_text(static_cast<double>(rows) / static_cast<double>(std::max<std::int64_t>(figures.rows, 1))),
                        lengths.size() > 70 ? lengths.substr(0, 66) + " ..." : lengths);
  }
  return text + more_line(plan.count.size(), "all are in the file");
}

void write_plan(JsonWriter& json, const PlanView& view) {
  const PackingPlan& plan = view.plan;
  const PlanStats figures = stats(plan);
  json.member("kind", "plan").member("packer", plan.packer).member("row_tokens", plan.row_tokens);
  json.member("max_segments", plan.max_segments).member("rows", figures.rows).member("items", figures.items);
  json.member("padding_tokens", figures.padding).member("efficiency", figures.efficiency);
  json.member("packing_factor", figures.packing_factor).member("max_segments_in_row", figures.max_segments_in_row);
  json.member("strategies", plan.strategies()).member("bound", plan.bound.rows);
  json.member("bound_kind", name(plan.bound.kind)).member("gap", plan.gap()).member("keep_together", plan.policy.keep_together);
  write_groups(json, figures_of(view.groups));
}

// ---- row and sequence -------------------------------------------------------------------------------------------------------

std::string span_text(std::int64_t begin, std::int64_t count) {
  return count == 0 ? fmt::format("at {}", begin) : fmt::format("{}-{}", begin, begin + count - 1);
}

std::string added_text(std::uint8_t added) {
  if (added == (kAddedBos | kAddedEos)) return "BOS EOS";
  return (added & kAddedBos) != 0 ? "BOS" : (added & kAddedEos) != 0 ? "EOS" : "";
}

std::string show_ids(const SegmentView& segment) {
  return segment.last_ids.empty() ? fmt::format("{}", fmt::join(segment.first_ids, " "))
                                  : fmt::format("{} .. {}", fmt::join(segment.first_ids, " "), fmt::join(segment.last_ids, " "));
}

std::string row_to_text(const RowView& row) {
  std::int64_t tokens = 0;
  for (const SegmentView& segment : row.segments) tokens += segment.length;
  std::string text = fmt::format("row {}: row {} of {}{}\n", with_commas(row.row), with_commas(row.row_in_shard), row.shard,
                                 !row.tail              ? ""
                                 : row.segments.empty() ? ", a fill row"
                                                        : ", a repeated row");
  text += fmt::format("{}, {} in {} slots, {} of padding\n\n",
                      counted(static_cast<std::int64_t>(row.segments.size()), "segment", "segments"),
                      counted(tokens, "token", "tokens"), with_commas(row.row_tokens), with_commas(row.row_tokens - tokens));
  text += row_picture(row);
  if (row.segments.empty()) return text;

  text += fmt::format("\nmark {:>2}  {:>15} {:>15}  {:<26} {:>11} {:>19}\n", "#", "slots", "positions", "source", "record",
                      "its tokens");
  constexpr std::size_t kListedSegments = 200;
  for (std::size_t s = 0; s < std::min(row.segments.size(), kListedSegments); ++s) {
    const SegmentView& segment = row.segments[s];
    text +=
        fmt::format(" {} {:>4}  {:>15} {:>15}  {:<26} {:>11} {:>19}\n", segment_mark(s), s + 1,
                    span_text(segment.begin, segment.slots), span_text(segment.first_position, segment.length),
                    shortened(segment.source, 26), with_commas(segment.record), span_text(segment.first_token, segment.tokens));
    const std::string added = added_text(segment.added);
    std::string ids = segment.first_ids.empty() ? "" : " ids " + show_ids(segment);
    if (!added.empty()) ids += fmt::format(" ({} added)", added);
    if (!ids.empty()) text += "        " + ids + "\n";
  }
  if (row.segments.size() > kListedSegments) {
    text += fmt::format("  ... and {} more (--json lists all)\n", row.segments.size() - kListedSegments);
  }
  return text;
}

void write_row(JsonWriter& json, const RowView& row) {
  const auto write_ids = [&](std::string_view key, const std::vector<std::int64_t>& ids) {
    json.key(key).begin_array(true);
    for (const std::int64_t id : ids) json.value(id);
    json.end_array();
  };
  json.member("kind", "row").member("row", row.row).member("shard", row.shard).member("row_in_shard", row.row_in_shard);
  json.member("row_tokens", row.row_tokens).member("tail", row.tail);
  json.key("segments").begin_array();
  for (std::size_t s = 0; s < row.segments.size(); ++s) {
    const SegmentView& segment = row.segments[s];
    json.begin_object(true).member("segment", static_cast<std::int64_t>(s) + 1).member("begin", segment.begin);
    json.member("length", segment.length).member("slots", segment.slots).member("first_position", segment.first_position);
    json.member("source", segment.source).member("record", segment.record).member("sequence", segment.sequence);
    json.member("first_token", segment.first_token).member("tokens", segment.tokens);
    json.member("added_bos", (segment.added & kAddedBos) != 0).member("added_eos", (segment.added & kAddedEos) != 0);
    write_ids("first_ids", segment.first_ids);
    write_ids("last_ids", segment.last_ids);
    json.end_object();
  }
  json.end_array();
}

std::string sequence_to_text(const SequenceView& view) {
  std::string text =
      fmt::format("sequence {}: record {} of {}\n", with_commas(view.sequence), with_commas(view.record), view.source);
  if (view.pieces.empty()) return text + "in no row; removed.csv has it when it had tokens\n";
  text += fmt::format("  {:>13}  {:<20} {:>13} {:>9} {:>10}  {:>21}\n", "row", "shard", "row in it", "segment", "at slot",
                      "its tokens");
  for (const PieceView& piece : view.pieces) {
    const std::string added = added_text(piece.added);
    text += fmt::format("  {:>13}  {:<20} {:>13} {:>9} {:>10}  {:>21}{}{}\n", with_commas(piece.row), piece.shard,
                        with_commas(piece.row_in_shard), piece.segment, piece.begin, span_text(piece.first_token, piece.tokens),
                        added.empty() ? "" : " +" + added, piece.tail ? " again" : "");
  }
  return text;
}

void write_sequence(JsonWriter& json, const SequenceView& view) {
  json.member("kind", "sequence").member("sequence", view.sequence).member("source", view.source).member("record", view.record);
  json.key("pieces").begin_array();
  for (const PieceView& piece : view.pieces) {
    json.begin_object(true).member("row", piece.row).member("shard", piece.shard).member("row_in_shard", piece.row_in_shard);
    json.member("segment", piece.segment).member("begin", piece.begin).member("first_token", piece.first_token);
    json.member("tokens", piece.tokens).member("added_bos", (piece.added & kAddedBos) != 0);
    json.member("added_eos", (piece.added & kAddedEos) != 0).member("tail", piece.tail).end_object();
  }
  json.end_array();
}

// ---- batch plan -------------------------------------------------------------------------------------------------------------

std::string batch_plan_to_text(const BatchPlanView& view, const std::string& path) {
  std::string text = fmt::format("{}: batched by shardpack {}\n", path, view.manifest.tool_version);
  text += batch_manifest_to_text(view.manifest);
  text += report_line("files", fmt::format("{}, {}", with_commas(static_cast<std::int64_t>(view.manifest.files.size())),
                                           short_bytes(view.bytes)));
  if (view.pad_lengths.sequences() > 0) {
    text += "batches of an epoch by padded length\n" + histogram_lines(view.pad_lengths);
  }
  return text;
}

void write_batch_plan(JsonWriter& json, const BatchPlanView& view) {
  json.member("kind", "batches");
  write_batch_manifest(json, view.manifest);
  json.key("batches_by_pad_length").begin_object(true);
  for (const LengthCount& entry : view.pad_lengths.counts()) json.member(std::to_string(entry.length), entry.count);
  json.end_object().member("bytes", view.bytes);
}

std::string batch_to_text(const BatchView& batch) {
  constexpr std::size_t kListedMembers = 200;
  std::string text = fmt::format("batch {}: epoch {}, step {}, micro-batch {}, rank {}\n", with_commas(batch.batch),
                                 with_commas(batch.epoch), with_commas(batch.step), batch.micro, batch.rank);
  const auto size = static_cast<std::int64_t>(batch.members.size());
  text += fmt::format("{} padded to {}: {} of {} tokens are real\n",
                      batch.rows ? counted(size, "row", "rows") : counted(size, "sequence", "sequences"),
                      with_commas(batch.pad_length), with_commas(batch.real_tokens), with_commas(size * batch.pad_length));
  for (std::size_t i = 0; i < std::min(batch.members.size(), kListedMembers); ++i) {
    const BatchView::Member& member = batch.members[i];
    text += fmt::format("  {:>13}{}{}\n", with_commas(member.member),
                        member.kept < 0 ? "" : fmt::format("  {} tokens", with_commas(member.kept)),
                        member.weight == 1 ? "" : fmt::format("  weight {:g}", member.weight));
  }
  if (batch.members.size() > kListedMembers) {
    text += fmt::format("  ... and {} more (--json lists all)\n", batch.members.size() - kListedMembers);
  }
  return text;
}

void write_batch(JsonWriter& json, const BatchView& batch) {
  json.member("kind", "batch").member("batch", batch.batch).member("epoch", batch.epoch).member("step", batch.step);
  json.member("micro", batch.micro).member("rank", batch.rank).member("pad_length", batch.pad_length);
  json.member("real_tokens", batch.real_tokens).key("members").begin_array(true);
  for (const BatchView::Member& member : batch.members) json.value(member.member);
  json.end_array();
  if (!batch.members.empty() && batch.members.front().kept >= 0) {
    json.key("kept_tokens").begin_array(true);
    for (const BatchView::Member& member : batch.members) json.value(member.kept);
    json.end_array();
  }
  json.key("weights").begin_array(true);
  for (const BatchView::Member& member : batch.members) json.value(static_cast<double>(member.weight), 1);
  json.end_array();
}

}  // namespace

std::string inspect_to_text(const InspectResult& result) {
  if (result.dataset) return dataset_to_text(*result.dataset, result.path);
  if (result.row) return row_to_text(*result.row);
  if (result.sequence) return sequence_to_text(*result.sequence);
  if (result.plan) return plan_to_text(*result.plan);
  if (result.ltd) return ltd_view_to_text(*result.ltd, result.path);
  if (result.batch_plan) return batch_plan_to_text(*result.batch_plan, result.path);
  if (result.batch) return batch_to_text(*result.batch);
  if (result.histogram) return lengths_to_text(*result.histogram);
  return scan_to_text(*result.sources);
}

std::string inspect_to_json(const InspectResult& result, double seconds) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", 1).member("command", "inspect").member("path", result.path);
  if (result.dataset) write_dataset(json, *result.dataset);
  if (result.row) write_row(json, *result.row);
  if (result.sequence) write_sequence(json, *result.sequence);
  if (result.plan) write_plan(json, *result.plan);
  if (result.ltd) write_ltd_view(json, *result.ltd);
  if (result.batch_plan) write_batch_plan(json, *result.batch_plan);
  if (result.batch) write_batch(json, *result.batch);
  if (result.histogram) write_lengths(json, *result.histogram);
  if (result.sources) {
    std::string scan = scan_to_json(*result.sources, seconds);
    scan.pop_back();  // its newline
    json.member("kind", "sources").key("scan").raw(scan);
  }
  json.member("seconds", seconds).end_object();
  return json.take() + "\n";
}

}  // namespace shardpack
