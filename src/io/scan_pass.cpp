// Workers take the id range, the fingerprint and the ends of their piece; the consumer hashes the pieces as they come back.
#include "io/scan_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "base/checked.h"
#include "base/hash.h"
#include "base/units.h"
#include "core/fingerprint_keys.h"
#include "core/id_loops.h"
#include "exec/ordered_map.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kPieceBytes = 1 << 20;
constexpr std::int64_t kAlignment = 8;  // bytes; of the widest ids

/// Some bytes of an input, and what a worker finds in them.
struct Piece {
  /// Tokens that lie together in it.
  struct Part {
    std::int64_t first_token = 0, tokens = 0;
    std::size_t at = 0;  // in the buffer
  };

  std::size_t file_number = 0;
  std::shared_ptr<const File> file;
  std::int64_t begin_bytes = 0, bytes = 0;
  bool is_data = false;  // of the data file, for the progress
  bool hashed = false;   // part of the file's hash
  std::vector<Part> parts;

  std::vector<std::byte> buffer;
  std::size_t lead = 0;                // unused bytes at its beginning, so that the first part is aligned
  std::vector<std::uint32_t> decoded;  // used by stored types that are not ids as they lie
  TokenFacts facts;
  std::size_t first_record = 0;    // in the file
  std::vector<std::uint8_t> ends;  // from first_record on

  std::span<std::byte> stored() { return std::span(buffer).subspan(lead, static_cast<std::size_t>(bytes)); }
};

/// Bytes that are read one after the other.
struct Run {
  std::shared_ptr<const File> file;
  std::int64_t begin_bytes = 0, end_bytes = 0;
  bool is_data = true, hashed = true;
  std::size_t first_stretch = 0, end_stretch = 0;  // of the tokens that lie in it
};

/// Cuts the files that have to be read into pieces, in order.
class PieceCutter {
 public:
  PieceCutter(std::span<const OpenedFile> files, bool ends) : files_(files), ends_(ends) {}

  std::optional<Piece> next() {
    while (run_ == runs_.size()) {
      if (file_number_ == files_.size()) return std::nullopt;
      begin_file(files_[file_number_]);
      ++file_number_;
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
    take_tokens(run, piece);
    run.begin_bytes += piece.bytes;
    if (run.begin_bytes == run.end_bytes) ++run_;
    return piece;
  }

  /// Its buffers serve another piece.
  void give_back(Piece&& piece) {
    piece.file.reset();
    piece.parts.clear();
    piece.facts = {};
    piece.ends.clear();
    spare_.push_back(std::move(piece));
  }
  void free_spare() { spare_.clear(); }

 private:
  void begin_file(const OpenedFile& opened) {
    const OpenedShard& shard = opened.shard;
    const std::vector<FileStamp>& stamps = opened.stamps;
    runs_.clear();
    run_ = 0;
    table_ = &shard.ids;
    tokens_end_ = opened.record_begin().back();
    const auto limit = std::lower_bound(table_->stretches.begin(), table_->stretches.end(), tokens_end_,
                                        [](const TokenTable::Stretch& stretch, std::int64_t end) { return stretch.first < end; });
    const auto stretches = static_cast<std::size_t>(limit - table_->stretches.begin());
    if (shard.facts) {  // all is known but, perhaps, the ends
      if (ends_) add_stretches(stretches);
      return;
    }
    const bool in_order = lie_in_order(stretches);
    add({shard.ids.file, 0, stamps.front().bytes, true, true, 0, in_order ? stretches : 0});
    if (!in_order) add_stretches(stretches);
    for (std::size_t i = 1; i < stamps.size(); ++i) {
      add({std::make_shared<const File>(stamps[i].path, File::Mode::read, stamps[i].shown), 0, stamps[i].bytes, false});
    }
  }

  void add(Run run) {
    if (run.begin_bytes < run.end_bytes) runs_.push_back(std::move(run));
  }
  /// A run of each one's own, for tokens that are known to be there and nothing else.
  void add_stretches(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) add({table_->file, begin_of(i), end_of(i), false, false, i, i + 1});
  }

  /// Where the tokens of stretch `i` lie, in bytes.
  std::int64_t begin_of(std::size_t i) const { return table_->stretches[i].begin_bytes; }
  std::int64_t end_of(std::size_t i) const {
    const std::int64_t next = i + 1 < table_->stretches.size() ? table_->stretches[i + 1].first : table_->tokens;
    return begin_of(i) + (std::min(next, tokens_end_) - table_->stretches[i].first) * width();
  }
  std::int64_t width() const { return info(table_->type).bytes; }

  bool lie_in_order(std::size_t count) const {
    for (std::size_t i = 1; i < count; ++i) {
      if (begin_of(i) < end_of(i - 1)) return false;
    }
    return true;
  }

  /// Note the tokens that lie in the piece, which is cut where an id begins.
  void take_tokens(Run& run, Piece& piece) const {
    std::int64_t piece_end = piece.begin_bytes + piece.bytes;
    for (; run.first_stretch < run.end_stretch && begin_of(run.first_stretch) < piece_end; ++run.first_stretch) {
      const std::int64_t begin = begin_of(run.first_stretch), end = end_of(run.first_stretch);
      const std::int64_t from = std::max(begin, piece.begin_bytes);
      const bool goes_on = end > piece_end;
      if (goes_on) piece_end -= (piece_end - begin) % width();
      const std::int64_t to = std::min(end, piece_end);
      if (to > from) {
        piece.parts.push_back({table_->stretches[run.first_stretch].first + (from - begin) / width(), (to - from) / width(),
                               static_cast<std::size_t>(from - piece.begin_bytes)});
      }
      if (goes_on) break;
    }
    piece.bytes = piece_end - piece.begin_bytes;
    piece.lead = piece.parts.empty() ? 0 : (kAlignment - piece.parts.front().at % kAlignment) % kAlignment;
    for (Piece::Part& part : piece.parts) part.at += piece.lead;
  }

  std::span<const OpenedFile> files_;
  const bool ends_;
  std::size_t file_number_ = 0;        // of the next file
  const TokenTable* table_ = nullptr;  // of the current file, as are the next ones
  std::int64_t tokens_end_ = 0;        // those after it are in no record
  std::vector<Run> runs_;
  std::size_t run_ = 0;
  std::vector<Piece> spare_;
};

/// What the workers do with a piece. Immutable, so thread-safe.
class PieceScanner {
 public:
  PieceScanner(std::span<const OpenedFile> files, const std::optional<EndIds>& ends)
      : files_(files), ends_(ends), keys_(longest_sequence(files)) {}

  Piece scan(Piece&& piece) const {
    const std::size_t needed = piece.lead + static_cast<std::size_t>(piece.bytes);
    if (piece.buffer.size() < needed) piece.buffer.resize(needed);
    piece.file->read_at(piece.begin_bytes, piece.stored());
    for (const Piece::Part& part : piece.parts) scan_part(piece, part);
    return std::move(piece);
  }

 private:
  static std::int64_t longest_sequence(std::span<const OpenedFile> files) {
    std::int64_t longest = 0;
    for (const OpenedFile& file : files) {
      if (!file.shard.facts) longest = std::max(longest, longest_record(file.record_begin()));
    }
    return longest;
  }

  void scan_part(Piece& piece, const Piece::Part& part) const {
    const TokenTable& table = files_[piece.file_number].shard.ids;
    const auto tokens = static_cast<std::size_t>(part.tokens);
    const auto bytes = static_cast<std::size_t>(info(table.type).bytes);
    const std::byte* const stored = piece.buffer.data() + part.at;
    const bool aligned = part.at % bytes == 0;
    std::int64_t greatest = 0;
    if (bytes == 2 && aligned && !table.big_endian) {
      greatest = scan_ids(piece, part, std::span(reinterpret_cast<const std::uint16_t*>(stored), tokens));
    } else if (bytes == 4 && aligned && !table.big_endian) {
      greatest = scan_ids(piece, part, std::span(reinterpret_cast<const std::uint32_t*>(stored), tokens));
    } else {
      decode(piece, part);
      greatest = scan_ids(piece, part, std::span<const std::uint32_t>(piece.decoded).first(tokens));
    }
    // Stored as they lie, negative ids look like large ones; decoding names the first of them.
    const std::int64_t largest_signed = (std::int64_t{1} << (8 * bytes - 1)) - 1;
    if (info(table.type).name[0] == 'i' && bytes <= 4 && greatest > largest_signed) decode(piece, part);
  }

  void decode(Piece& piece, const Piece::Part& part) const {
    const OpenedFile& file = files_[piece.file_number];
    const auto tokens = static_cast<std::size_t>(part.tokens);
    if (piece.decoded.size() < tokens) piece.decoded.resize(tokens);
    const auto stored = std::span<const std::byte>(piece.buffer)
                            .subspan(part.at, tokens * static_cast<std::size_t>(info(file.shard.ids.type).bytes));
    try {
      file.shard.ids.decode(part.first_token, stored, std::span(piece.decoded).first(tokens));
    } catch (const Error&) {
      if (!file.shard.ids_column.empty()) fail_in_row(file, part, stored);
      throw;
    }
  }

  /// Where records have columns, the fault is told by row and element.
  [[noreturn]] static void fail_in_row(const OpenedFile& file, const Piece::Part& part, std::span<const std::byte> stored) {
    const std::optional<TokenTable::BadId> bad = file.shard.ids.first_bad(part.first_token, stored);
    ensure(bad.has_value(), "an id that cannot be decoded is found again");
    const std::vector<std::int64_t>& begin = file.record_begin();
    const auto record = std::upper_bound(begin.begin(), begin.end(), bad->token) - begin.begin() - 1;
    const std::int64_t index = bad->token - begin[static_cast<std::size_t>(record)];
    throw Error(ErrorCode::bad_data, bad_id_message(file.shard.ids_column, index, bad->value), file.input.name,
                fmt::format("row {}", with_commas(record)));
  }

  /// Of the tokens of one part of the piece; the greatest id.
  template <class Id>
  std::int64_t scan_ids(Piece& piece, const Piece::Part& part, std::span<const Id> ids) const {
    const OpenedFile& file = files_[piece.file_number];
    const bool needs_facts = !file.shard.facts;
    const auto [least, greatest] = id_range(ids);
    if (needs_facts) merge(piece.facts, TokenFacts{.id_min = least, .id_max = greatest, .fingerprint = {}, .hash = {}});
    // Every record that has tokens in the part, from the one that holds its first token on.
    const std::vector<std::int64_t>& begin = file.record_begin();
    const std::int64_t part_end = part.first_token + part.tokens;
    auto record = static_cast<std::size_t>(std::upper_bound(begin.begin(), begin.end(), part.first_token) - begin.begin() - 1);
    if (&part == piece.parts.data()) piece.first_record = record;
    for (; begin[record] < part_end; ++record) {
      const std::int64_t from = std::max(begin[record], part.first_token);
      const std::int64_t to = std::min(begin[record + 1], part_end);
      const std::span<const Id> own =
          ids.subspan(static_cast<std::size_t>(from - part.first_token), static_cast<std::size_t>(to - from));
      if (needs_facts) {
        piece.facts.fingerprint += keys_.of(file.first_sequence + static_cast<SequenceId>(record), from - begin[record], own);
      }
      if (ends_) note_ends(piece, record, ends_of(own, from == begin[record], to == begin[record + 1]));
    }
    return greatest;
  }

  /// A record may have tokens in several parts.
  static void note_ends(Piece& piece, std::size_t record, std::uint8_t bits) {
    const std::size_t i = record - piece.first_record;
    if (i >= piece.ends.size()) piece.ends.resize(i + 1);
    piece.ends[i] |= bits;
  }

  template <class Id>
  std::uint8_t ends_of(std::span<const Id> part, bool begins, bool ends) const {
    std::uint8_t bits = 0;
    if (part.empty()) return bits;
    if (begins && ends_->bos == std::int64_t{part.front()}) bits |= SequenceIndex::kBeginsWithBos;
    if (ends && ends_->eos == std::int64_t{part.back()}) bits |= SequenceIndex::kEndsWithEos;
    return bits;
  }

  std::span<const OpenedFile> files_;
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

TokenFacts facts_of(SequenceId first_record, std::span<const std::int64_t> lengths, std::span<const std::uint32_t> ids) {
  TokenFacts facts;
  if (ids.empty()) return facts;
  const auto [least, greatest] = id_range(ids);
  facts.id_min = least;
  facts.id_max = greatest;
  const FingerprintKeys keys(*std::max_element(lengths.begin(), lengths.end()));
  for (const std::int64_t length : lengths) {
    facts.fingerprint += keys.of(first_record++, 0, ids.first(static_cast<std::size_t>(length)));
    ids = ids.subspan(static_cast<std::size_t>(length));
  }
  return facts;
}

/// What the pass has come to.
struct ScanPass::State {
  State(std::span<const OpenedFile> opened, const std::optional<EndIds>& ends)
      : files(opened), cutter(opened, ends.has_value()), scanner(opened, ends), result{}, tokens_before(opened.size()) {
    result.facts.resize(files.size());
    std::int64_t tokens = 0;
    for (std::size_t i = 0; i < files.size(); ++i) {
      result.facts[i] = files[i].shard.facts.value_or(TokenFacts{});
      tokens_before[i] = tokens;
      tokens += files[i].record_begin().back();
    }
    if (ends && !files.empty()) {
      result.ends.resize(static_cast<std::size_t>(files.back().first_sequence + files.back().records()));
    }
  }

  void finish_hashes_before(std::size_t file_number) {
    for (; hashed_file < file_number; ++hashed_file) {
      if (!files[hashed_file].shard.facts) result.facts[hashed_file].hash = hash.hex();
      hash = StreamHash();
    }
  }

  /// Pieces in order.
  void add(Piece& piece) {
    finish_hashes_before(piece.file_number);
    if (piece.hashed) hash.update(piece.stored());
    merge(result.facts[piece.file_number], piece.facts);
    const auto first = static_cast<std::size_t>(files[piece.file_number].first_sequence) + piece.first_record;
    for (std::size_t i = 0; i < piece.ends.size(); ++i) result.ends[first + i] |= piece.ends[i];
    if (!piece.parts.empty()) end = tokens_before[piece.file_number] + piece.parts.back().first_token + piece.parts.back().tokens;
  }

  void end_if(bool no_more) {
    if (!no_more) return;
    finish_hashes_before(files.size());
    complete = true;
  }

  std::span<const OpenedFile> files;
  PieceCutter cutter;
  const PieceScanner scanner;
  ScanPassResult result;
  std::vector<std::int64_t> tokens_before;  // by file: of the files before
  std::int64_t end = 0;                     // of the tokens that were read, counted through all files
  // Hashing is several times faster than what the workers do, so one hash at a time keeps up with them.
  StreamHash hash;
  std::size_t hashed_file = 0;
  bool complete = false;
};

ScanPass::ScanPass(std::span<const OpenedFile> files, const std::optional<EndIds>& ends)
    : state_(std::make_unique<State>(files, ends)) {}
ScanPass::~ScanPass() = default;
ScanPass::ScanPass(ScanPass&&) noexcept = default;

void ScanPass::run(const RunContext& context, const std::function<bool()>& enough) {
  // Who decides what is enough works beside it, and has a processor of its own.
  int in_flight = enough ? std::max(context.pool.threads() - 1, 1) : default_in_flight(context.pool);
  if (context.memory_bytes > 0) {
    in_flight = static_cast<int>(std::clamp<std::int64_t>(context.memory_bytes / (2 * kPieceBytes), 1, in_flight));
  }
  bool no_more = false;
  ordered_map(
      context.pool, in_flight, context.stop,
      [&]() -> std::optional<Piece> {
        if (enough && enough()) return std::nullopt;
        std::optional<Piece> piece = state_->cutter.next();
        no_more = !piece;
        return piece;
      },
      [&](Piece&& piece) { return state_->scanner.scan(std::move(piece)); },
      [&](Piece&& piece) {
        state_->add(piece);
        if (piece.is_data) context.progress.advance(piece.bytes);
        state_->cutter.give_back(std::move(piece));
      });
  state_->cutter.free_spare();
  state_->end_if(no_more);
}

void ScanPass::read_on(std::int64_t end, const std::function<void(const Tokens&)>& take) {
  while (state_->end < end && !state_->complete) {
    std::optional<Piece> next = state_->cutter.next();
    state_->end_if(!next);
    if (!next) return;
    Piece piece = state_->scanner.scan(std::move(*next));
    state_->add(piece);
    const std::int64_t width = info(state_->files[piece.file_number].shard.ids.type).bytes;
    for (const Piece::Part& part : piece.parts) {
      take({piece.file_number, part.first_token,
            std::span<const std::byte>(piece.buffer).subspan(part.at, static_cast<std::size_t>(part.tokens * width))});
    }
    state_->cutter.give_back(std::move(piece));
  }
}

TokenFacts settle(ScanPassResult&& found, SequenceIndex& index) {
  TokenFacts totals;
  for (std::size_t file = 0; file < found.facts.size(); ++file) {
    merge(totals, found.facts[file]);
    index.set_hash(static_cast<std::int32_t>(file), std::move(found.facts[file].hash));
  }
  index.set_ends(std::move(found.ends));
  return totals;
}

std::int64_t ScanPass::tokens_before(std::size_t file_number) const { return state_->tokens_before[file_number]; }

bool ScanPass::complete() const { return state_->complete; }

ScanPassResult ScanPass::take_result() {
  ensure(state_->complete, "the pass has come to its end");
  return std::move(state_->result);
}

}  // namespace shardpack
