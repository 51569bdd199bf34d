#include "report/formats_report.h"

#include <fmt/format.h>

#include "base/wrap.h"
#include "io/json.h"
#include "shardpack/batch_plan.h"
#include "shardpack/formats.h"
#include "shardpack/packer.h"

namespace shardpack {

namespace {

struct Container {
  const char* name;
  const char* summary;
};
constexpr Container kContainers[] = {
    {"npy",
     "a folder of NumPy arrays a shard: input_ids, segment_ids, position_ids, offsets, lengths, sources (docs/formats.md)"},
    {"npy.zst", "the same with --compress zstd: seekable frames of whole rows"},
};

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
  text += "\noutput:\n";
  for (const Container& container : kContainers) entry(container.name, container.summary);
  return text;
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
  for (const Container& container : kContainers) {
    json.begin_object(true);
    json.member("name", container.name).member("summary", container.summary);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take() + "\n";
}

}  // namespace shardpack
