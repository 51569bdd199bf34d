// unpack: the sources of a packed dataset in their own order. Partition by partition, since a partition's rows hold the records
// of a run of the sources and no others: where every piece goes is worked out from the small arrays; the rows are read once, in
// their order, and their pieces put into a temporary file at these places; then that is read from its beginning to its end.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/units.h"
#include "core/fingerprint_keys.h"
#include "core/row_block.h"
#include "exec/ordered_map.h"
#include "io/hashed_file.h"
#include "io/json.h"
#include "io/manifest_parts.h"
#include "io/packed_rows.h"
#include "io/record_sink.h"
#include "io/staged_output.h"
#include "jobs/output_place.h"
#include "jobs/pack_options.h"
#include "jobs/verify_against.h"
#include "jobs/verify_placement.h"
#include "jobs/verify_removed.h"
#include "shardpack/error.h"
#include "shardpack/jobs.h"
#include "shardpack/version.h"

namespace shardpack {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kBlockSlots = std::int64_t{1} << 18;
constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();

[[noreturn]] void fail(const std::string& place, const std::string& what) {
  throw Error(ErrorCode::bad_data, what + "; shardpack verify tells more", place);
}

bool is_listed(const Column& column) { return column.kind == ColumnKind::list || column.kind == ColumnKind::text; }

// ---- names ------------------------------------------------------------------------------------------------------------------

/// Without .gz or .zst and the suffix before it.
std::string without_suffix(const std::string& name) {
  fs::path path(name);
  if (path.extension() == ".gz" || path.extension() == ".zst") path.replace_extension();
  if (path.has_stem()) path.replace_extension();
  return path.string();
}

/// What each source is called, without a suffix; no two have a file in common.
std::vector<std::string> stems_of(const std::vector<ManifestSource>& sources, const RecordSinkSettings& settings) {
  std::vector<std::string> stems;
  std::set<std::string> taken{std::string(kManifestName), std::string(RemovedReader::kFileName)};
  for (const ManifestSource& source : sources) {
    std::string stem = without_suffix(source.name);
    for (int attempt = 1;; ++attempt) {
      const std::vector<std::string> files = record_files(settings, stem);
      if (std::none_of(files.begin(), files.end(), [&](const std::string& file) { return taken.contains(file); })) {
        taken.insert(files.begin(), files.end());
        break;
      }
      stem = attempt == 1 ? source.name : fmt::format("{}-{}", source.name, attempt);
    }
    stems.push_back(std::move(stem));
  }
  return stems;
}

// ---- where a partition's pieces go ------------------------------------------------------------------------------------------

/// A segment of a partition's rows.
struct Piece {
  std::uint32_t record = 0;  // in the partition
  Length tokens = 0;
  std::int64_t first_token = 0;
};

/// Records of one source file.
struct FileRun {
  std::size_t file = 0;
  std::int64_t first = 0, last = 0;  // records that come back
};

/// Where everything goes. By segment, in the order of the rows: 4 bytes and its piece (16) while it is made, then 8 bytes; by
/// record of the partition: 4 bytes.
struct PartitionLayout {
  std::vector<std::int64_t> destination;  // by segment: its first token's number
  std::vector<bool> leads;           // by segment: the first piece of its record, which brings what the record has as a whole
  std::vector<std::uint32_t> place;  // by record of the partition: its number among those that come back
  std::vector<FileRun> runs;
  std::int64_t empty = 0;  // records without tokens that come back
};

/// A partition's shards, without those of extra rows.
std::vector<const ManifestShard*> planned_shards(const PackedDataset& dataset, const ManifestPartition& partition) {
  std::vector<const ManifestShard*> shards;
  std::int64_t rows = 0;
  for (const std::string& name : partition.shards) {
    if (rows == partition.rows) break;
    const auto shard = std::find_if(dataset.shards().begin(), dataset.shards().end(),
                                    [&](const ManifestShard& listed) { return listed.folder == name; });
    if (shard == dataset.shards().end()) fail(dataset.folder(), fmt::format("the manifest lists no shard {}", name));
    shards.push_back(&*shard);
    rows += shard->rows;
  }
  if (rows != partition.rows) fail(dataset.folder(), "the shards of a partition do not have its rows");
  return shards;
}

class LayoutMaker {
 public:
  LayoutMaker(const PackedDataset& dataset, const ManifestPartition& partition, RecordSpool& spool)
      : dataset_(dataset), partition_(partition), first_sequence_(first_sequences(dataset.manifest().sources)), spool_(spool) {
    counts_.resize(spool.columns.size());
  }

  void add(const ManifestShard& shard, const RunContext& context) {
    const PackedRows rows(dataset_, shard, false);
    if (static_cast<std::int64_t>(pieces_.size()) + rows.segments() >= std::int64_t{kNowhere})
      throw Error(ErrorCode::limit, "a partition has 2^32 segments or more", dataset_.folder());
    for (std::int64_t row = 0; row < rows.rows();) {
      throw_if_stopped(context.stop);
      const std::int64_t count = rows.rows_in_block(row, kBlockSlots);
      const RowBlock block = rows.read(row, count);
      for (const RowSegment& segment : block.segments) {
        const std::int64_t record =
            first_sequence_[static_cast<std::size_t>(segment.file)] + segment.record - partition_.first_sequence;
        if (record < 0 || record >= partition_.sequences) fail(shard.folder, "a segment of another partition's record");
        pieces_.push_back({static_cast<std::uint32_t>(record), segment.tokens, segment.first_token});
      }
      row += count;
    }
    for (std::size_t c = 0; c < counts_.size(); ++c) {
      if (!is_listed(spool_.columns[c].column)) continue;
      for (std::int64_t segment = 0; segment < rows.segments(); ++segment) counts_[c].push_back(rows.value_count(c, segment));
    }
  }

  /// `removed`: by record of the partition, is a part of it listed in removed.csv?
  PartitionLayout make(const std::vector<bool>& removed) {
    std::vector<std::uint32_t> order(pieces_.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
      const Piece &x = pieces_[a], &y = pieces_[b];
      return std::tie(x.record, x.first_token, x.tokens, a) < std::tie(y.record, y.first_token, y.tokens, b);
    });
    PartitionLayout layout;
    layout.destination.resize(pieces_.size());
    layout.leads.resize(pieces_.size());
    layout.place.assign(removed.size(), kNowhere);
    std::size_t file = 0;
    auto next = order.begin();
    for (std::uint32_t record = 0; record < removed.size(); ++record) {
      const auto begin = next;
      while (next != order.end() && pieces_[*next].record == record) ++next;
      if (begin == next && removed[record]) continue;
      while (partition_.first_sequence + record >= first_sequence_[file + 1]) ++file;
      take_record(record, std::span(begin, next), file, layout);
    }
    return layout;
  }

 private:
  void take_record(std::uint32_t record, std::span<const std::uint32_t> segments, std::size_t file, PartitionLayout& layout) {
    const auto place = static_cast<std::uint32_t>(spool_.records());
    layout.place[record] = place;
    std::int64_t end = 0, destination = spool_.begin.back();
    for (const std::uint32_t segment : segments) {
      const Piece& piece = pieces_[segment];
      if (piece.first_token < end) {
        fail(dataset_.manifest().sources[file].name,
             fmt::format("a token of record {} is in the rows twice",
                         with_commas(partition_.first_sequence + record - first_sequence_[file])));
      }
      layout.destination[segment] = destination;
      destination += piece.tokens;
      end = piece.first_token + piece.tokens;
    }
    spool_.begin.push_back(destination);
    if (segments.empty()) {
      ++layout.empty;
    } else {
      layout.leads[segments.front()] = true;
    }
    for (std::size_t c = 0; c < counts_.size(); ++c) {
      if (!is_listed(spool_.columns[c].column)) continue;
      std::vector<std::int64_t>& begin = spool_.columns[c].begin;
      begin.push_back(begin.back() + (segments.empty() ? 0 : counts_[c][segments.front()]));
    }
    if (layout.runs.empty() || layout.runs.back().file != file) layout.runs.push_back({file, place, place});
    layout.runs.back().last = std::int64_t{place} + 1;
  }

  const PackedDataset& dataset_;
  const ManifestPartition& partition_;
  const std::vector<SequenceId> first_sequence_;
  RecordSpool& spool_;
  std::vector<Piece> pieces_;
  std::vector<std::vector<std::int64_t>> counts_;  // by column of kind list and text, by segment
};

// ---- from rows to records ---------------------------------------------------------------------------------------------------

/// What all partitions share.
struct Setup {
  const PackedDataset& dataset;
  const RunContext& context;
  std::string temp_dir;
  DatasetKeys keys;
  std::vector<SequenceId> first_sequence;
  bool single_segments = false;
};

/// Puts what a block holds into the spool. Thread-safe.
class BlockScatter {
 public:
  /// \param first_segment  of the shard in the partition
  BlockScatter(const Setup& setup, const ManifestPartition& partition, const PartitionLayout& layout, const RecordSpool& spool,
               std::int64_t first_segment)
      : setup_(setup), partition_(partition), layout_(layout), spool_(spool), first_segment_(first_segment) {}

  /// \return the fingerprint of the block
  Fingerprint scatter(const RowBlock& block) const {
    Fingerprint total;
    for (std::int64_t row = 0; row < block.rows; ++row) {
      std::int64_t slot = row * block.row_tokens;
      for (std::int64_t s = block.row_begin[static_cast<std::size_t>(row)];
           s < block.row_begin[static_cast<std::size_t>(row) + 1]; ++s) {
        const RowSegment& segment = block.segments[static_cast<std::size_t>(s)];
        total += take_segment(block, static_cast<std::size_t>(s), slot + (segment.added & kAddedBos));
        slot += segment.slots;
      }
    }
    return total;
  }

 private:
  /// \param slot  of its first source token, in the block
  Fingerprint take_segment(const RowBlock& block, std::size_t s, std::int64_t slot) const {
    const RowSegment& segment = block.segments[s];
    const SequenceId sequence = setup_.first_sequence[static_cast<std::size_t>(segment.file)] + segment.record;
    const auto number = static_cast<std::size_t>(first_segment_ + block.first_segment) + s;
    const std::int64_t destination = layout_.destination[number];
    const std::uint32_t place = layout_.place[static_cast<std::size_t>(sequence - partition_.first_sequence)];

    const ValueType id_type = block.id_type == IdType::u16 ? ValueType::u16 : ValueType::u32;
    Fingerprint total = copy_tokens(spool_.ids, id_type, setup_.keys.ids, block.ids, segment, sequence, slot, destination);
    for (std::size_t c = 0; c < block.columns.size(); ++c) {
      const RecordSpool::Values& values = spool_.columns[c];
      const FingerprintKeys& keys = setup_.keys.columns[c];
      if (values.column.kind == ColumnKind::token) {
        total += copy_tokens(values.file, values.column.type, keys, block.columns[c].bytes, segment, sequence, slot, destination);
        continue;
      }
      if (counts_whole_sequence(segment.first_token, segment.tokens, setup_.single_segments))
        total += fingerprint_of_sequence(values.column, block.columns[c], s, keys, sequence);
      if (layout_.leads[number]) copy_whole(values, block.columns[c], s, place);
    }
    return total;
  }

  static Fingerprint copy_tokens(const File& file, ValueType type, const FingerprintKeys& keys, const ByteBuffer& stored,
                                 const RowSegment& segment, SequenceId sequence, std::int64_t slot, std::int64_t destination) {
    const int width = info(type).bytes;
    const std::span<const std::byte> bytes = std::span(stored).subspan(
        static_cast<std::size_t>(slot * width), static_cast<std::size_t>(segment.tokens) * static_cast<std::size_t>(width));
    file.write_at(destination * width, bytes);
    return keys.of(sequence, segment.first_token, type, bytes.data(), segment.tokens);
  }

  void copy_whole(const RecordSpool::Values& values, const ColumnValues& stored, std::size_t s, std::uint32_t place) const {
    const int width = info(values.column.type).bytes;
    const bool listed = is_listed(values.column);
    const std::int64_t first = listed ? stored.begin[s] - stored.begin.front() : static_cast<std::int64_t>(s);
    const std::int64_t count = listed ? stored.begin[s + 1] - stored.begin[s] : 1;
    values.file.write_at(
        spool_.value_begin(values, place) * width,
        std::span(stored.bytes).subspan(static_cast<std::size_t>(first * width), static_cast<std::size_t>(count * width)));
  }

  const Setup& setup_;
  const ManifestPartition& partition_;
  const PartitionLayout& layout_;
  const RecordSpool& spool_;
  const std::int64_t first_segment_;
};

RecordSpool make_spool(const Manifest& manifest, const std::string& temp_dir) {
  RecordSpool spool{manifest.id_type, File::temporary(temp_dir), {0}, {}};
  for (const Column& column : manifest.columns) {
    spool.columns.push_back({column, File::temporary(temp_dir), {}});
    if (is_listed(column)) spool.columns.back().begin = {0};
  }
  return spool;
}

/// Where everything goes, and the spool laid out for it.
PartitionLayout lay_out(const Setup& setup, const ManifestPartition& partition, const std::vector<const ManifestShard*>& shards,
                        const std::vector<bool>& removed, RecordSpool& spool) {
  LayoutMaker maker(setup.dataset, partition, spool);
  for (const ManifestShard* shard : shards) maker.add(*shard, setup.context);
  PartitionLayout layout = maker.make(removed);
  for (const RecordSpool::Values& values : spool.columns) {
    // Records without tokens have no segment that brings a value: 0 stands for it.
    if (values.column.kind == ColumnKind::sequence) values.file.truncate(spool.records() * info(values.column.type).bytes);
  }
  return layout;
}

/// Read all rows of `shards` once. \return their fingerprint
Fingerprint scatter_rows(const Setup& setup, const ManifestPartition& partition, const std::vector<const ManifestShard*>& shards,
                         const PartitionLayout& layout, const RecordSpool& spool) {
  Fingerprint total;
  std::int64_t first_segment = 0;
  for (const ManifestShard* shard : shards) {
    const PackedRows rows(setup.dataset, *shard, true);
    const BlockScatter scatter(setup, partition, layout, spool, first_segment);
    struct Range {
      std::int64_t first = 0, count = 0;
    };
    std::int64_t next = 0;
    const auto produce = [&]() -> std::optional<Range> {
      if (next == rows.rows()) return std::nullopt;
      const Range range{next, rows.rows_in_block(next, kBlockSlots)};
      next += range.count;
      return range;
    };
    struct Done {
      Fingerprint fingerprint;
      std::int64_t rows = 0;
    };
    ordered_map(
        setup.context.pool, default_in_flight(setup.context.pool), setup.context.stop, produce,
        [&](Range range) {
          return Done{scatter.scatter(rows.read(range.first, range.count)), range.count};
        },
        [&](Done&& done) {
          total += done.fingerprint;
          setup.context.progress.advance(done.rows);
        });
    first_segment += rows.segments();
  }
  return total;
}

// ---- source files -----------------------------------------------------------------------------------------------------------

/// Makes the source files one after the other; those without records too.
class SourceFiles {
 public:
  SourceFiles(const RecordSinkSettings& settings, std::vector<std::string> stems, const std::string& folder,
              const RunContext& context)
      : settings_(settings), stems_(std::move(stems)), folder_(folder), context_(context) {}

  void add(const RecordSpool& spool, const FileRun& run) {
    open(run.file);
    sink_->add(spool, run.first, run.last);
  }
  std::vector<ManifestFile> finish() {
    if (!stems_.empty()) open(stems_.size() - 1);
    close();
    return std::move(files_);
  }

 private:
  void open(std::size_t file) {
    while (opened_ <= file) {
      close();
      const std::string& stem = stems_[opened_++];
      make_folders(fs::path(stem).parent_path());
      sink_ = make_record_sink(settings_, folder_, stem, context_);
    }
  }
  void close() {
    if (!sink_) return;
    for (ManifestFile& file : sink_->finish()) files_.push_back(std::move(file));
    sink_.reset();
  }
  void make_folders(const fs::path& below) {
    fs::path path = folder_;
    for (const fs::path& part : below) {
      path /= part;
      std::error_code ignored;
      if (!fs::is_directory(path, ignored)) make_folder(path.string());
    }
  }

  const RecordSinkSettings& settings_;
  const std::vector<std::string> stems_;
  const std::string folder_;
  const RunContext& context_;
  std::unique_ptr<RecordSink> sink_;  // of stems_[opened_ - 1]
  std::size_t opened_ = 0;
  std::vector<ManifestFile> files_;
};

const ManifestFile* removed_file(const Manifest& manifest) {
  const auto found =
      std::ranges::find_if(manifest.files, [](const ManifestFile& file) { return file.name == RemovedReader::kFileName; });
  return found == manifest.files.end() ? nullptr : &*found;
}

ManifestFile copy_file(const File& from, const std::string& folder, const std::string& name) {
  HashedFile to(folder + "/" + name);
  std::vector<std::byte> block(std::size_t{1} << 20);
  while (true) {
    const std::size_t bytes = from.read_some_at(to.bytes(), block);
    if (bytes == 0) return to.finish(name);
    to.append(std::span<const std::byte>(block).first(bytes));
  }
}

/// Which records of a partition have a line in removed.csv.
std::vector<bool> removed_records(RemovedReader& reader, const ManifestPartition& partition, IssueList& issues) {
  std::vector<bool> removed(static_cast<std::size_t>(partition.sequences));
  reader.read_until(partition.first_sequence, partition.first_sequence + partition.sequences, [&](const RemovedRange& range) {
    removed[static_cast<std::size_t>(range.sequence - partition.first_sequence)] = true;
  });
  if (!issues.empty()) fail(std::string(RemovedReader::kFileName), issues.take().front().message);
  return removed;
}

/// Do the partitions take all records in their order?
void check_partitions(const PackedDataset& dataset) {
  const Manifest& manifest = dataset.manifest();
  SequenceId next = 0;
  bool sound = true;
  for (const ManifestPartition& partition : manifest.partitions) {
    sound = sound && partition.first_sequence == next && partition.sequences >= 0 && partition.sequences < std::int64_t{kNowhere};
    next += partition.sequences;
  }
  if (!sound || next != first_sequences(manifest.sources).back())
    fail(dataset.folder(), "the partitions of the manifest are not a sequence of all records");
}

RecordSinkSettings sink_settings(const Manifest& manifest, const UnpackOptions& options) {
  return {.format = options.format,
          .zstd_level = options.zstd_level,
          .ids_column = recorded_read_options(manifest.options).ids_column,
          .id_type = manifest.id_type,
          .id_max = manifest.id_max,
          .columns = manifest.columns};
}

std::int64_t longest_source(const Manifest& manifest) {
  std::int64_t longest = 0;
  for (const ManifestSource& source : manifest.sources) longest = std::max(longest, source.tokens);
  return longest;
}

/// What says that the folder is ours, and names its files.
std::string manifest_of(const UnpackResult& result, const UnpackOptions& options) {
  JsonWriter json;
  json.begin_object();
  json.member("format", kUnpackedFormat).member("format_version", 1).member("tool_version", kVersion);
  json.member("as", kUnpackFormats[static_cast<std::size_t>(options.format)]);
  json.member("packed_fingerprint", result.dataset.packed_fingerprint.hex());
  json.member("sequences", result.sequences).member("empty", result.empty).member("tokens", result.tokens);
  write_files(json, "files", result.files);
  json.end_object();
  return json.take() + "\n";
}

/// All partitions into `staged`.
void write_sources(const Setup& setup, const RecordSinkSettings& settings, std::vector<std::string> stems,
                   const StagedOutput& staged, UnpackResult& result) {
  const Manifest& manifest = setup.dataset.manifest();
  IssueList issues;
  const ManifestFile* const listed = removed_file(manifest);
  std::optional<File> removed_csv;
  if (listed != nullptr) removed_csv.emplace(setup.dataset.file_path("", listed->name), File::Mode::read);
  RemovedReader removed(std::move(removed_csv), manifest.sources, issues);

  SourceFiles files(settings, std::move(stems), staged.folder(), setup.context);
  Fingerprint fingerprint;
  setup.context.progress.begin_stage("unpacking", manifest.planned_rows(), "rows");
  for (const ManifestPartition& partition : manifest.partitions) {
    const std::vector<const ManifestShard*> shards = planned_shards(setup.dataset, partition);
    RecordSpool spool = make_spool(manifest, setup.temp_dir);
    const PartitionLayout layout = lay_out(setup, partition, shards, removed_records(removed, partition, issues), spool);
    fingerprint += scatter_rows(setup, partition, shards, layout, spool);
    for (const FileRun& run : layout.runs) files.add(spool, run);
    result.sequences += spool.records();
    result.empty += layout.empty;
    result.tokens += spool.begin.back();
  }
  result.files = files.finish();
  setup.context.progress.end_stage();
  if (!(fingerprint == manifest.packed_fingerprint))
    fail(setup.dataset.folder(), "the rows do not hold what was packed: their fingerprint differs from the manifest's");
  if (listed != nullptr) {
    result.files.push_back(copy_file(File(setup.dataset.file_path("", listed->name), File::Mode::read), staged.folder(),
                                     std::string(RemovedReader::kFileName)));
  }
}

}  // namespace

UnpackResult unpack(const std::string& path, const std::string& output, const UnpackOptions& options, const RunContext& context) {
  // What can be refused is refused before anything is read.
  const PackedDataset dataset(path);
  const Manifest& manifest = dataset.manifest();
  check_partitions(dataset);
  const RecordSinkSettings settings = sink_settings(manifest, options);
  check_record_format(settings);
  const std::vector<std::string> stems = stems_of(manifest.sources, settings);
  check_output_apart(output, {dataset.trainer_folder()});
  check_output_place(output, kUnpackedFormat, options.force);
  UnpackResult result;
  result.dataset = manifest;
  if (options.dry_run) {
    const auto removed = [&](RemovalCause cause) { return manifest.removed[static_cast<std::size_t>(cause)].sequences; };
    result.empty = removed(RemovalCause::empty) + removed(RemovalCause::null);
    result.sequences = manifest.sequences + result.empty;
    result.tokens = manifest.tokens - manifest.added_bos - manifest.added_eos;
    for (const std::string& stem : stems) {
      for (std::string& name : record_files(settings, stem)) result.files.push_back({std::move(name), 0, ""});
    }
    return result;
  }

  StagedOutput staged(output, kUnpackedFormat, options.force, context.diagnostics);
  const Setup setup{.dataset = dataset,
                    .context = context,
                    .temp_dir = context.temp_dir.empty() ? staged.folder() : context.temp_dir,
                    .keys = DatasetKeys(longest_source(manifest), manifest.columns),
                    .first_sequence = first_sequences(manifest.sources),
                    .single_segments = truncates_at_start(manifest)};
  write_sources(setup, settings, stems, staged, result);

  const std::string text = manifest_of(result, options);
  staged.write_file(kManifestName, text);
  result.bytes_written = static_cast<std::int64_t>(text.size());
  for (const ManifestFile& file : result.files) result.bytes_written += file.bytes;
  staged.publish();
  return result;
}

}  // namespace shardpack
