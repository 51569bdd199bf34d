// verify: is a packed dataset, or a plan, what it claims to be? Shares the codecs with the writer, and none of its row, cover or
// fingerprint logic.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/checked.h"
#include "base/units.h"
#include "io/batch_folder.h"
#include "io/file.h"
#include "io/json.h"
#include "io/ltd_files.h"
#include "io/manifest_parts.h"
#include "io/packed_dataset.h"
#include "io/plan_file.h"
#include "io/row_reader.h"
#include "io/trainer_files.h"
#include "jobs/verify_against.h"
#include "jobs/verify_batches.h"
#include "jobs/verify_folder.h"
#include "jobs/verify_issues.h"
#include "jobs/verify_ltd.h"
#include "jobs/verify_plan.h"
#include "jobs/verify_shards.h"
#include "jobs/verify_totals.h"
#include "jobs/verify_trainer_files.h"
#include "shardpack/jobs.h"

namespace shardpack {

namespace {

namespace fs = std::filesystem;

/// How a bound was checked.
std::string_view proof_of(std::string_view bound_kind) {
  if (bound_kind == name(BoundKind::lp)) return "proven by a certificate, in whole numbers";
  return bound_kind == "mixed" ? "computed again, or proven by a certificate" : "computed again";
}

VerifyResult verify_plan(const std::string& text, const std::string& path) {
  const std::string shown = fs::path(path).filename().string();
  IssueList issues;
  PlanFile file;
  try {
    file = plan_from_json(text, shown);
    check_plan(file, shown, issues);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
    issues.add("plan", shown, without_path(error));
  }
  VerifyResult result;
  result.issues = issues.take();
  result.rows = file.plan.rows();
  result.segments = file.items.sequences() - file.items.empty();
  result.tokens = file.items.tokens();
  result.bytes = static_cast<std::int64_t>(text.size());
  result.checked = {
      fmt::format("cover: {} strategies: a place for each of {} items", with_commas(file.plan.strategies()),
                  with_commas(result.segments)),
      fmt::format("rows: {} of {} slots: none over its length{}", with_commas(result.rows), with_commas(file.plan.row_tokens),
                  file.plan.max_segments > 0 ? fmt::format(" or {} segments", file.plan.max_segments) : std::string()),
      fmt::format("bound: {} rows ({}): {}", with_commas(file.plan.bound.rows), name(file.plan.bound.kind),
                  proof_of(name(file.plan.bound.kind)))};
  return result;
}

/// "every token id, segment id and position id", or the columns of a trainer.
std::string checked_columns(const Manifest& manifest, const OutputRules& output) {
  if (!output.holds_tokens()) return "boundaries, and where their tokens lie in the sources";
  if (output.native()) return manifest.derived ? "every token id, segment id and position id" : "every token id";
  std::string text = fmt::format("as {} for {}: every value of", manifest.container, manifest.preset);
  for (const OutputColumn& column : output.columns)
    text += fmt::format("{} {}", &column == output.columns.data() ? "" : ",", column.name);
  return text;
}

/// How the sources' labels come back from a trainer's rows.
std::string label_line(const Manifest& manifest, const OutputRules& output) {
  std::string from;
  for (const OutputColumn& column : output.columns) {
    const bool states = column.source == OutputSource::labels || column.source == OutputSource::loss_mask ||
                        column.source == OutputSource::targets || column.source == OutputSource::target_ids;
    if (states) from += fmt::format("{}{}", from.empty() ? "" : " and ", column.name);
  }
  if (output.keeps_first_values) from += fmt::format(", and of first tokens from {}", kFirstLabelStem);
  return fmt::format("labels: {} of the sources, from {}", manifest.columns[static_cast<std::size_t>(output.label_column)].name,
                     from);
}

std::string fingerprint_line(const Manifest& manifest, const VerifyResult& result, bool against) {
  if (manifest.holds_tokens())
    return fmt::format("fingerprint: {} tokens, shard by shard: source = packed + removed", with_commas(result.tokens));
  if (against) return "fingerprint: the rows' tokens and removed ones, read in the sources, are all that was scanned";
  return "fingerprint: it is of the sources; --against reads the rows' tokens there";
}

std::vector<std::string> checked_lines(const PackedDataset& dataset, const OutputRules& output, const VerifyResult& result,
                                       const VerifyOptions& options) {
  const Manifest& manifest = dataset.manifest();
  std::size_t files = manifest.files.size() + manifest.trainer_files.size() + 1;
  for (const ManifestShard& shard : manifest.shards) files += shard.files.size() + shard.trainer_files.size();
  std::vector<std::string> lines{
      fmt::format("files: {}, {}: sizes, XXH3-128, nothing else in the folder", with_commas(static_cast<std::int64_t>(files)),
                  short_bytes(result.bytes)),
      fmt::format("rows: {} of {} slots: {}", with_commas(result.rows), with_commas(manifest.row_tokens),
                  checked_columns(manifest, output)),
      fmt::format("cover: {} segments: the rows are those of {} {}, every source token is in them or in removed.csv, once",
                  with_commas(result.segments), manifest.partitions.size(), manifest.partitions.size() == 1 ? "plan" : "plans"),
      fingerprint_line(manifest, result, !options.against.empty()),
      fmt::format("bound: {} rows: {}", with_commas(manifest.plan.bound), proof_of(manifest.plan.bound_kind))};
  if (output.label_column >= 0) lines.insert(lines.begin() + 2, label_line(manifest, output));
  const bool grouped =
      std::ranges::any_of(manifest.partitions, [](const ManifestPartition& partition) { return !partition.groups.empty(); });
  if (grouped) {
    lines.push_back(options.against.empty()
                        ? "groups: rows realise the plans of the groups; --against also tells whose sequences they hold"
                        : "groups: no row mixes two values of the group column");
  }
  if (!options.against.empty()) {
    lines.push_back(fmt::format("sources: {} {} read again: hashes, fingerprint, every record's length", manifest.sources.size(),
                                manifest.sources.size() == 1 ? "file" : "files"));
  }
  return lines;
}

std::int64_t manifest_bytes(const PackedDataset& dataset) {
  return File(dataset.folder() + "/" + std::string(kManifestName), File::Mode::read).size();
}

/// By its manifest; none, with an issue, when there is no such preset or its files lie elsewhere.
std::optional<OutputRules> known_output(const PackedDataset& dataset, IssueList& issues) {
  try {
    OutputRules output = rules_of(dataset.manifest(), "");
    if (output.native() == dataset.native()) return output;
    issues.add("manifest", kManifestName,
               fmt::format("the files of the preset {} do not lie like this", dataset.manifest().preset));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
    issues.add("manifest", kManifestName, without_path(error));
  }
  return std::nullopt;
}

VerifyResult verify_dataset(const std::string& path, const VerifyOptions& options, const RunContext& context) {
  IssueList issues;
  VerifyResult result;

  // A manifest that cannot be trusted tells nothing about the rest: that is the verdict.
  std::optional<PackedDataset> dataset;
  try {
    dataset.emplace(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
    issues.add("manifest", kManifestName, without_path(error));
    result.issues = issues.take();
    return result;
  }
  const Manifest& manifest = dataset->manifest();

  // Names and sizes, then the manifest's own arithmetic: what the pass relies on.
  const std::set<std::string, std::less<>> whole = check_folder(*dataset, issues);
  if (!check_manifest(manifest, issues)) {
    result.issues = issues.take();
    return result;
  }

  // How rows became a trainer's, which is undone row by row.
  const std::optional<OutputRules> output = known_output(*dataset, issues);
  if (!output) {
    result.issues = issues.take();
    return result;
  }

  // The sources first, when they are there: with them every record's length is known.
  std::optional<ScannedSource> source;
  if (!options.against.empty()) source = check_against(manifest, options.against, context, issues);

  // One pass over every byte: hashes, rows, plans, placements, fingerprints.
  const DatasetFacts facts = check_shards(*dataset, *output, whole, source ? source->source.get() : nullptr, context, issues);
  if (facts.complete) check_totals(manifest, facts, issues);
  const std::int64_t extra_bytes =
      check_trainer_files(*dataset, *output, facts.complete ? &facts.planned : nullptr, whole, issues);
  ensure(facts.complete || !issues.empty(), "something could not be checked, and no issue says so");

  result.issues = issues.take();
  result.rows = facts.planned.rows + facts.tail.rows;
  result.segments = facts.planned.segments;
  result.tokens = facts.planned.tokens;
  result.bytes = facts.bytes + extra_bytes + manifest_bytes(*dataset);
  if (facts.complete) result.checked = checked_lines(*dataset, *output, result, options);
  return result;
}

}  // namespace

VerifyResult verify(const std::string& path, const VerifyOptions& options, const RunContext& context) {
  if (has_manifest_of(path, kBatchesFormat)) return verify_batches(path, options, context);
  std::error_code ignored;
  if (is_ltd_folder(path)) return verify_ltd(path, options, context);
  if (fs::is_directory(path, ignored) || fs::path(path).filename() == kManifestName)
    return verify_dataset(path, options, context);

  const auto refuse = [&] {
    throw Error(ErrorCode::bad_data,
                "not a packed dataset, plan.json, batch plan or random-LTD folder; shards are checked with scan", path);
  };
  const std::string text = read_small_file(path);
  if (text.find("shardpack-plan") == std::string::npos) refuse();  // a shard would be an odd plan, not none
  const Json json = Json::parse(text, path);
  const std::string format =
      json.is_object() && json.has("format") && json.at("format").is_string() ? json.at("format").as_string() : "";
  if (format == "shardpack-plan") {
    if (!options.against.empty())
      throw Error(ErrorCode::usage,
                  fmt::format("--against compares a packed dataset with its sources; 'shardpack pack SOURCE --plan {} -o X -n' "
                              "checks a plan against them",
                              path),
                  path);
    return verify_plan(text, path);
  }
  refuse();
  return {};
}

}  // namespace shardpack
