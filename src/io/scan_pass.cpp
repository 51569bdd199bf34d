// Workers take the id range, the fingerprint and the ends of their piece; the consumer hashes the pieces as they come back.
#include "io/scan_pass.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "base/hash.h"
#include "core/fingerprint_keys.h"
#include "exec/ordered_map.h"
#include "shardpack/sequence_index.h"

namespace shardpack {

namespace {

constexpr std::int64_t kPieceBytes = 1 << 20;  // a multiple of every id's width

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
  PieceCutter(const std::vector<OpenedFile>& files, bool ends) : files_(files), ends_(ends) {}

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
  void begin_file(const OpenedFile& opened) {
    runs_.clear();
    run_ = 0;
    const OpenedShard& shard = opened.shard;
    const std::int64_t tokens_end = shard.ids.place_of(shard.record_begin.back());
    if (shard.facts) {  // all is known but, perhaps, the ends
      if (ends_) add({shard.ids.file, shard.ids.begin_bytes, tokens_end, false, false, 0});
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

  const std::vector<OpenedFile>& files_;
  const bool ends_;
  std::size_t file_number_ = 0;  // of the next file
  std::vector<Run> runs_;        // of the current file
  std::size_t run_ = 0;
  std::vector<Piece> spare_;
};

/// What the workers do with a piece. Immutable, so thread-safe.
class PieceScanner {
 public:
  PieceScanner(const std::vector<OpenedFile>& files, const std::optional<EndIds>& ends)
      : files_(files), ends_(ends), keys_(longest_sequence(files)) {}

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
  static std::int64_t longest_sequence(const std::vector<OpenedFile>& files) {
    std::int64_t longest = 0;
    for (const OpenedFile& file : files) {
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
    const OpenedFile& file = files_[piece.file_number];
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
    if (begins && ends_->bos == std::int64_t{part.front()}) bits |= SequenceIndex::kBeginsWithBos;
    if (ends && ends_->eos == std::int64_t{part.back()}) bits |= SequenceIndex::kEndsWithEos;
    return bits;
  }

  const std::vector<OpenedFile>& files_;
  const std::optional<EndIds> ends_;
  FingerprintKeys keys_;
};

}  // namespace

void merge(TokenFacts& total, const TokenFacts& part) {
  total.fingerprint += part.fingerprint;
  if (part.id_max < 0) return;  // no tokens
  total.id_min = total.id_max < 0 ? part.id_min : std::min(total.id_min, part.id_min);
  total.id_max = std::max(total.id_max, part.id_max);
}

ScanPassResult run_scan_pass(const std::vector<OpenedFile>& files, const std::optional<EndIds>& ends, const RunContext& context) {
  ScanPassResult result;
  result.facts.resize(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) result.facts[i] = files[i].shard.facts.value_or(TokenFacts{});
  if (ends && !files.empty()) {
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

  PieceCutter cutter(files, ends.has_value());
  const PieceScanner scanner(files, ends);
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

}  // namespace shardpack
