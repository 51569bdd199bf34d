#include "report/unpack_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "io/json.h"
#include "report/figures.h"

namespace shardpack {

namespace {

/// What is not in the files: empty and null records come back as empty ones.
RemovedCounts missing_of(const Manifest& dataset) {
  RemovedCounts missing = dataset.removed;
  missing[static_cast<std::size_t>(RemovalCause::empty)] = {};
  missing[static_cast<std::size_t>(RemovalCause::null)] = {};
  return missing;
}

std::string missing_text(const UnpackResult& result) {
  const std::string text = removed_text(missing_of(result.dataset));
  if (text == "nothing") return "nothing is missing";
  const bool listed = std::any_of(result.dataset.files.begin(), result.dataset.files.end(),
                                  [](const ManifestFile& file) { return file.name == "removed.csv"; });
  return fmt::format("missing, as removed by pack: {}{}", text, listed ? " · removed.csv lists it" : "");
}

}  // namespace

std::string unpack_summary(const UnpackResult& result, const UnpackRun& run) {
  std::string text =
      fmt::format("{} {} ({} tokens) of {}", run.dry_run ? "would unpack" : "unpacked",
                  counted(result.sequences, "sequence", "sequences"), short_count(result.tokens),
                  counted(static_cast<std::int64_t>(result.dataset.sources.size()), "source file", "source files"));
  if (result.empty > 0) text += fmt::format(", {} of them empty", with_commas(result.empty));
  text += fmt::format("\n{}\n", missing_text(result));
  if (run.dry_run) return text + fmt::format("would write to {}; nothing was written (--dry-run)", run.output);
  return text + fmt::format("wrote {} to {} in {:.1f} s; every token and value checked by fingerprint",
                            short_bytes(result.bytes_written), run.output, run.seconds);
}

std::string unpack_to_json(const UnpackResult& result, const UnpackRun& run) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", 1).member("command", "unpack");
  json.member("output", run.output).member("dry_run", run.dry_run);
  json.member("sequences", result.sequences).member("empty", result.empty).member("tokens", result.tokens);
  json.key("missing");
  write_removed(json, missing_of(result.dataset));
  json.key("files").begin_array();
  for (const ManifestFile& file : result.files) {
    json.begin_object(true);
    json.member("name", file.name).member("bytes", file.bytes);
    json.end_object();
  }
  json.end_array();
  json.member("bytes_written", result.bytes_written).member("seconds", run.seconds);
  json.end_object();
  return json.take() + "\n";
}

}  // namespace shardpack
