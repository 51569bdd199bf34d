#include "report/scan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/printable.h"
#include "base/units.h"
#include "io/group_key_text.h"
#include "io/json.h"
#include "report/figures.h"

namespace shardpack {

namespace {

constexpr std::size_t kListedFiles = 10;
constexpr double kQuantiles[] = {0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999};

std::string quantile_line(const LengthHistogram& lengths) {
  std::string text;
  for (const double q : {0.1, 0.5, 0.9, 0.99, 0.999}) {
    text += fmt::format("{}{:g} %: {}", text.empty() ? "" : " · ", q * 100, with_commas(lengths.quantile(q)));
  }
  return text;
}

/// A line for each group; of many, the largest.
std::string groups_text(std::vector<GroupLengths> groups) {
  std::string text = report_line("groups", with_commas(static_cast<std::int64_t>(groups.size())));
  std::ranges::stable_sort(groups, std::greater(), [](const GroupLengths& group) { return group.lengths.tokens(); });
  for (std::size_t g = 0; g < std::min(groups.size(), kListedFiles); ++g) {
    text += fmt::format("  {}: {}, {}\n", printable(group_text(groups[g].key)),
                        counted(groups[g].lengths.sequences(), "sequence", "sequences"),
                        counted(groups[g].lengths.tokens(), "token", "tokens"));
  }
  if (groups.size() > kListedFiles) text += fmt::format("  ... and {} more (--json lists all)\n", groups.size() - kListedFiles);
  return text;
}

}  // namespace

std::string scan_to_text(const ScanResult& result) {
  const LengthHistogram& lengths = result.lengths;
  std::string others;
  if (lengths.empty() > 0) others = fmt::format(" ({} empty)", with_commas(lengths.empty()));
  std::string text = report_line("sequences", with_commas(lengths.sequences()) + others);
  text += report_line("tokens", with_commas(lengths.tokens()));
  if (lengths.tokens() > 0) {
    text += report_line("lengths", fmt::format("{} to {}, mean {:.1f}", with_commas(lengths.min_length()),
                                               with_commas(lengths.max_length()), lengths.mean_length()));
    text += report_line("quantiles", quantile_line(lengths));
    text += report_line("token ids", fmt::format("{} to {}, stored as {}", with_commas(result.id_min), with_commas(result.id_max),
                                                 result.id_max <= 65'535 ? "u16" : "u32"));
  }
  if (result.null_records > 0) text += report_line("null records", with_commas(result.null_records));
  if (result.padding.tokens > 0) {
    text += report_line("padding", fmt::format("removed {} from {}", counted(result.padding.tokens, "token", "tokens"),
                                               counted(result.padding.sequences, "sequence", "sequences")));
  }
  if (!result.saved.empty()) {
    text += report_line("partitions", fmt::format("{} (pack --part I/N: N up to this)", with_commas(result.partitions)));
  }
  if (!result.groups.empty()) text += groups_text(result.groups);
  text += report_line("fingerprint", result.fingerprint.hex());
  if (!result.not_carried.empty()) text += report_line("not carried", fmt::format("{}", fmt::join(result.not_carried, ", ")));

  std::int64_t bytes = 0;
  for (const ManifestSource& file : result.files) bytes += file.bytes;
  text += report_line("files",
                      fmt::format("{}, {}", with_commas(static_cast<std::int64_t>(result.files.size())), short_bytes(bytes)));
  for (std::size_t at = 0; at < std::min(result.files.size(), kListedFiles); ++at) {
    const ManifestSource& file = result.files[at];
    text +=
        fmt::format("  {}: {}, {}, {}, {}\n", printable(file.name), file.format, counted(file.sequences, "sequence", "sequences"),
                    counted(file.tokens, "token", "tokens"), short_bytes(file.bytes));
  }
  if (result.files.size() > kListedFiles) {
    text += fmt::format("  ... and {} more (--json lists all)\n", result.files.size() - kListedFiles);
  }
  return text;
}

std::string scan_to_json(const ScanResult& result, double seconds) {
  const LengthHistogram& lengths = result.lengths;
  JsonWriter json;
  json.begin_object();
  json.member("schema", 1).member("command", "scan");
  json.member("sequences", lengths.sequences()).member("tokens", lengths.tokens()).member("empty", lengths.empty());
  json.member("min_length", lengths.min_length()).member("max_length", lengths.max_length());
  json.member("mean_length", lengths.mean_length());
  json.key("quantiles").begin_object(true);
  for (const double q : kQuantiles) json.member(fmt::format("{:g}", q), lengths.quantile(q));
  json.end_object();
  if (lengths.tokens() > 0) {
    json.member("token_id_min", result.id_min).member("token_id_max", result.id_max);
  } else {
    json.key("token_id_min").null().key("token_id_max").null();
  }
  json.member("fingerprint", result.fingerprint.hex());
  json.key("files").begin_array();
  for (const ManifestSource& file : result.files) {
    json.begin_object(true);
    json.member("name", file.name).member("format", file.format).member("bytes", file.bytes);
    json.member("sequences", file.sequences).member("tokens", file.tokens).member("xxh3_128", file.hash);
    json.end_object();
  }
  json.end_array();
  if (!result.groups.empty()) {
    json.key("groups").begin_array();
    for (const GroupLengths& group : result.groups) {
      json.begin_object(true).key("key").raw(group_text(group.key));
      json.member("sequences", group.lengths.sequences()).member("tokens", group.lengths.tokens()).end_object();
    }
    json.end_array();
  }
  if (!result.saved.empty()) json.member("partitions", result.partitions);
  json.member("null_records", result.null_records);
  json.key("padding").begin_object(true);
  json.member("sequences", result.padding.sequences).member("tokens", result.padding.tokens);
  json.end_object();
  json.key("not_carried").begin_array(true);
  for (const std::string& column : result.not_carried) json.value(column);
  json.end_array();
  json.member("seconds", seconds);
  json.end_object();
  return json.take() + "\n";
}

}  // namespace shardpack
