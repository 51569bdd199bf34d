// Opening is cheap for formats with random access; then one parallel pass reads every byte once, in order of place: workers
// take the id range, the fingerprint and the ends of their piece, the consumer hashes the pieces as they come back.
#include "io/source.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/checked.h"
#include "base/hash.h"
#include "base/units.h"
#include "core/fingerprint_keys.h"
#include "exec/ordered_map.h"
#include "io/input_list.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kPieceBytes = 1 << 20;  // a multiple of every id's width

/// What tells that a file is still the one that was opened.
struct FileStamp {
  std::string path, shown;
  std::int64_t bytes = 0;
  timespec modified{};
};

bool is_standard_input(const std::string& path) { return path == "-"; }

FileStamp stamp_of(const std::string& path, const std::string& shown) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw_errno("open", shown);
  return {path, shown, status.st_size, status.st_mtim};
}

void check_stamp(const FileStamp& stamp) {
  const FileStamp now = stamp_of(stamp.path, stamp.shown);
  if (now.bytes == stamp.bytes && now.modified.tv_sec == stamp.modified.tv_sec &&
      now.modified.tv_nsec == stamp.modified.tv_nsec) {
    return;
  }
  const std::string sizes = now.bytes == stamp.bytes
                                ? std::string("its modification time is another")
                                : fmt::format("it had {} bytes and has {}", with_commas(stamp.bytes), with_commas(now.bytes));
  throw Error(ErrorCode::io, fmt::format("the file changed while it was in use: {}; run again when it is complete", sizes),
              stamp.shown);
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// A source file after opening. Its place in the vector is its file number.
struct Opened {
  InputFile input;
  std::string format;
  OpenedShard shard;
  std::vector<FileStamp> stamps;  // of shard.files
  SequenceId first_sequence = 0;

  std::int64_t records() const { return static_cast<std::int64_t>(shard.record_begin.size()) - 1; }
};

// ---- the source -------------------------------------------------------------------------------------------------------------

class ShardSource final : public SequenceSource {
 public:
  ShardSource(SequenceIndex index, std::vector<TokenTable> tables, std::vector<FileStamp> stamps)
      : index_(std::move(index)), tables_(std::move(tables)), stamps_(std::move(stamps)) {}

  const SequenceIndex& index() const override { return index_; }

  void read_block(std::vector<TokenRequest>& requests, IdType type, void* ids) const override {
    ensure(type == IdType::u16 || type == IdType::u32, "ids are read as u16 or u32");
    // Sequences are numbered in the order of files and places, so this is the order of the disk.
    std::sort(requests.begin(), requests.end(), [](const TokenRequest& a, const TokenRequest& b) {
      return std::pair(a.sequence, a.first_token) < std::pair(b.sequence, b.first_token);
    });
    try {
      Stretch stretch;
      for (const TokenRequest& request : requests) {
        const SequencePlace place = index_.place(request.sequence);
        ensure(request.first_token >= 0 && request.tokens >= 0 && request.first_token <= place.tokens - request.tokens,
               "the tokens asked for are in the sequence");
        const Stretch next{place.file, place.first_token + request.first_token, request.tokens, request.destination};
        if (stretch.continues_with(next)) {
          stretch.tokens += next.tokens;
        } else {
          read(stretch, type, ids);
          stretch = next;
        }
      }
      read(stretch, type, ids);
    } catch (const Error&) {
      check_unchanged();  // a file that was rewritten explains any fault in it
      throw;
    }
  }

  void check_unchanged() const override {
    for (const FileStamp& stamp : stamps_) check_stamp(stamp);
  }

 private:
  /// Tokens that lie together both in a file and in the buffer.
  struct Stretch {
    std::int32_t file = 0;
    std::int64_t first = 0, tokens = 0, destination = 0;

    bool continues_with(const Stretch& next) const {
      return file == next.file && first + tokens == next.first && destination + tokens == next.destination;
    }
  };

  void read(const Stretch& stretch, IdType type, void* ids) const {
    if (stretch.tokens == 0) return;
    const TokenTable& table = tables_[static_cast<std::size_t>(stretch.file)];
    ensure(table.file != nullptr, "the source was opened for random access");
    const auto tokens = static_cast<std::size_t>(stretch.tokens);
    if (type == IdType::u16) {
      table.read(stretch.first, std::span(static_cast<std::uint16_t*>(ids) + stretch.destination, tokens));
    } else {
      table.read(stretch.first, std::span(static_cast<std::uint32_t*>(ids) + stretch.destination, tokens));
    }
  }

  SequenceIndex index_;
  std::vector<TokenTable> tables_;  // by file
  std::vector<FileStamp> stamps_;
};

// ---- opening ----------------------------------------------------------------------------------------------------------------

/// Every shard keeps a descriptor open, some two, and the usual soft limit is 1,024.
void allow_open_files(std::size_t shards) {
  constexpr rlim_t kOthers = 64;
  const rlim_t wanted = 2 * static_cast<rlim_t>(shards) + kOthers;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < static_cast<rlim_t>(shards) + kOthers) {
    throw Error(ErrorCode::limit, fmt::format("{} shards need as many open files, but the system grants {} (ulimit -Hn)",
                                              with_commas(static_cast<std::int64_t>(shards)),
                                              with_commas(static_cast<std::int64_t>(limit.rlim_cur))));
  }
}

/// Only the first `records` records.
void cut_to_records(OpenedShard& shard, std::int64_t records) {
  if (static_cast<std::int64_t>(shard.record_begin.size()) - 1 <= records) return;
  ensure(!shard.facts, "formats that decode every token honour the limit themselves");
  shard.record_begin.resize(static_cast<std::size_t>(records) + 1);
  shard.record_begin.shrink_to_fit();
}

std::vector<Opened> open_all(const std::vector<InputFile>& inputs, const ReadOptions& options, const ScanNeeds& needs,
                             const RunContext& context) {
  allow_open_files(inputs.size());
  OpenContext open_context{.pool = context.pool,
                           .stop = context.stop,
                           .progress = context.progress,
                           .temp_dir = context.temp_dir.empty() ? "." : context.temp_dir,
                           .spool = needs.random_access || needs.ends,
                           .memory_bytes = context.memory_bytes,
                           .first_record = 0};
  std::vector<Opened> opened;
  for (const InputFile& input : inputs) {
    throw_if_stopped(context.stop);
    if (options.limit > 0 && open_context.first_record >= options.limit) break;
    std::optional<FileStamp> before;
    if (!is_standard_input(input.path)) before = stamp_of(input.path, input.name);
    const Format& format = detect_format(input, options);

    Opened file{
        input, std::string(format.summary.name), format.open(input, options, open_context), {}, open_context.first_record};
    if (options.limit > 0) cut_to_records(file.shard, options.limit - open_context.first_record);
    if (before) file.stamps.push_back(*before);
    for (std::size_t i = 1; i < file.shard.files.size(); ++i) {
      file.stamps.push_back(
          stamp_of(file.shard.files[i], fmt::format("{} (beside {})", base_name(file.shard.files[i]), input.name)));
    }
    for (const std::string& warning : file.shard.warnings) context.diagnostics.warn(warning);
    open_context.first_record = checked_add(open_context.first_record, file.records(), "the number of sequences");
    opened.push_back(std::move(file));
  }
  return opened;
}

// ---- the pass ---------------------------------------------------------------------------------------------------------------

/// Some bytes of an input, and what a worker finds in them.
struct Piece {
  std::size_t file_number = 0;
  std::shared_ptr<const File> file;
  std::int64_t begin_bytes = 0, bytes = 0;
  bool is_data = false;  // of the data file, for the progress
  bool hashed = false;   // part of the file's hash
  std::int64_t first_token = 0, tokens = 0;

  std::vector<std::byte> buffer;
  std::vector<std::uint32_t> decoded;  // used by stored types that are not ids as they lie
  TokenFacts facts;
  std::size_t first_record = 0;    // in the file
  std::vector<std::uint8_t> ends;  // from first_record on
};

/// Bytes that are read one after the other; tokens when first_token is not negative.
struct Run {
  std::shared_ptr<const File> file;
  std::int64_t begin_bytes = 0, end_bytes = 0;
  bool is_data = true, hashed = true;
  std::int64_t first_token = -1;
};

/// Cuts the files that have to be read into pieces, in order.
class PieceCutter {
 public:
  PieceCutter(const std::vector<Opened>& files, const ScanNeeds& needs) : files_(files), needs_(needs) {}

  std::optional<Piece> next() {
    while (run_ == runs_.size()) {
      if (file_number_ == files_.size()) return std::nullopt;
      begin_file(files_[file_number_++]);
    }
    Run& run = runs_[run_];
    Piece piece;
    if (!spare_.empty()) {
      piece = std::move(spare_.back());
      spare_.pop_back();
    }
    piece.file_number = file_number_ - 1;
    piece.file = run.file;
    piece.begin_bytes = run.begin_bytes;
    piece.bytes = std::min(kPieceBytes, run.end_bytes - run.begin_bytes);
    piece.is_data = run.is_data;
    piece.hashed = run.hashed;
    piece.first_token = piece.tokens = 0;
    if (run.first_token >= 0) {
      piece.first_token = run.first_token;
      piece.tokens = piece.bytes / info(files_[piece.file_number].shard.ids.type).bytes;
      run.first_token += piece.tokens;
    }
    run.begin_bytes += piece.bytes;
    if (run.begin_bytes == run.end_bytes) ++run_;
    return piece;
  }

  /// Its buffers serve another piece.
  void give_back(Piece&& piece) {
    piece.file.reset();
    piece.facts = {};
    piece.ends.clear();
    spare_.push_back(std::move(piece));
  }

 private:
  void begin_file(const Opened& opened) {
    runs_.clear();
    run_ = 0;
    const OpenedShard& shard = opened.shard;
    const std::int64_t tokens_end = shard.ids.place_of(shard.record_begin.back());
    if (shard.facts) {  // all is known but, perhaps, the ends
      if (needs_.ends) add({shard.ids.file, shard.ids.begin_bytes, tokens_end, false, false, 0});
      return;
    }
    add({shard.ids.file, 0, shard.ids.begin_bytes});
    add({shard.ids.file, shard.ids.begin_bytes, tokens_end, true, true, 0});
    add({shard.ids.file, tokens_end, opened.stamps.front().bytes});
    for (std::size_t i = 1; i < opened.stamps.size(); ++i) {
      const FileStamp& stamp = opened.stamps[i];
      add({std::make_shared<const File>(stamp.path, File::Mode::read, stamp.shown), 0, stamp.bytes, false});
    }
  }
  void add(Run run) {
    if (run.begin_bytes < run.end_bytes) runs_.push_back(std::move(run));
  }

  const std::vector<Opened>& files_;
  const ScanNeeds& needs_;
  std::size_t file_number_ = 0;  // of the next file
  std::vector<Run> runs_;        // of the current file
  std::size_t run_ = 0;
  std::vector<Piece> spare_;
};

struct EndIds {
  std::optional<std::int64_t> bos, eos;
};

/// What the workers do with a piece. Immutable, so thread-safe.
class PieceScanner {
 public:
  PieceScanner(const std::vector<Opened>& files, const ReadOptions& options, const ScanNeeds& needs)
      : files_(files), end_ids_{options.bos_id, options.eos_id}, ends_(needs.ends), keys_(longest_sequence(files)) {}

  Piece scan(Piece&& piece) const {
    if (piece.buffer.size() < static_cast<std::size_t>(piece.bytes)) piece.buffer.resize(static_cast<std::size_t>(piece.bytes));
    const std::span<std::byte> stored = std::span(piece.buffer).first(static_cast<std::size_t>(piece.bytes));
    piece.file->read_at(piece.begin_bytes, stored);
    if (piece.tokens == 0) return std::move(piece);

    const TokenTable& table = files_[piece.file_number].shard.ids;
    const auto tokens = static_cast<std::size_t>(piece.tokens);
    const int bytes = info(table.type).bytes;
    if (bytes == 2 && !table.big_endian) {
      scan_ids(piece, std::span(reinterpret_cast<const std::uint16_t*>(stored.data()), tokens));
    } else if (bytes == 4 && !table.big_endian) {
      scan_ids(piece, std::span(reinterpret_cast<const std::uint32_t*>(stored.data()), tokens));
    } else {
      decode(piece, table);
      scan_ids(piece, std::span<const std::uint32_t>(piece.decoded).first(tokens));
    }
    // Stored as they lie, negative ids look like large ones; decoding names the first of them.
    const std::int64_t largest_signed = (std::int64_t{1} << (8 * bytes - 1)) - 1;
    if (info(table.type).name[0] == 'i' && bytes <= 4 && piece.facts.id_max > largest_signed) decode(piece, table);
    return std::move(piece);
  }

 private:
  static std::int64_t longest_sequence(const std::vector<Opened>& files) {
    std::int64_t longest = 0;
    for (const Opened& file : files) {
      if (file.shard.facts) continue;
      const std::vector<std::int64_t>& begin = file.shard.record_begin;
      for (std::size_t i = 0; i + 1 < begin.size(); ++i) longest = std::max(longest, begin[i + 1] - begin[i]);
    }
    return longest;
  }

  static void decode(Piece& piece, const TokenTable& table) {
    const auto tokens = static_cast<std::size_t>(piece.tokens);
    if (piece.decoded.size() < tokens) piece.decoded.resize(tokens);
    table.decode(piece.first_token, std::span(piece.buffer).first(static_cast<std::size_t>(piece.bytes)),
                 std::span(piece.decoded).first(tokens));
  }

  template <class Id>
  void scan_ids(Piece& piece, std::span<const Id> ids) const {
    const Opened& file = files_[piece.file_number];
    const bool needs_facts = !file.shard.facts;
    if (needs_facts) {
      Id least = ids[0], greatest = ids[0];
      for (const Id id : ids) {
        least = std::min(least, id);
        greatest = std::max(greatest, id);
      }
      piece.facts.id_min = least;
      piece.facts.id_max = greatest;
    }
    // Every record that has tokens in the piece, from the one that holds its first token on.
    const std::vector<std::int64_t>& begin = file.shard.record_begin;
    const std::int64_t piece_end = piece.first_token + piece.tokens;
    auto record = static_cast<std::size_t>(std::upper_bound(begin.begin(), begin.end(), piece.first_token) - begin.begin() - 1);
    piece.first_record = record;
    for (; begin[record] < piece_end; ++record) {
      const std::int64_t from = std::max(begin[record], piece.first_token);
      const std::int64_t to = std::min(begin[record + 1], piece_end);
      const std::span<const Id> part =
          ids.subspan(static_cast<std::size_t>(from - piece.first_token), static_cast<std::size_t>(to - from));
      if (needs_facts) {
        piece.facts.fingerprint += keys_.of(file.first_sequence + static_cast<SequenceId>(record), from - begin[record], part);
      }
      if (ends_) piece.ends.push_back(ends_of(part, from == begin[record], to == begin[record + 1]));
    }
  }

  template <class Id>
  std::uint8_t ends_of(std::span<const Id> part, bool begins, bool ends) const {
    std::uint8_t bits = 0;
    if (part.empty()) return bits;
    if (begins && end_ids_.bos == std::int64_t{part.front()}) bits |= SequenceIndex::kBeginsWithBos;
    if (ends && end_ids_.eos == std::int64_t{part.back()}) bits |= SequenceIndex::kEndsWithEos;
    return bits;
  }

  const std::vector<Opened>& files_;
  EndIds end_ids_;
  bool ends_;
  FingerprintKeys keys_;
};

void merge(TokenFacts& total, const TokenFacts& part) {
  total.fingerprint += part.fingerprint;
  if (part.id_max < 0) return;  // no tokens
  total.id_min = total.id_max < 0 ? part.id_min : std::min(total.id_min, part.id_min);
  total.id_max = std::max(total.id_max, part.id_max);
}

struct PassResult {
  std::vector<TokenFacts> facts;   // by file
  std::vector<std::uint8_t> ends;  // by sequence, when asked for
};

PassResult run_pass(const std::vector<Opened>& files, const ReadOptions& options, const ScanNeeds& needs,
                    const RunContext& context) {
  PassResult result;
  result.facts.resize(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) result.facts[i] = files[i].shard.facts.value_or(TokenFacts{});
  if (needs.ends && !files.empty()) {
    result.ends.resize(static_cast<std::size_t>(files.back().first_sequence + files.back().records()));
  }

  // Hashing is several times faster than what the workers do, so one hash at a time keeps up with them.
  StreamHash hash;
  std::size_t hashed_file = 0;
  const auto finish_hashes_before = [&](std::size_t file_number) {
    for (; hashed_file < file_number; ++hashed_file) {
      if (!files[hashed_file].shard.facts) result.facts[hashed_file].hash = hash.hex();
      hash = StreamHash();
    }
  };

  PieceCutter cutter(files, needs);
  const PieceScanner scanner(files, options, needs);
  int in_flight = default_in_flight(context.pool);
  if (context.memory_bytes > 0) {
    in_flight = static_cast<int>(std::clamp<std::int64_t>(context.memory_bytes / (2 * kPieceBytes), 1, in_flight));
  }
  const auto consume = [&](Piece&& piece) {
    finish_hashes_before(piece.file_number);
    if (piece.hashed) hash.update(std::span(piece.buffer).first(static_cast<std::size_t>(piece.bytes)));
    merge(result.facts[piece.file_number], piece.facts);
    const auto first = static_cast<std::size_t>(files[piece.file_number].first_sequence) + piece.first_record;
    for (std::size_t i = 0; i < piece.ends.size(); ++i) result.ends[first + i] |= piece.ends[i];
    if (piece.is_data) context.progress.advance(piece.bytes);
    cutter.give_back(std::move(piece));
  };
  ordered_map(
      context.pool, in_flight, context.stop, [&] { return cutter.next(); },
      [&](Piece&& piece) { return scanner.scan(std::move(piece)); }, consume);
  finish_hashes_before(files.size());
  return result;
}

/// Begun on construction, ended whatever happens.
class Stage {
 public:
  Stage(ProgressSink& progress, std::string_view name, std::int64_t total, std::string_view unit) : progress_(progress) {
    progress_.begin_stage(name, total, unit);
  }
  ~Stage() { progress_.end_stage(); }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

 private:
  ProgressSink& progress_;
};

std::int64_t total_bytes(const std::vector<InputFile>& inputs) {
  std::int64_t total = 0;
  for (const InputFile& input : inputs) {
    if (!is_standard_input(input.path))
      total = checked_add(total, stamp_of(input.path, input.name).bytes, "the bytes of the inputs");
  }
  return total;
}

}  // namespace

ScannedSource open_source(const std::vector<std::string>& inputs, const ReadOptions& options, const ScanNeeds& needs,
                          const RunContext& context) {
  const std::vector<InputFile> list = list_inputs(inputs, options);
  const Stage stage(context.progress, "scanning", total_bytes(list), "bytes");
  std::vector<Opened> files = open_all(list, options, needs, context);
  PassResult pass = run_pass(files, options, needs, context);

  ScannedSource scanned;
  std::vector<SourceFile> sources;
  std::vector<TokenTable> tables;
  std::vector<FileStamp> stamps;
  std::set<std::string> not_carried;
  for (std::size_t i = 0; i < files.size(); ++i) {
    Opened& file = files[i];
    SourceFile source;
    source.name = std::move(file.input.name);
    source.format = std::move(file.format);
    for (FileStamp& stamp : file.stamps) {
      source.bytes += stamp.bytes;
      stamps.push_back(std::move(stamp));
    }
    source.hash = std::move(pass.facts[i].hash);
    source.record_begin = std::move(file.shard.record_begin);
    source.null_records = file.shard.null_records;
    sources.push_back(std::move(source));

    tables.push_back(std::move(file.shard.ids));
    merge(scanned.totals, pass.facts[i]);
    scanned.padding.sequences += file.shard.padding.sequences;
    scanned.padding.tokens += file.shard.padding.tokens;
    scanned.null_records += file.shard.null_records;
    not_carried.insert(file.shard.not_carried.begin(), file.shard.not_carried.end());
  }
  scanned.not_carried.assign(not_carried.begin(), not_carried.end());
  scanned.source = std::make_unique<ShardSource>(SequenceIndex(std::move(sources), std::move(pass.ends)), std::move(tables),
                                                 std::move(stamps));
  scanned.source->check_unchanged();
  return scanned;
}

}  // namespace shardpack
