#include "jobs/verify_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "base/hash.h"
#include "base/units.h"
#include "exec/ordered_map.h"
#include "io/file.h"
#include "io/plan_file.h"
#include "io/trainer_files.h"
#include "jobs/partitions.h"
#include "jobs/verify_against.h"
#include "jobs/verify_folder.h"
#include "jobs/verify_plan.h"
#include "jobs/verify_removed.h"
#include "jobs/verify_shard.h"

namespace shardpack {

namespace {

/// A partition while its shards are read.
struct PartitionCheck {
  const ManifestPartition* listed = nullptr;
  std::unique_ptr<PlanRealisation> plan;  // null when it cannot be read
  std::unique_ptr<Placement> placement;
  IssueList issues;  // found when it was opened, which is ahead of the checks by as many blocks as are in flight
  bool complete = true;
};

struct ShardCheck {
  ShardCheck(const PackedDataset& dataset, const ManifestShard& listed_, const OutputRules& output,
             const std::string& trainer_name, const std::set<std::string, std::less<>>& whole)
      : listed(listed_), files(dataset, listed_, output, trainer_name, whole, issues), complete(files.readable()) {}

  const ManifestShard& listed;
  IssueList issues;  // found when it was opened
  ShardFiles files;
  std::shared_ptr<PartitionCheck> partition;
  bool tail = false;
  std::int64_t first_row = 0;  // of the dataset
  RowsOrigin origin;
  RowFacts facts;
  std::int64_t advanced = 0;  // bytes reported as progress
  bool complete;
};

/// What to do next: bytes or rows for a worker, then an end that only the consumer acts upon.
struct Task {
  enum class Kind { bytes, rows, end_of_shard, end_of_partition } kind = Kind::bytes;
  std::shared_ptr<PartitionCheck> partition{};
  std::shared_ptr<ShardCheck> shard{};
  std::size_t file = 0;  // bytes: of which
  Range range{};         // bytes of the file, or rows of the shard
  std::unique_ptr<BlockBuffers> buffers{};
  CheckedRows checked{};
  std::optional<Error> damage{};  // a compressed frame that cannot be read
};

std::int64_t bytes_of(const ManifestShard& shard) {
  std::int64_t bytes = 0;
  for (const ManifestFile& file : shard.files) bytes += file.bytes;
  for (const ManifestFile& file : shard.trainer_files) bytes += file.bytes;
  return bytes;
}

class DatasetPass {
 public:
  DatasetPass(const PackedDataset& dataset, const OutputRules& output, const std::set<std::string, std::less<>>& whole,
              const SequenceSource* source, const RunContext& context, IssueList& issues)
      : dataset_(dataset),
        manifest_(dataset.manifest()),
        output_(output),
        whole_(whole),
        source_(source),
        index_(source == nullptr ? nullptr : &source->index()),
        context_(context),
        issues_(issues),
        rules_{.row_tokens = manifest_.row_tokens,
               .segment_multiple = manifest_.plan.segment_multiple,
               .unslotted = unslotted_tokens(output.preset->slot_rule),
               .max_segments = manifest_.plan.max_segments,
               .position_start = manifest_.position_start,
               .pad_id = manifest_.pad_id,
               .id_min = manifest_.id_min,
               .id_max = manifest_.id_max,
               .eos_id = manifest_.eos_id,
               .bos_id = manifest_.bos_id,
               .sources = manifest_.sources,
               .first_sequence = first_sequences(manifest_.sources),
               .columns = manifest_.columns,
               .loss_column = manifest_.loss_column,
               .single_segments = truncates_at_start(manifest_),
               .output = output.native() ? nullptr : &output,
               .holds_tokens = output.holds_tokens()},
        all_sequences_(0, rules_.first_sequence.back()),
        recounts_{FingerprintRecount(longest_source(), "input_ids")},
        removed_(open_removed(), manifest_.sources, issues) {
    for (const Column& column : manifest_.columns) recounts_.push_back(recounts_.front().of_column(column.name));
    facts_.placement.file_tokens.resize(manifest_.sources.size());
    if (rebuilds()) facts_.rebuilt = Fingerprint{};
  }

  DatasetFacts run() {
    find_tail();
    find_strangers();
    std::int64_t total = 0;
    for (const ManifestShard& shard : manifest_.shards) total += bytes_of(shard);
    context_.progress.begin_stage("verifying", total, "bytes");
    ordered_map(
        context_.pool, in_flight(), context_.stop, [this] { return produce(); },
        [this](Task&& task) { return work(std::move(task)); }, [this](Task&& task) { consume(std::move(task)); });
    context_.progress.end_stage();
    if (next_shard_ != manifest_.shards.size()) {
      issues_.add("manifest", kManifestName, "there are shards that belong to no partition");
      facts_.complete = false;
    }
    finish_removed();
    finish_tail();
    if (facts_.rebuilt) *facts_.rebuilt += facts_.planned.fingerprint;
    return std::move(facts_);
  }

 private:
  /// Are the rows' tokens read in the sources?
  bool rebuilds() const { return source_ != nullptr && !output_.holds_tokens(); }

  std::int64_t longest_source() const {
    std::int64_t longest = 0;
    for (const ManifestSource& source : manifest_.sources) longest = std::max(longest, source.tokens);
    return longest;
  }

  /// Blocks in flight that keep the workers busy within the memory budget.
  int in_flight() const {
    const int wanted = default_in_flight(context_.pool);
    if (context_.memory_bytes <= 0) return wanted;
    return static_cast<int>(std::clamp<std::int64_t>(context_.memory_bytes / 2 / block_bytes(manifest_, output_), 1, wanted));
  }

  std::optional<File> open_removed() const {
    if (!whole_.contains(RemovedReader::kFileName)) return std::nullopt;
    return File(dataset_.file_path("", std::string(RemovedReader::kFileName)), File::Mode::read);
  }

  const ManifestFile* listed_file(std::string_view name) const {
    const auto found =
        std::find_if(manifest_.files.begin(), manifest_.files.end(), [&](const ManifestFile& f) { return f.name == name; });
    return found == manifest_.files.end() ? nullptr : &*found;
  }

  /// Beside the manifest there are plans and removed.csv: nobody else reads, and so hashes, another file.
  void find_strangers() {
    std::set<std::string_view> known{RemovedReader::kFileName};
    for (const ManifestPartition& partition : manifest_.partitions) known.insert(partition.plan);
    for (const ManifestFile& file : manifest_.files) {
      if (!known.contains(file.name)) {
        issues_.add("manifest", kManifestName,
                    fmt::format("{} is listed, and is neither a partition's plan nor {}", file.name, RemovedReader::kFileName));
      }
    }
  }

  // ---- tail -----------------------------------------------------------------------------------------------------------------

  /// Repeated and fill rows lie in shards of their own at the end.
  void find_tail() {
    tail_rows_ = manifest_.repeated_rows + manifest_.fill_rows;
    first_tail_shard_ = manifest_.shards.size();
    std::int64_t rows = 0;
    while (rows < tail_rows_ && first_tail_shard_ > 0) rows += manifest_.shards[--first_tail_shard_].rows;
    if (rows != tail_rows_) {
      issues_.add("tail", kManifestName,
                  fmt::format("{} repeated and fill rows are no whole shards at the end", with_commas(tail_rows_)));
    }
    if (manifest_.repeated_rows > 0 && manifest_.fill_rows > 0) {
      issues_.add("tail", kManifestName, "both repeated and fill rows");
    }
    head_rows_ = manifest_.repeated_rows > 0 ? std::clamp<std::int64_t>(manifest_.planned_rows(), 0, tail_rows_) : 0;
  }

  void take_tail_digests(const Task& task) {
    std::int64_t row = task.shard->first_row + task.range.first;
    for (const std::uint64_t digest : task.checked.digests) {
      if (task.shard->tail) {
        const auto original = head_digests_.find((row - manifest_.planned_rows()) % head_rows_);
        if (original != head_digests_.end() && original->second != digest) {
          issues_.add("tail", task.shard->listed.folder,
                      fmt::format("expected row {} of the dataset again", with_commas(original->first)),
                      row - task.shard->first_row);
        }
      } else if (row < head_rows_) {
        head_digests_.emplace(row, digest);
      }
      ++row;
    }
  }

  void finish_tail() {
    std::ranges::sort(tail_sequences_);
    facts_.tail_sequences = std::unique(tail_sequences_.begin(), tail_sequences_.end()) - tail_sequences_.begin();
  }

  // ---- producing ------------------------------------------------------------------------------------------------------------

  std::optional<Task> produce() {
    while (tasks_.empty()) {
      if (partition_ && next_shard_of_partition_ < partition_->listed->shards.size()) {
        open_shard(partition_->listed->shards[next_shard_of_partition_++]);
      } else if (partition_) {
        tasks_.push_back({.kind = Task::Kind::end_of_partition, .partition = std::exchange(partition_, nullptr)});
      } else if (next_partition_ < manifest_.partitions.size()) {
        open_partition(manifest_.partitions[next_partition_++]);
      } else {
        return std::nullopt;
      }
    }
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    if (task.kind == Task::Kind::bytes || task.kind == Task::Kind::rows) {
      if (free_buffers_.empty()) free_buffers_.push_back(std::make_unique<BlockBuffers>());
      task.buffers = std::move(free_buffers_.back());
      free_buffers_.pop_back();
    }
    return task;
  }

  void open_partition(const ManifestPartition& listed) {
    partition_ = std::make_shared<PartitionCheck>();
    partition_->listed = &listed;
    next_shard_of_partition_ = 0;
    read_plan(*partition_);
    const auto refuse = [&](const std::string& why) {
      partition_->issues.add(
          "manifest", kManifestName,
          fmt::format("the partition of {} has {} sequences, {}", listed.plan, with_commas(listed.sequences.count()), why));
      partition_->complete = false;
    };
    if (listed.sequences.last() > rules_.first_sequence.back()) {
      refuse(fmt::format("up to number {}, and the sources have {}", with_commas(listed.sequences.last()),
                         with_commas(rules_.first_sequence.back())));
    }
    const std::int64_t unit = partition_->plan ? partition_->plan->plan().policy.keep_together : 1;
    if (const std::int64_t most = std::max(kPartitionSequences, unit); listed.sequences.count() > most)
      refuse(fmt::format("and none has more than {}", with_commas(most)));
  }

  void read_plan(PartitionCheck& partition) {
    const std::string& name = partition.listed->plan;
    const ManifestFile* const file = listed_file(name);
    if (file == nullptr) partition.issues.add("manifest", kManifestName, fmt::format("{} is not among the files", name));
    if (file == nullptr || !whole_.contains(name)) {
      partition.complete = false;
      return;
    }
    const std::string text = read_small_file(dataset_.file_path("", name));
    facts_.bytes += file->bytes;
    if (hash_hex(text) != file->hash) {
      partition.issues.add("checksum", name, std::string(kDamagedBytes));
      partition.complete = false;
    }
    try {
      PlanFile plan = plan_from_json(text, name);
      check_plan(plan, name, partition.issues);
      compare_with_manifest(plan, partition);
      partition.plan = std::make_unique<PlanRealisation>(std::move(plan.plan));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_data) throw;
      partition.issues.add("plan", name, without_path(error));
      partition.complete = false;
    }
  }

  void compare_with_manifest(const PlanFile& file, PartitionCheck& partition) {
    const PackingPlan& plan = file.plan;
    const auto compare = [&](std::string_view what, std::int64_t found, std::int64_t expected) {
      if (found == expected) return;
      partition.issues.add("plan", partition.listed->plan,
                           fmt::format("{} is {}, the manifest says {}", what, with_commas(found), with_commas(expected)));
    };
    compare("row_tokens", plan.row_tokens, manifest_.row_tokens);
    compare("max_segments", plan.max_segments, manifest_.plan.max_segments);
    compare("segment_multiple", plan.policy.segment_multiple, manifest_.plan.segment_multiple);
    compare("rows", plan.rows(), partition.listed->rows);
    compare("bound", plan.bound.rows, partition.listed->bound);
    facts_.plan_rows += plan.rows();
    facts_.plan_bound += plan.bound.rows;
    std::vector<ManifestGroup> groups;
    for (const GroupPlan& group : file.groups) {
      groups.push_back({group.key, group.plan.rows(), group.plan.bound.rows});
      facts_.packers.insert(group.plan.packer);
      facts_.bound_kinds.insert(std::string(name(group.plan.bound.kind)));
    }
    if (groups != partition.listed->groups) {
      partition.issues.add("plan", partition.listed->plan, "its groups, their rows or bounds are not those of the manifest");
    }
    if (!groups.empty()) return;
    facts_.packers.insert(plan.packer);
    facts_.bound_kinds.insert(std::string(name(plan.bound.kind)));
  }

  void open_shard(const std::string& folder) {
    const bool in_order = next_shard_ < manifest_.shards.size() && manifest_.shards[next_shard_].folder == folder;
    if (!in_order || manifest_.shards[next_shard_].rows < 1) {
      partition_->issues.add(
          "manifest", kManifestName,
          fmt::format("{}: {}", folder, in_order ? "a shard without rows" : "not where the list of shards has it"));
      partition_->complete = false;
      next_shard_ += in_order ? 1 : 0;
      return;
    }
    const ManifestShard& listed = manifest_.shards[next_shard_];
    auto shard = std::make_shared<ShardCheck>(
        dataset_, listed, output_,
        trainer_file_name(output_, static_cast<std::int64_t>(next_shard_), static_cast<std::int64_t>(manifest_.shards.size())),
        whole_);
    shard->tail = next_shard_++ >= first_tail_shard_;
    shard->partition = partition_;
    shard->first_row = std::exchange(next_row_, next_row_ + listed.rows);
    shard->origin = {.sequences = shard->tail ? &all_sequences_ : &partition_->listed->sequences,
                     .plan = shard->tail ? nullptr : partition_->plan.get(),
                     .plan_file = partition_->listed->plan,
                     .index = index_ != nullptr && index_->grouped() ? index_ : nullptr,
                     .source = rebuilds() ? source_ : nullptr,
                     .fill = shard->tail && manifest_.fill_rows > 0};
    for (std::size_t file = 0; file < shard->files.files(); ++file) {
      for (const Range& bytes : shard->files.chunks(file)) {
        tasks_.push_back({.kind = Task::Kind::bytes, .shard = shard, .file = file, .range = bytes});
      }
    }
    for (const Range& rows : shard->files.blocks()) tasks_.push_back({.kind = Task::Kind::rows, .shard = shard, .range = rows});
    tasks_.push_back({.kind = Task::Kind::end_of_shard, .shard = shard});
  }

  // ---- in the workers -------------------------------------------------------------------------------------------------------

  Task work(Task&& task) const {
    if (task.kind == Task::Kind::bytes) task.shard->files.read_chunk(task.file, task.range, *task.buffers);
    if (task.kind == Task::Kind::rows) check_rows(task);
    return std::move(task);
  }

  void check_rows(Task& task) const {
    RowsOrigin origin = task.shard->origin;
    origin.digest_rows = head_rows_ > 0 && (task.shard->tail || task.shard->first_row + task.range.first < head_rows_);
    try {
      task.checked = check_stored_rows(task.shard->files.read_rows(task.range, *task.buffers), rules_, origin, recounts_);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_data) throw;
      task.damage = error;
    }
    task.buffers->trainer.clear();  // its file is hashed on its own, and blocks wait here for their turn
  }

  // ---- putting together -----------------------------------------------------------------------------------------------------

  void consume(Task&& task) {
    switch (task.kind) {
      case Task::Kind::bytes:
        task.shard->files.hash_chunk(task.file, task.range, *task.buffers);
        advance(*task.shard, task.range.count);
        break;
      case Task::Kind::rows:
        take_rows(task);
        break;
      case Task::Kind::end_of_shard:
        finish_shard(*task.shard);
        break;
      case Task::Kind::end_of_partition:
        finish_partition(*task.partition);
        break;
    }
    if (task.buffers) free_buffers_.push_back(std::move(task.buffers));
  }

  /// Progress in stored bytes; what rounding leaves is added at the shard's end.
  void advance(ShardCheck& shard, std::int64_t bytes) {
    bytes = std::min(bytes, bytes_of(shard.listed) - shard.advanced);
    shard.advanced += bytes;
    context_.progress.advance(bytes);
  }

  void take_rows(Task& task) {
    ShardCheck& shard = *task.shard;
    shard.files.hash_rows(task.range, *task.buffers);
    advance(shard, bytes_of(shard.listed) / shard.listed.rows * task.range.count);
    if (task.damage) {
      const std::string file = task.damage->path().substr(task.damage->path().rfind('/') + 1);
      const bool of_trainer =
          std::ranges::any_of(shard.listed.trainer_files, [&](const ManifestFile& f) { return f.name == file; });
      issues_.add("damaged", of_trainer ? file : relative_name(shard.listed.folder, file), without_path(*task.damage),
                  task.range.first);
      shard.complete = false;
      return;
    }
    issues_.merge(std::move(task.checked.issues));
    shard.facts += task.checked.facts;
    take_tail_digests(task);
    if (shard.tail) {
      for (const PlacedPiece& piece : task.checked.pieces) tail_sequences_.push_back(piece.sequence);
      return;
    }
    PartitionCheck& partition = *shard.partition;
    if (!partition.complete) return;
    if (!partition.placement) {
      partition.placement = std::make_unique<Placement>(partition.listed->sequences);
    }
    for (const PlacedPiece& piece : task.checked.pieces)
      partition.placement->place(piece.sequence, piece.first_token, piece.tokens);
    for (const std::int64_t strategy : task.checked.strategies) partition.plan->count(strategy);
  }

  void finish_shard(ShardCheck& shard) {
    issues_.merge(std::move(shard.issues));
    facts_.bytes += shard.files.finish(issues_);
    advance(shard, bytes_of(shard.listed));
    if (!shard.complete) {
      shard.partition->complete = false;
      facts_.complete = false;
      return;
    }
    const auto compare = [&](std::string_view what, std::int64_t found, std::int64_t expected) {
      if (found == expected) return;
      issues_.add("count", shard.listed.folder,
                  fmt::format("{} {}, the manifest says {}", with_commas(found), what, with_commas(expected)));
    };
    compare("segments", shard.facts.segments, shard.listed.segments);
    compare("tokens", shard.facts.tokens, shard.listed.tokens);
    compare("loss tokens", shard.facts.loss_tokens, shard.listed.loss_tokens);
    compare("hidden labels", shard.facts.hidden_labels, shard.listed.hidden_labels);
    if (shard.listed.fingerprint && shard.facts.fingerprint != *shard.listed.fingerprint) {
      issues_.add(
          "fingerprint", output_.native() ? shard.listed.folder : shard.listed.trainer_files.front().name,
          fmt::format("its rows give {}, the manifest says {}", shard.facts.fingerprint.hex(), shard.listed.fingerprint->hex()));
    }
    (shard.tail ? facts_.tail : facts_.planned) += shard.facts;
  }

  void finish_partition(PartitionCheck& partition) {
    const ManifestPartition& listed = *partition.listed;
    issues_.merge(std::move(partition.issues));
    if (!partition.complete) {
      removed_.read_until(listed.sequences, [](const RemovedRange&) {});
      facts_.complete = false;
      return;
    }
    const std::int64_t missing = partition.plan->finish(listed.plan, issues_);
    if (missing > 0) issues_.add("cover", listed.plan, fmt::format("{} rows of the plan are not there", with_commas(missing)));
    if (!partition.placement) partition.placement = std::make_unique<Placement>(listed.sequences);
    removed_.read_until(listed.sequences, [&](const RemovedRange& range) {
      partition.placement->remove(range);
      if (rebuilds()) read_removed(range);
    });
    partition.placement->finish(manifest_.sources, index_, manifest_.row_tokens, facts_.placement, issues_);
    partition.placement.reset();
  }

  /// What is in no row belongs to the sum over the sources all the same.
  void read_removed(const RemovedRange& range) {
    constexpr std::int64_t kChunkTokens = std::int64_t{1} << 20;
    const std::int64_t there = index_->place(range.sequence).tokens;  // where the record has fewer, the placement says so
    const std::int64_t end = std::min(range.first_token + range.tokens, there);
    for (std::int64_t first = range.first_token; first < end; first += kChunkTokens) {
      std::vector<std::uint32_t> ids(static_cast<std::size_t>(std::min(kChunkTokens, end - first)));
      std::vector<TokenRequest> request{{range.sequence, first, std::ssize(ids), 0}};
      source_->read_block(request, IdType::u32, ids.data());
      *facts_.rebuilt += recounts_.front().of(range.sequence, first, std::span<const std::uint32_t>(ids));
    }
  }

  void finish_removed() {
    const ManifestFile* const file = listed_file(RemovedReader::kFileName);
    if (file == nullptr || !whole_.contains(RemovedReader::kFileName)) return;
    removed_.finish(file->hash);
    facts_.bytes += file->bytes;
  }

  const PackedDataset& dataset_;
  const Manifest& manifest_;
  const OutputRules& output_;
  const std::set<std::string, std::less<>>& whole_;
  const SequenceSource* source_;
  const SequenceIndex* index_;  // of it
  const RunContext& context_;
  IssueList& issues_;
  const RowRules rules_;
  const SequenceRanges all_sequences_;
  std::vector<FingerprintRecount> recounts_;  // of the ids, and of each column
  RemovedReader removed_;
  DatasetFacts facts_;

  // Where producing is.
  std::size_t next_partition_ = 0, next_shard_of_partition_ = 0, next_shard_ = 0;
  std::int64_t next_row_ = 0;
  std::shared_ptr<PartitionCheck> partition_;
  std::deque<Task> tasks_;
  std::vector<std::unique_ptr<BlockBuffers>> free_buffers_;

  // Rows at the end that repeat the first ones.
  std::int64_t tail_rows_ = 0, head_rows_ = 0;
  std::size_t first_tail_shard_ = 0;
  std::map<std::int64_t, std::uint64_t> head_digests_;  // by row
  std::vector<SequenceId> tail_sequences_;
};

}  // namespace

DatasetFacts check_shards(const PackedDataset& dataset, const OutputRules& output,
                          const std::set<std::string, std::less<>>& whole, const SequenceSource* source,
                          const RunContext& context, IssueList& issues) {
  return DatasetPass(dataset, output, whole, source, context, issues).run();
}

}  // namespace shardpack
