#include "support/tiny_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "base/hash.h"
#include "core/row_block.h"
#include "io/manifest_parts.h"
#include "io/plan_file.h"
#include "shardpack/packer.h"
#include "shardpack/row_sink.h"
#include "support/memory_source.h"

namespace shardpack {

namespace {

namespace fs = std::filesystem;

/// The sequences of the options in two files, the first with a third of them.
class TinySource final : public SequenceSource {
 public:
  explicit TinySource(const TinyOptions& options) : memory_(sequences(options)) {
    const std::size_t in_first = options.lengths.size() / 3;
    std::vector<SourceFile> files(2);
    for (std::size_t f = 0; f < 2; ++f) {
      files[f].name = f == 0 ? "a.bin" : "b, \"quoted\".bin";
      files[f].format = "memory";
      files[f].hash = hash_hex(files[f].name);
      files[f].record_begin = {0};
    }
    std::vector<std::uint8_t> ends;
    for (std::size_t i = 0; i < options.lengths.size(); ++i) {
      SourceFile& file = files[i < in_first ? 0 : 1];
      file.record_begin.push_back(file.record_begin.back() + options.lengths[i]);
      file.bytes += 2 * options.lengths[i];
    }
    index_ = SequenceIndex(std::move(files));
  }

  const SequenceIndex& index() const override { return index_; }
  void read_block(std::vector<TokenRequest>& requests, IdType type, void* ids) const override {
    memory_.read_block(requests, type, ids);
  }

 private:
  static std::vector<std::vector<std::uint32_t>> sequences(const TinyOptions& options) {
    std::vector<std::vector<std::uint32_t>> result;
    for (std::size_t i = 0; i < options.lengths.size(); ++i) {
      result.emplace_back();
      for (std::int64_t t = 0; t < options.lengths[i]; ++t) {
        result.back().push_back(tiny_token(options, static_cast<std::int64_t>(i), t));
      }
    }
    return result;
  }

  MemorySource memory_;
  SequenceIndex index_;
};

class TinyWriter {
 public:
  TinyWriter(const std::string& folder, const TinyOptions& options)
      : folder_(folder), options_(options), source_(options), index_(source_.index()), keys_(1000, {}) {}

  Manifest write() {
    describe();
    std::string removed = "source,record,first_token,tokens,cause\n";
    const std::string header = removed;
    for (SequenceId first = 0; first < index_.sequences(); first += options_.partition_sequences) {
      write_partition(first, std::min(first + options_.partition_sequences, index_.sequences()), removed);
    }
    if (removed != header) add_file("removed.csv", removed);
    write_tail();
    for (std::size_t s = 0; s < planned_shards_; ++s) *manifest_.packed_fingerprint += *manifest_.shards[s].fingerprint;
    manifest_.padding_tokens = manifest_.planned_rows() * manifest_.row_tokens - manifest_.tokens;
    write_file(folder_ + "/manifest.json", to_json(manifest_));
    return manifest_;
  }

 private:
  void describe() {
    manifest_.tool_version = "test";
    manifest_.row_tokens = options_.policy.row_tokens;
    manifest_.source_sequences = index_.sequences();
    manifest_.source_tokens = index_.tokens();
    manifest_.plan = {.packer = options_.packer,
                      .bound_kind = "mixed",
                      .max_segments = options_.max_segments,
                      .segment_multiple = options_.policy.segment_multiple};
    manifest_.id_type = options_.id_type;
    manifest_.id_min = options_.first_id;
    manifest_.id_max = options_.first_id + index_.tokens() - 1;
    manifest_.pad_id = kTinyPad;
    if (options_.policy.append_eos) manifest_.eos_id = kTinyEos;
    if (options_.policy.prepend_bos) manifest_.bos_id = kTinyBos;
    manifest_.position_start = options_.position_start;
    manifest_.derived = options_.derived;
    manifest_.compress = options_.zstd_level > 0 ? fmt::format("zstd:{}", options_.zstd_level) : "";
    manifest_.options = {{"seed", "0"}};
    for (const SourceFile& file : index_.files()) {
      manifest_.sources.push_back({file.name, file.format, file.bytes, file.records(), file.tokens(), file.hash});
    }
    for (SequenceId sequence = 0; sequence < index_.sequences(); ++sequence) {
      manifest_.source_fingerprint += fingerprint(sequence, 0, index_.place(sequence).tokens);
    }
  }

  Fingerprint fingerprint(SequenceId sequence, std::int64_t first_token, std::int64_t tokens) const {
    std::vector<std::uint32_t> ids(static_cast<std::size_t>(tokens));
    std::vector<TokenRequest> requests{{sequence, first_token, tokens, 0}};
    source_.read_block(requests, IdType::u32, ids.data());
    return keys_.ids.of(sequence, first_token, std::span<const std::uint32_t>(ids));
  }

  void write_partition(SequenceId first, SequenceId last, std::string& removed) {
    PolicyResult policy = apply_policy(index_, first, last, options_.policy);
    OrderedRows rows;
    PackingPlan plan;
    if (options_.packer == "concat") {
      rows = pack_concat(policy.items, options_.policy.row_tokens, options_.max_segments, options_.policy.segment_multiple);
      plan = derive_plan(rows, "concat", options_.policy, options_.max_segments);
    } else {
      plan = plan_packs(histogram(policy.items), options_.packer,
                        {.row_tokens = options_.policy.row_tokens, .max_segments = options_.max_segments});
      const auto partition = static_cast<std::int32_t>(manifest_.partitions.size());
      rows.rows = assign(policy.items, plan, {.seed = 0, .partition = partition, .order = RowOrder::shuffled});
      rows.items = std::move(policy.items);
    }
    plan.policy = options_.policy;

    for (std::size_t cause = 0; cause < policy.counts.size(); ++cause) {
      manifest_.removed[cause].sequences += policy.counts[cause].sequences;
      manifest_.removed[cause].tokens += policy.counts[cause].tokens;
    }
    for (const RemovedRange& range : policy.removed) {
      const SequencePlace place = index_.place(range.sequence);
      const std::string name = place.file == 0 ? "a.bin" : "\"b, \"\"quoted\"\".bin\"";
      removed += fmt::format("{},{},{},{},{}\n", name, place.record, range.first_token, range.tokens,
                             kRemovalCauses[static_cast<std::size_t>(range.cause)]);
      *manifest_.removed_fingerprint += fingerprint(range.sequence, range.first_token, range.tokens);
    }
    manifest_.sequences += policy.sequences;
    manifest_.added_eos += policy.added_eos;
    manifest_.added_bos += policy.added_bos;
    for (const Item& item : rows.items) {
      ++manifest_.segments;
      manifest_.tokens += item.length();
    }
    for (std::int64_t r = 0; r < rows.rows.rows(); ++r) {
      const auto segments = static_cast<std::int64_t>(rows.rows.row(r).size());
      manifest_.max_segments_in_row = std::max(manifest_.max_segments_in_row, segments);
    }
    manifest_.rows += plan.rows();
    manifest_.plan.rows += plan.rows();
    manifest_.plan.bound += plan.bound.rows;
    manifest_.plan.bound_kind = name(plan.bound.kind);

    const std::string plan_name = fmt::format("plan-{:05}.json", manifest_.partitions.size());
    add_file(plan_name, to_json(plan, covered_items(plan)));
    manifest_.partitions.push_back({SequenceRanges(first, last), plan.rows(), plan.bound.rows, plan_name, {}});
    write_rows(rows);
    planned_shards_ = manifest_.shards.size();
    if (head_.rows.rows() == 0) head_ = std::move(rows);
  }

  /// Repeats come from the first partition's rows, which the tests keep large enough.
  void write_tail() {
    const std::int64_t extra = options_.repeated_rows + options_.fill_rows;
    if (extra == 0 || manifest_.plan.rows == 0) return;
    OrderedRows tail;
    tail.items = head_.items;
    std::vector<SequenceId> sequences;
    for (std::int64_t r = 0; r < extra; ++r) {
      if (options_.repeated_rows > 0) {
        for (const std::int32_t item : head_.rows.row(r % manifest_.plan.rows)) {
          tail.rows.items.push_back(item);
          manifest_.repeated_tokens += tail.items[static_cast<std::size_t>(item)].length();
          sequences.push_back(tail.items[static_cast<std::size_t>(item)].sequence);
        }
      }
      tail.rows.begin.push_back(static_cast<std::int64_t>(tail.rows.items.size()));
    }
    std::sort(sequences.begin(), sequences.end());
    manifest_.repeated_sequences = std::unique(sequences.begin(), sequences.end()) - sequences.begin();
    manifest_.repeated_rows = options_.repeated_rows;
    manifest_.fill_rows = options_.fill_rows;
    manifest_.rows += extra;
    write_rows(tail);
  }

  void write_rows(const OrderedRows& rows) {
    for (std::int64_t first = 0; first < rows.rows.rows(); first += options_.shard_rows) {
      write_shard(rows, first, std::min(options_.shard_rows, rows.rows.rows() - first));
    }
  }

  void write_shard(const OrderedRows& rows, std::int64_t first, std::int64_t count) {
    ManifestPartition& partition = manifest_.partitions.back();
    ManifestShard shard;
    shard.folder = fmt::format("shard-{:05}-{:05}", manifest_.partitions.size() - 1, partition.shards.size());
    std::vector<TokenRequest> requests;
    RowBlock block =
        lay_out_rows(rows.items, rows.rows, index_, options_.policy.row_tokens, options_.id_type, first, count, first, requests);
    source_.read_block(requests, options_.id_type, block.ids.data());
    fill_gaps(block, {.pad = kTinyPad, .bos = kTinyBos, .eos = kTinyEos});
    shard.rows = count;
    shard.segments = static_cast<std::int64_t>(block.segments.size());
    shard.fingerprint = fingerprint_of(block, keys_, index_);
    for (const RowSegment& segment : block.segments) shard.tokens += segment.length();
    const auto sink = make_native_sink({.folder = folder_ + "/" + shard.folder,
                                        .rows = shard.rows,
                                        .segments = shard.segments,
                                        .row_tokens = options_.policy.row_tokens,
                                        .id_type = options_.id_type,
                                        .position_start = static_cast<std::uint32_t>(options_.position_start),
                                        .derived = options_.derived,
                                        .write_added = options_.policy.append_eos || options_.policy.prepend_bos,
                                        .write_slots = options_.policy.segment_multiple > 1,
                                        .max_segments_in_row = 16,
                                        .zstd_level = options_.zstd_level});
    sink->write(sink->encode(std::move(block)));
    shard.files = sink->finish();
    partition.shards.push_back(shard.folder);
    manifest_.shards.push_back(std::move(shard));
  }

  void add_file(const std::string& name, const std::string& bytes) {
    write_file(folder_ + "/" + name, bytes);
    manifest_.files.push_back({name, static_cast<std::int64_t>(bytes.size()), hash_hex(bytes)});
  }

  const std::string& folder_;
  const TinyOptions& options_;
  TinySource source_;
  const SequenceIndex& index_;
  DatasetKeys keys_;
  Manifest manifest_;
  std::size_t planned_shards_ = 0;
  OrderedRows head_;
};

}  // namespace

Manifest write_tiny_dataset(const std::string& folder, const TinyOptions& options) { return TinyWriter(folder, options).write(); }

std::uint32_t tiny_token(const TinyOptions& options, std::int64_t sequence, std::int64_t position) {
  std::int64_t token = position;
  for (std::int64_t s = 0; s < sequence; ++s) token += options.lengths[static_cast<std::size_t>(s)];
  return options.first_id + static_cast<std::uint32_t>(token);
}

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), folder).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

void write_manifest_of_what_is_there(const std::string& folder, Manifest manifest) {
  const auto refresh = [&](const std::string& path, ManifestFile& file) {
    const std::string bytes = read_file(path + "/" + file.name);
    file.bytes = static_cast<std::int64_t>(bytes.size());
    file.hash = hash_hex(bytes);
  };
  const std::string trainer_folder = folder.ends_with(kHiddenFolder) ? folder + "/.." : folder;
  for (ManifestFile& file : manifest.files) refresh(folder, file);
  for (ManifestFile& file : manifest.trainer_files) refresh(trainer_folder, file);
  for (ManifestShard& shard : manifest.shards) {
    for (ManifestFile& file : shard.files) refresh(folder + "/" + shard.folder, file);
    for (ManifestFile& file : shard.trainer_files) refresh(trainer_folder, file);
  }
  write_file(folder + "/manifest.json", to_json(manifest));
}

}  // namespace shardpack
