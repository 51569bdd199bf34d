// join: what the parts of a distributed pack have made becomes one dataset, with the bytes of one machine's pack.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/hash.h"
#include "base/units.h"
#include "exec/ordered_map.h"
#include "io/file.h"
#include "io/manifest_parts.h"
#include "io/plan_file.h"
#include "io/staged_output.h"
#include "io/whole_shards.h"
#include "jobs/conservation.h"
#include "jobs/index_views.h"
#include "jobs/pack_manifest.h"
#include "jobs/pack_settings.h"
#include "jobs/part_run.h"
#include "jobs/removed_log.h"
#include "jobs/trainer_extras.h"
#include "jobs/write_partitions.h"
#include "shardpack/error.h"
#include "shardpack/version.h"

namespace shardpack {

namespace {

/// A partition as it was noted, and what its part said when it was finished.
struct FinishedPartition {
  NotedPartition noted;
  PartitionRecord record;
};

/// Collects what is wrong, part by part, and says it in one line.
class Faults {
 public:
  /// `part`: "2/4", or "" where no note tells it.
  void add(const std::string& part, const std::string& fault) { by_part_[part].push_back(fault); }

  void throw_if_any(const std::string& path) const {
    if (by_part_.empty()) return;
    constexpr std::size_t kNamed = 3;
    std::vector<std::string> lines, parts;
    for (const auto& [part, faults] : by_part_) {
      if (!part.empty()) parts.push_back("--part " + part);
      std::string line = part.empty() ? "" : fmt::format("part {}: ", part);
      line += fmt::format("{}",
                          fmt::join(faults.begin(), faults.begin() + std::min<std::ptrdiff_t>(kNamed, std::ssize(faults)), ", "));
      if (faults.size() > kNamed) line += fmt::format(" and {} more", faults.size() - kNamed);
      lines.push_back(std::move(line));
    }
    std::string message = fmt::format("{}", fmt::join(lines, "; "));
    if (!parts.empty()) {
      message += fmt::format(
          "; run the other parts' command 'shardpack pack ... --scan FILE' with {}, then join again; or delete the folder "
          "and begin again",
          fmt::join(parts, ", then "));
    }
    throw Error(ErrorCode::bad_data, message, path);
  }

 private:
  std::map<std::string, std::vector<std::string>> by_part_;
};

/// The run that most partitions are of; of as many, the first one's.
const RunIdentity& common_identity(const std::vector<NotedPartition>& noted) {
  const RunIdentity* best = nullptr;
  std::ptrdiff_t most = 0;
  for (const NotedPartition& one : noted) {
    const auto same =
        std::count_if(noted.begin(), noted.end(), [&](const NotedPartition& other) { return other.identity == one.identity; });
    if (same > most) {
      most = same;
      best = &one.identity;
    }
  }
  return *best;
}

/// Into how many parts the run was cut, as far as its notes tell; 0 when they do not.
std::int64_t parts_of(const std::vector<FinishedPartition>& finished) {
  std::int64_t of = 0;
  for (const FinishedPartition& partition : finished) {
    const std::string& part = partition.record.part;
    of = std::max<std::int64_t>(of, std::atoll(part.substr(part.find('/') + 1).c_str()));
  }
  return of;
}

/// The part that does a partition when there are `of` of them.
std::string part_with(std::int64_t partition, std::int64_t of, std::int64_t partitions) {
  for (std::int64_t index = 1; index <= of; ++index) {
    const Share share = share_of({.index = index, .of = of}, static_cast<std::size_t>(partitions));
    if (partition < static_cast<std::int64_t>(share.last)) return fmt::format("{}/{}", index, of);
  }
  return {};
}

/// Partitions with the same fault; neighbours are told together.
struct FaultyRun {
  std::int64_t first = 0, last = 0;  // [first, last)
  std::string part, fault;           // what follows "is" or "are"

  std::string text(std::int64_t partitions) const {
    if (last - first == 1) return fmt::format("partition {} of {} is {}", first, with_commas(partitions), fault);
    return fmt::format("partitions {} to {} of {} are {}", first, last - 1, with_commas(partitions), fault);
  }
};

/// All partitions of the run, in their order. \throws Error{bad_data} naming each that is missing, unfinished or of another run
std::vector<FinishedPartition> collect(const StagedOutput& staged, std::vector<NotedPartition> noted, const RunIdentity& identity,
                                       std::int64_t partitions, const std::string& output) {
  std::vector<FinishedPartition> finished;
  std::vector<std::pair<std::int64_t, std::string>> faulty;
  std::int64_t next = 0;
  const auto miss_until = [&](std::int64_t number) {
    for (; next < number; ++next) faulty.emplace_back(next, "not there");
  };
  for (NotedPartition& one : noted) {
    if (one.number >= partitions) continue;  // left by another run; goes with the notes
    miss_until(one.number);
    ++next;
    if (one.identity != identity) {
      faulty.emplace_back(one.number, "of another run: " + difference(identity, one.identity));
    } else if (one.record.empty()) {
      faulty.emplace_back(one.number, "not finished");
    } else {
      PartitionRecord record = partition_record_from_json(one.record, staged.parts().file("a journal"));
      finished.push_back({std::move(one), std::move(record)});
    }
  }
  miss_until(partitions);

  const std::int64_t of = parts_of(finished);
  std::vector<FaultyRun> runs;
  for (auto& [number, fault] : faulty) {
    const std::string part = part_with(number, of, partitions);
    if (!runs.empty() && runs.back().last == number && runs.back().part == part && runs.back().fault == fault) {
      ++runs.back().last;
    } else {
      runs.push_back({number, number + 1, part, std::move(fault)});
    }
  }
  Faults faults;
  for (const FaultyRun& run : runs) faults.add(run.part, run.text(partitions));
  faults.throw_if_any(output);
  return finished;
}

/// Read everything once and compare it with the hashes. \throws Error{bad_data} naming the parts whose files are damaged
std::vector<ManifestShard> check_files(const StagedOutput& staged, const std::vector<FinishedPartition>& finished,
                                       const RunContext& context, const std::string& output) {
  std::vector<ManifestShard> shards;
  Faults faults;
  std::map<std::string, std::string> part_of;
  for (const FinishedPartition& partition : finished) {
    const PartitionRecord& record = partition.record;
    for (const std::string& folder : record.entry.shards) {
      const auto noted = std::find_if(partition.noted.shards.begin(), partition.noted.shards.end(),
                                      [&](const ManifestShard& shard) { return shard.folder == folder; });
      if (noted == partition.noted.shards.end()) {
        faults.add(record.part, folder + " was not noted");
      } else {
        shards.push_back(*noted);
      }
      part_of[folder] = record.part;
    }
    if (!is_whole(fmt::format("{}/{}", staged.folder(), record.plan.name), record.plan))
      faults.add(record.part, record.plan.name + " is not as it was written");
    if (record.removed.file && !is_whole(staged.parts().file(record.removed.file->name), *record.removed.file))
      faults.add(record.part, record.removed.file->name + " is not as it was written");
  }
  for (const std::string& folder : staged.damaged(shards, context))
    faults.add(part_of[folder], folder + " is not as it was written");
  faults.throw_if_any(output);
  return shards;
}

/// removed.csv from the partitions' lines of it.
RemovedTotals join_removed(const StagedOutput& staged, const std::vector<FinishedPartition>& finished, bool write) {
  RemovedTotals totals;
  std::optional<File> joined;
  StreamHash hash;
  std::int64_t bytes = 0;
  const std::string name(RemovedLog::kFileName);
  const auto append = [&](std::span<const std::byte> part) {
    if (joined) joined->write_at(bytes, part);
    hash.update(part);
    bytes += std::ssize(part);
  };
  std::vector<std::byte> block(std::size_t{1} << 20);
  for (const FinishedPartition& partition : finished) {
    const RemovedTotals& removed = partition.record.removed;
    totals.fingerprint += removed.fingerprint;
    for (std::size_t cause = 0; cause < totals.loss_tokens.size(); ++cause)
      totals.loss_tokens[cause] += removed.loss_tokens[cause];
    if (!removed.file) continue;
    if (bytes == 0) {
      if (write) joined.emplace(staged.folder() + "/" + name, File::Mode::create);
      append(std::as_bytes(std::span(RemovedLog::kHeader)));
    }
    const File lines(staged.parts().file(removed.file->name), File::Mode::read);
    for (std::int64_t at = 0; at < removed.file->bytes;) {
      const std::size_t count = lines.read_some_at(at, block);
      ensure(count > 0, "what was just compared with its hash is still there");
      append(std::span<const std::byte>(block).first(count));
      at += static_cast<std::int64_t>(count);
    }
  }
  if (bytes == 0) return totals;
  if (joined) {
    joined->sync();
    joined->close();
  }
  totals.file = ManifestFile{.name = name, .bytes = bytes, .hash = hash.hex()};
  return totals;
}

std::vector<Partition> read_plans(const StagedOutput& staged, const std::vector<FinishedPartition>& finished) {
  std::vector<Partition> partitions;
  for (const FinishedPartition& partition : finished) {
    const std::string path = fmt::format("{}/{}", staged.folder(), partition.record.plan.name);
    PlanFile plan = plan_from_json(read_small_file(path), path);
    Partition& read = partitions.emplace_back();
    read.plan = std::move(plan.plan);
    read.groups = std::move(plan.groups);
    read.sequences = partition.record.entry.sequences;
  }
  return partitions;
}

TailRows tail_of(const Manifest& planned) {
  const std::int64_t extra = planned.rows - planned.plan.rows;
  return {.extra = std::max<std::int64_t>(extra, 0), .dropped = std::max<std::int64_t>(-extra, 0)};
}

Tail tail_kind_of(const Manifest& manifest) {
  for (const auto& [name, value] : manifest.options) {
    if (name == "tail" && value == "\"fill\"") return Tail::fill;
  }
  return Tail::repeat;
}

}  // namespace

PackResult join(const std::string& output, const JoinOptions& options, const RunContext& context) {
  // The place is ours alone from here on: no part is at work any more.
  StagedOutput staged(output, kPackedFormat, options.force, context.diagnostics, StagedOutput::Leftovers::join);

  // Every partition is there, finished, and of the same run: options, scan, plans, version.
  std::vector<NotedPartition> noted = staged.parts().partitions();
  if (noted.empty()) throw Error(ErrorCode::bad_data, "no part has begun; pack --part I/N makes them", staged.trainer_folder());
  const RunIdentity identity = common_identity(noted);
  const std::string run_path = staged.parts().file(part_run_name(identity));
  PackResult result = part_run_from_text(read_small_file(run_path), run_path);
  if (result.manifest.tool_version != kVersion) {
    throw Error(ErrorCode::bad_data,
                fmt::format("the parts were packed by shardpack {}, this is {}; join them with the version that packed them",
                            result.manifest.tool_version, kVersion),
                staged.trainer_folder());
  }
  const std::vector<FinishedPartition> finished = collect(staged, std::move(noted), identity, result.partitions, output);

  // Every byte is as its part wrote it, and there is nothing else.
  std::vector<ManifestShard> shards = check_files(staged, finished, context, output);
  std::vector<PartitionRecord> records;
  std::vector<std::string> files;
  for (const FinishedPartition& partition : finished) {
    records.push_back(partition.record);
    files.push_back(partition.record.plan.name);
  }
  if (!options.dry_run) staged.keep_only(shards, files);

  // The manifest, as one machine would have completed it.
  std::vector<Partition> partitions = read_plans(staged, finished);
  Manifest& manifest = result.manifest;
  const TailRows tail = tail_of(manifest);
  add_partitions(manifest, records, std::move(shards), tail, tail_kind_of(manifest),
                 join_removed(staged, finished, !options.dry_run));
  settle_totals(partitions, result);
  if (!options.dry_run) write_trainer_extras(staged, output_rules_of(manifest, true), partitions, manifest);
  result.groups = groups_of(partitions);
  check_conservation(
      manifest,
      "the packed tokens are not those of the saved scan: an input was changed after it; scan again and pack all parts "
      "again, after deleting this folder");
  result.verified = true;

  const std::string manifest_text = to_json(manifest);
  result.bytes_written = listed_bytes(manifest) + static_cast<std::int64_t>(manifest_text.size());
  if (options.dry_run) return result;
  staged.write_file(kManifestName, manifest_text);
  staged.publish();
  return result;
}

}  // namespace shardpack
