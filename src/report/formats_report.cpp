#include "report/formats_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "base/wrap.h"
#include "io/json.h"
#include "shardpack/batch_plan.h"
#include "shardpack/formats.h"
#include "shardpack/packer.h"
#include "shardpack/presets.h"

namespace shardpack {

namespace {

std::string names_of(std::span<const Container> wanted) {
  std::string names;
  for (const Container container : wanted) names.append(names.empty() ? "" : ", ").append(info(container).name);
  return names;
}

/// What a column holds, as its trainer's documentation would say it; index = OutputSource.
constexpr std::array<std::string_view, 16> kSources{
    "token ids",
    "labels; -100 takes no part in the loss",
    "1 where a token takes part in the loss, else 0",
    "labels, 0 where there is none",
    "segment ids, 0 where there is no label",
    "segments 1..k of the row, 0 on padding",
    "positions, anew in every segment; on padding the first one",
    "what the sources have, 0 on padding",
    "tokens of every segment",
    "slots of every segment, and of the padding at the end",
    "where every segment begins",
    "what the sources have of every masked token, positions as slots of the row; M + K a row, 0 behind the last",
    "the segment of every masked token, 1..k; M + K a row, 0 behind the last",
    "where every segment begins; K a row, 0 behind the last",
    "what the sources have of every segment's sequence; K a row, 0 behind the last",
    "1..k; K a row, 0 behind the last",
};
std::string_view describe(OutputSource source) { return kSources[static_cast<std::size_t>(source)]; }

/// When a column is not always there.
std::string_view when(const OutputColumn& column) {
  if (column.if_labels) return " (only where the sources have labels)";
  const bool optional = !column.from.empty() && !column.needed && column.source != OutputSource::entry_segments;
  return optional ? " (only where they have it)" : "";
}

constexpr std::array<std::string_view, 4> kLabelRules{
    "", "labels are as in the sources", "the first label of every segment is -100, for the model shifts them itself",
    "labels are shifted left by one in every segment"};

void write_columns(JsonWriter& json, const Preset& preset) {
  json.key("columns").begin_array();
  for (const OutputColumn& column : preset.columns) {
    json.begin_object(true);
    json.member("name", column.name).member("dtype", info(column.type).name).member("holds", describe(column.source));
    json.member("only_with_labels", column.if_labels);
    json.end_object();
  }
  json.end_array();
}

void write_preset(JsonWriter& json, const Preset& preset) {
  json.begin_object();
  json.member("name", preset.name).member("summary", preset.summary);
  json.key("containers").begin_array(true);
  for (const Container container : preset.containers) json.value(info(container).name);
  json.end_array();
  write_columns(json, preset);
  json.member("ragged", preset.ragged).member("needs_eos_id", preset.needs_eos_id).member("train_with", preset.train_with);
  json.end_object();
}

}  // namespace

std::string formats_to_text() {
  std::string text = "input formats (found by content, then sidecar, then suffix; --format NAME overrides):\n";
  const auto entry = [&](std::string_view name, std::string_view summary) {
    constexpr std::size_t kSummaryColumn = 17;
    text += fmt::format("  {:<{}}", name, kSummaryColumn - 2);
    append_words(text, summary, kSummaryColumn);
    text += '\n';
  };
  for (const FormatSummary& format : input_format_summaries()) {
    entry(format.name, format.summary);
    entry("", fmt::format("boundaries: {}", format.boundaries));
  }
  text += "\npackers (--packer NAME):\n";
  for (const PackerInfo& packer : packers()) entry(packer.name, packer.summary);
  text += "\nbatching strategies (batch --strategy NAME):\n";
  for (const BatchKindInfo& kind : batch_kinds()) {
    entry(kind.name, kind.parameters.empty() ? std::string(kind.summary)
                                             : fmt::format("{} ({}{})", kind.summary, kind.name, kind.parameters));
  }
  text += "\noutput presets (pack --for NAME; formats --for NAME tells how to train with it):\n";
  for (const Preset& preset : presets()) {
    entry(preset.name, preset.summary);
    entry("", fmt::format("as {}", names_of(preset.containers)));
  }
  text += "\ncontainers (pack --as NAME):\n";
  for (const ContainerInfo& container : containers()) entry(container.name, container.summary);
  return text;
}

std::string preset_to_text(const Preset& preset) {
  std::string text = fmt::format("--for {}: {}\nwritten as {}; {}\n\n", preset.name, preset.summary, names_of(preset.containers),
                                 preset.ragged ? "rows end with their last token" : "rows are padded to their full length");
  std::size_t widest = 20;
  for (const OutputColumn& column : preset.columns) widest = std::max(widest, column.name.size());
  for (const OutputColumn& column : preset.columns) {
    text +=
        fmt::format("  {:<{}} {:<5} {}{}\n", column.name, widest, info(column.type).name, describe(column.source), when(column));
  }
  text += '\n';
  if (const std::string_view rule = kLabelRules[static_cast<std::size_t>(preset.labels)]; !rule.empty())
    text += fmt::format("{}\n", rule);
  if (preset.slot_rule == SlotRule::targets) text += "a sequence of n tokens takes n - 1 slots of a row\n";
  if (!preset.positions_column.empty()) {
    text +=
        "K is -K, or the segments of the deepest row; M + K is what the row with most masked tokens has, or --max-predictions + "
        "K\n";
  }
  if (preset.needs_eos_id) text += "needs --eos-id\n";
  if (preset.ends_in_eos) text += "EOS is appended where a sequence does not end in it, and is the padding\n";
  return text + fmt::format("\ntrain with:\n{}\n", preset.train_with);
}

std::string preset_to_json(const Preset& preset) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", 1).member("command", "formats");
  json.key("preset");
  write_preset(json, preset);
  json.end_object();
  return json.take() + "\n";
}

std::string formats_to_json() {
  JsonWriter json;
  json.begin_object();
  json.member("schema", 1).member("command", "formats");
  json.key("inputs").begin_array();
  for (const FormatSummary& format : input_format_summaries()) {
    json.begin_object(true);
    json.member("name", format.name).member("summary", format.summary).member("boundaries", format.boundaries);
    json.end_object();
  }
  json.end_array();
  json.key("packers").begin_array();
  for (const PackerInfo& packer : packers()) {
    json.begin_object(true);
    json.member("name", packer.name).member("summary", packer.summary).member("input_order", packer.input_order);
    json.end_object();
  }
  json.end_array();
  json.key("batching").begin_array();
  for (const BatchKindInfo& kind : batch_kinds()) {
    json.begin_object(true);
    json.member("name", kind.name).member("parameters", kind.parameters).member("summary", kind.summary);
    json.end_object();
  }
  json.end_array();
  json.key("outputs").begin_array();
  for (const ContainerInfo& container : containers()) {
    json.begin_object(true);
    json.member("name", container.name).member("summary", container.summary);
    json.end_object();
  }
  json.end_array();
  json.key("presets").begin_array();
  for (const Preset& preset : presets()) write_preset(json, preset);
  json.end_array();
  json.end_object();
  return json.take() + "\n";
}

}  // namespace shardpack
