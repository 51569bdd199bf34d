#include "jobs/verify_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "base/wide.h"
#include "io/packed_dataset.h"

namespace shardpack {

namespace {

const RemovedCount& removed(const RemovedCounts& counts, RemovalCause cause) { return counts[static_cast<std::size_t>(cause)]; }

class Comparison {
 public:
  Comparison(std::string_view kind, IssueList& issues) : kind_(kind), issues_(issues) {}

  /// "WHAT is STATED, FOUND was found".
  void equal(std::string_view what, Int128 stated, Int128 found, std::string_view by = "the rows give") {
    if (stated == found) return;
    issues_.add(kind_, kManifestName, fmt::format("{} is {}, {} {}", what, show(stated), by, show(found)));
  }
  void equal(std::string_view what, const Fingerprint& stated, const Fingerprint& found, std::string_view by) {
    if (stated == found) return;
    issues_.add("fingerprint", kManifestName, fmt::format("{} is {}, {} {}", what, stated.hex(), by, found.hex()));
  }

 private:
  static std::string show(Int128 value) {
    constexpr Int128 most = std::numeric_limits<std::int64_t>::max();
    return value <= most && value >= -most ? with_commas(static_cast<std::int64_t>(value)) : "a number beyond 63 bits";
  }

  std::string_view kind_;
  IssueList& issues_;
};

/// What the reader of the manifest leaves to us, and no check of rows may stumble over.
bool check_ranges(const Manifest& manifest, IssueList& issues) {
  bool sound = true;
  const auto require = [&](bool holds, std::string_view what) {
    if (holds) return;
    issues.add("manifest", kManifestName, std::string(what));
    sound = false;
  };
  const std::int64_t id_limit = manifest.id_type == IdType::u16 ? 0xFFFF : 0xFFFFFFFF;
  const auto fits = [&](const std::optional<std::int64_t>& id) { return !id || *id <= id_limit; };
  require(manifest.row_tokens % manifest.plan.segment_multiple == 0, "segment_multiple does not divide row_tokens");
  require(manifest.max_segments_in_row <= manifest.row_tokens, "max_segments_in_row is more than a row has slots");
  const bool only_map = !manifest.derived && manifest.compress.empty() && manifest.columns.empty();
  require(manifest.holds_tokens() || only_map, "an index with derived arrays, compression or columns");
  require(fits(manifest.pad_id), "pad_id does not fit the dtype");
  require(fits(manifest.eos_id) || manifest.added_eos == 0, "eos_id does not fit the dtype");
  require(fits(manifest.bos_id) || manifest.added_bos == 0, "bos_id does not fit the dtype");
  return sound;
}

/// Does every record lie in exactly one partition, and, unless blocks were dealt, in the order of the sources?
void check_partitions(const Manifest& manifest, IssueList& issues) {
  struct Run {
    SequenceRange sequences;
    const ManifestPartition* partition;
  };
  std::vector<Run> runs;
  bool dealt = false;
  for (const ManifestPartition& partition : manifest.partitions) {
    for (const SequenceRange& run : partition.sequences.runs()) runs.push_back({run, &partition});
  }
  for (const auto& [option, value] : manifest.options) dealt |= option == "partition_order" && value == "\"shuffled\"";
  if (dealt) std::ranges::sort(runs, {}, [](const Run& run) { return run.sequences.first; });
  SequenceId next = 0;
  for (const Run& run : runs) {
    if (run.sequences.first != next) {
      issues.add("manifest", kManifestName,
                 fmt::format("the partition of {} begins at sequence {} where {} is next", run.partition->plan,
                             with_commas(run.sequences.first), with_commas(next)));
    }
    next = run.sequences.last;
  }
}

void check_sums(const Manifest& manifest, IssueList& issues) {
  Comparison compare("manifest", issues);
  Int128 sequences = 0, tokens = 0, rows = 0, planned_rows = 0, bound = 0, partitioned = 0;
  for (const ManifestSource& source : manifest.sources) {
    sequences += source.sequences;
    tokens += source.tokens;
  }
  for (const ManifestShard& shard : manifest.shards) rows += shard.rows;
  for (const ManifestPartition& partition : manifest.partitions) {
    partitioned += partition.sequences.count();
    planned_rows += partition.rows;
    bound += partition.bound;
  }
  compare.equal("source_sequences", manifest.source_sequences, sequences, "the sources have");
  compare.equal("source_sequences", manifest.source_sequences, partitioned, "the partitions have");
  compare.equal("source_tokens", manifest.source_tokens, tokens, "the sources have");
  compare.equal("rows", manifest.rows, rows, "the shards have");
  compare.equal("plan.rows", manifest.plan.rows, planned_rows, "the partitions have");
  compare.equal("plan.bound", manifest.plan.bound, bound, "the partitions have");
  compare.equal("rows without repeated and fill rows", Int128{manifest.rows} - manifest.repeated_rows - manifest.fill_rows,
                planned_rows, "the partitions have");
  compare.equal("padding_tokens", manifest.padding_tokens, planned_rows * manifest.row_tokens - manifest.slots(),
                "the planned rows leave");
}

/// Source + added = packed + removed.
void check_conservation(const Manifest& manifest, IssueList& issues) {
  Comparison compare("conservation", issues);
  Int128 sequences = manifest.sequences;
  Int128 tokens = Int128{manifest.tokens} - manifest.added_eos - manifest.added_bos, loss_tokens = manifest.loss_tokens;
  for (std::size_t cause = 0; cause < manifest.removed.size(); ++cause) {
    if (cause == static_cast<std::size_t>(RemovalCause::padding)) continue;  // was never among the source tokens
    tokens += manifest.removed[cause].tokens;
    loss_tokens += manifest.removed[cause].loss_tokens;
    if (cause != static_cast<std::size_t>(RemovalCause::truncated)) sequences += manifest.removed[cause].sequences;
  }
  compare.equal("source_sequences", manifest.source_sequences, sequences, "packed and removed ones are");
  compare.equal("source_tokens", manifest.source_tokens, tokens, "packed and removed ones are");
  compare.equal("loss.source_tokens", manifest.source_loss_tokens, loss_tokens, "packed and removed ones are");
  if (manifest.holds_tokens()) {
    compare.equal("fingerprint.source", manifest.source_fingerprint, *manifest.packed_fingerprint + *manifest.removed_fingerprint,
                  "packed + removed is");
  }
}

void check_names(const Manifest& manifest, const DatasetFacts& facts, IssueList& issues) {
  const auto check = [&](std::string_view key, const std::string& stated, const std::set<std::string>& found) {
    if (found.size() != 1 || stated == *found.begin()) return;  // several plans may differ: then no name is theirs
    issues.add("manifest", kManifestName, fmt::format("{} is {}, the plans say {}", key, stated, *found.begin()));
  };
  check("plan.packer", manifest.plan.packer, facts.packers);
  check("plan.bound_kind", manifest.plan.bound_kind, facts.bound_kinds);
}

}  // namespace

bool check_manifest(const Manifest& manifest, IssueList& issues) {
  if (!check_ranges(manifest, issues)) return false;
  check_sums(manifest, issues);
  check_partitions(manifest, issues);
  check_conservation(manifest, issues);
  return true;
}

void check_totals(const Manifest& manifest, const DatasetFacts& facts, IssueList& issues) {
  Comparison compare("count", issues);
  const RowFacts& rows = facts.planned;
  compare.equal("rows without repeated and fill rows", manifest.planned_rows(), rows.rows);
  compare.equal("segments", manifest.segments, rows.segments);
  compare.equal("tokens", manifest.tokens, rows.tokens);
  compare.equal("loss.tokens", manifest.loss_tokens, rows.loss_tokens);
  compare.equal("sequences", manifest.sequences, facts.placement.sequences);
  compare.equal("hidden_labels", manifest.hidden_labels, rows.hidden_labels);
  compare.equal("max_segments_in_row", manifest.max_segments_in_row, rows.max_segments);
  compare.equal("added.eos", manifest.added_eos, rows.added_eos);
  compare.equal("added.bos", manifest.added_bos, rows.added_bos);
  compare.equal("repeated.sequences", manifest.repeated_sequences, facts.tail_sequences);
  compare.equal("repeated.tokens", manifest.repeated_tokens, facts.tail.tokens);
  if (manifest.packed_fingerprint)
    compare.equal("fingerprint.packed", *manifest.packed_fingerprint, rows.fingerprint, "the rows give");
  if (facts.rebuilt)
    compare.equal("fingerprint.source", manifest.source_fingerprint, *facts.rebuilt, "rows and removed.csv give in the sources");

  std::int64_t removed_tokens = 0;
  for (const RemovalCause cause :
       {RemovalCause::truncated, RemovalCause::dropped, RemovalCause::too_short, RemovalCause::unlabeled, RemovalCause::tail}) {
    const RemovedCount& stated = removed(manifest.removed, cause);
    const RemovedCount& found = removed(facts.placement.removed, cause);
    const std::string key = fmt::format("removed.{}", kRemovalCauses[static_cast<std::size_t>(cause)]);
    compare.equal(key + ".sequences", stated.sequences, found.sequences, "removed.csv and the rows give");
    compare.equal(key + ".tokens", stated.tokens, found.tokens, "removed.csv gives");
    removed_tokens += found.tokens;
  }
  const RemovedCount& empty = removed(manifest.removed, RemovalCause::empty);
  const RemovedCount& null = removed(manifest.removed, RemovalCause::null);
  compare.equal("empty and null records", Int128{empty.sequences} + null.sequences, facts.placement.without_tokens,
                "those in no row and not in removed.csv are");
  compare.equal("tokens of empty and null records", Int128{empty.tokens} + null.tokens, 0, "expected");

  for (std::size_t f = 0; f < manifest.sources.size(); ++f) {
    const ManifestSource& source = manifest.sources[f];
    compare.equal(fmt::format("tokens of {}", source.name), source.tokens, facts.placement.file_tokens[f],
                  "rows and removed.csv hold");
  }
  if (removed_tokens == 0 && rows.id_max >= 0) {
    compare.equal("ids.min", manifest.id_min, rows.id_min);
    compare.equal("ids.max", manifest.id_max, rows.id_max);
  }
  compare.equal("plan.rows", manifest.plan.rows, facts.plan_rows, "the plans have");
  compare.equal("plan.bound", manifest.plan.bound, facts.plan_bound, "the plans have");
  check_names(manifest, facts, issues);
}

}  // namespace shardpack
