// Megatron's indexed dataset: X.bin holds the ids, X.idx their lengths, places and documents.
//
// Four tools write different layouts behind the same magic: Megatron and GPT-NeoX (34 header bytes, a document index), fairseq
// (26 bytes, none) and DeepSpeed (as Megatron, but the type codes 6 to 8 mean other types). Which one it is follows from the
// sizes, never from the magic or the code alone:
//   size of the index = 26 + 12 N                  fairseq
//                     = 34 + 12 N + 8 D            Megatron, GPT-NeoX, DeepSpeed (+ N: a mode for each sequence, multimodal)
//   bytes of an id    = step from one place to the next / length
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "io/formats/flat_tokens.h"
#include "io/formats/integer_array.h"
#include "io/formats/readers.h"
#include "io/formats/side_columns.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::string_view kMagic{"MMIDIDX\0\0", 9};
constexpr std::int64_t kHeaderBytes = 34, kFairseqHeaderBytes = 26;
constexpr std::int64_t kSequenceBytes = 4 + 8;  // length and place

/// What a type code may mean, by who wrote it. Codes of floating-point types are left out: those are no token ids.
struct TypeCode {
  int code;
  IdType type;
};
constexpr std::array<TypeCode, 11> kTypeCodes{{
    {1, IdType::u8},
    {2, IdType::i8},
    {3, IdType::i16},
    {4, IdType::i32},
    {5, IdType::i64},
    {8, IdType::u16},   // Megatron, GPT-NeoX, fairseq
    {6, IdType::u16},   // DeepSpeed
    {7, IdType::u32},   // DeepSpeed
    {8, IdType::u64},   // DeepSpeed
    {9, IdType::u32},   // fairseq
    {10, IdType::u64},  // fairseq
}};

struct Index {
  std::shared_ptr<const File> file;
  InputFile place;
  int code = 0;
  std::int64_t sequences = 0;        // N
  std::int64_t document_starts = 0;  // D, documents + 1; 0 in fairseq's layout
  std::int64_t header_bytes = kHeaderBytes;

  IntegerArray lengths() const { return {*file, header_bytes, sequences, IdType::i32}; }
  IntegerArray places() const { return {*file, header_bytes + 4 * sequences, sequences, IdType::i64}; }
  IntegerArray documents() const { return {*file, header_bytes + kSequenceBytes * sequences, document_starts, IdType::i64}; }

  [[noreturn]] void fail(const std::string& message, const std::string& position = {}) const {
    throw Error(ErrorCode::bad_data, message, place.name, position);
  }
};

std::int64_t load_i64(const std::string& bytes, std::size_t at) {
  std::int64_t value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

Index open_index(const InputFile& place) {
  Index index;
  index.place = place;
  index.file = std::make_shared<const File>(place.path, File::Mode::read, place.name);
  const std::int64_t bytes = index.file->size();
  std::string head(static_cast<std::size_t>(std::min(bytes, kHeaderBytes)), '\0');
  index.file->read_at(0, std::as_writable_bytes(std::span(head)));

  for (const std::string_view old : {"TNTIDX", "HUFFIDX"}) {
    if (head.starts_with(old)) {
      index.fail(
          fmt::format("an older index ({}: the 'lazy' or 'cached' implementation{}), not read by this version; preprocess "
                      "the data again with --dataset-impl mmap",
                      old, old == "HUFFIDX" ? ", Huffman-coded" : ""));
    }
  }
  if (!head.starts_with(kMagic.substr(0, head.size()))) {
    index.fail("expected the index of a Megatron dataset (magic MMIDIDX), found other bytes", "byte 0");
  }
  const auto fail_short = [&](const std::string& expected) {
    index.fail(fmt::format("{}: the index was cut short or damaged", expected), fmt::format("byte {}", with_commas(bytes)));
  };
  if (bytes < kFairseqHeaderBytes) fail_short("the header is not complete");
  if (const std::int64_t version = load_i64(head, 9); version != 1) {
    index.fail(fmt::format("index version {}; version 1 is known", version), "byte 9");
  }
  index.code = static_cast<unsigned char>(head[17]);
  index.sequences = load_i64(head, 18);

  // The counts are claims: each is bounded by the file's size before it is multiplied.
  const auto impossible = [&](std::int64_t count, std::int64_t each) { return count < 0 || count > bytes / each; };
  if (impossible(index.sequences, kSequenceBytes)) {
    fail_short(fmt::format("the header counts {} sequences, far more than {} bytes can list", with_commas(index.sequences),
                           with_commas(bytes)));
  }
  const std::int64_t listed = kSequenceBytes * index.sequences;
  if (bytes == kFairseqHeaderBytes + listed) {
    index.header_bytes = kFairseqHeaderBytes;
    return index;
  }
  if (bytes < kHeaderBytes) fail_short("the header is not complete");
  index.document_starts = load_i64(head, 26);
  if (impossible(index.document_starts, 8)) {
    fail_short(fmt::format("the header counts {} documents, far more than {} bytes can list", with_commas(index.document_starts),
                           with_commas(bytes)));
  }
  const std::int64_t expected = kHeaderBytes + listed + 8 * index.document_starts;
  if (index.sequences > 0 && bytes == expected + index.sequences) {
    index.fail("a multimodal index (it has a mode for each sequence), not read by this version");
  }
  if (bytes != expected) {
    fail_short(fmt::format("{} sequences and {} document starts take {} bytes, but the index has {}",
                           with_commas(index.sequences), with_commas(index.document_starts), with_commas(expected),
                           with_commas(bytes)));
  }
  return index;
}

struct IdBytes {
  std::int64_t bytes = 0;    // 0 when there are no tokens, or nothing that divides
  bool from_places = false;  // else from the size of the data, which says little once the data are cut short
};

/// From the step between two places; where only the last sequence has tokens, from the size of the data.
IdBytes measure_id_bytes(const Index& index, std::int64_t data_bytes) {
  IntegerArray lengths = index.lengths(), places = index.places();
  std::int64_t length = 0, place = 0;
  while (lengths.left() > 0 && length == 0) {
    length = lengths.next();
    place = places.next();
  }
  if (length <= 0) return {};
  const bool from_places = places.left() > 0;
  const std::int64_t end = from_places ? places.next() : data_bytes;
  if (place < 0 || end <= place || (end - place) % length != 0) return {};
  return {(end - place) / length, from_places};
}

/// The type that both the code and the measured size allow, or --dtype where its size is right.
IdType resolve_type(const Index& index, const IdBytes& measured, const ReadOptions& options) {
  if (options.dtype) {
    if (measured.from_places && info(*options.dtype).bytes != measured.bytes) {
      throw Error(ErrorCode::usage,
                  fmt::format("--dtype {} has {} bytes, but its ids have {}", info(*options.dtype).name,
                              info(*options.dtype).bytes, measured.bytes),
                  index.place.name);
    }
    return *options.dtype;
  }
  const TypeCode* of_code = nullptr;
  for (const TypeCode& candidate : kTypeCodes) {
    if (candidate.code != index.code) continue;
    if (info(candidate.type).bytes == measured.bytes) return candidate.type;
    if (of_code == nullptr) of_code = &candidate;
  }
  if (of_code == nullptr) {
    index.fail(fmt::format("type code {} is not one of an integer type", index.code), "byte 17");
  }
  if (measured.bytes != 0 && (index.code == 6 || index.code == 7)) {
    index.fail(
        fmt::format("type code {} with values of {} bytes: floating-point numbers, not token ids", index.code, measured.bytes),
        "byte 17");
  }
  if (!measured.from_places) return of_code->type;  // what is wrong with the sizes comes out when they are compared
  std::string help = "the index is damaged";
  for (const IdTypeInfo& type : kIdTypes) {
    if (type.bytes == measured.bytes && type.name[0] == 'u') {
      help = fmt::format("--dtype {} reads them by the measured size", type.name);
    }
  }
  index.fail(fmt::format("type code {} says {} bytes an id, but the places of the sequences say {}; {}", index.code,
                         info(of_code->type).bytes, measured.bytes, help),
             "byte 17");
}

/// Takes sequences one after the other, checking that each lies where the one before ends.
class SequenceWalk {
 public:
  SequenceWalk(const Index& index, std::int64_t id_bytes)
      : index_(index), id_bytes_(id_bytes), lengths_(index.lengths()), places_(index.places()) {}

  std::int64_t sequence() const { return sequence_; }
  std::int64_t tokens() const { return tokens_; }

  void take() {
    const std::int64_t length = lengths_.next(), place = places_.next();
    if (length < 0) fail(fmt::format("length {}", length));
    if (place != tokens_ * id_bytes_) {
      fail(
          fmt::format("it begins at byte {} of the data, expected byte {}, where the one before ends; places written in 32 bits "
                      "wrap like this, then the index must be built again",
                      with_commas(place), with_commas(tokens_ * id_bytes_)));
    }
    tokens_ += length;
    ++sequence_;
  }
  void take_to(std::int64_t sequence) {
    while (sequence_ < sequence) take();
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    index_.fail(message, fmt::format("sequence {}", with_commas(sequence_)));
  }

  const Index& index_;
  std::int64_t id_bytes_;
  IntegerArray lengths_, places_;
  std::int64_t sequence_ = 0, tokens_ = 0;
};

std::vector<std::int64_t> cut_by_sequences(const Index& index, SequenceWalk& walk) {
  std::vector<std::int64_t> record_begin{0};
  record_begin.reserve(static_cast<std::size_t>(index.sequences) + 1);
  while (walk.sequence() < index.sequences) {
    walk.take();
    record_begin.push_back(walk.tokens());
  }
  return record_begin;
}

std::vector<std::int64_t> cut_by_documents(const Index& index, SequenceWalk& walk) {
  constexpr std::string_view kWayOut = "--unit sequence does without the document index";
  IntegerArray documents = index.documents();
  std::vector<std::int64_t> record_begin;
  record_begin.reserve(static_cast<std::size_t>(index.document_starts));
  for (std::int64_t document = 0; document < index.document_starts; ++document) {
    const std::int64_t start = documents.next();
    const bool sound = document == 0 ? start == 0 : start >= walk.sequence() && start <= index.sequences;
    if (!sound) {
      index.fail(fmt::format("it starts at sequence {}, expected {} to {}; {}", with_commas(start), with_commas(walk.sequence()),
                             with_commas(document == 0 ? 0 : index.sequences), kWayOut),
                 fmt::format("document {}", with_commas(document)));
    }
    walk.take_to(start);
    record_begin.push_back(walk.tokens());
  }
  if (walk.sequence() != index.sequences || record_begin.empty()) {
    index.fail(fmt::format("the document index ends at sequence {} of {}, as some merge scripts leave it; {}",
                           with_commas(walk.sequence()), with_commas(index.sequences), kWayOut));
  }
  return record_begin;
}

/// Code 7 with 4 bytes is u32 to DeepSpeed and float to Megatron. Floats from 1 on have bit patterns far above any vocabulary.
void check_not_floats(const Index& index, const TokenTable& ids) {
  constexpr std::int64_t kSample = 4096;
  constexpr std::uint32_t kLargestPlausibleId = 1u << 28;
  std::vector<std::uint32_t> sample(static_cast<std::size_t>(std::min(ids.tokens, kSample)));
  ids.read(0, sample);
  if (std::any_of(sample.begin(), sample.end(), [](std::uint32_t id) { return id > kLargestPlausibleId; })) {
    index.fail(
        "type code 7 with values that look like floating-point numbers, not token ids; --dtype u32 reads them as ids all "
        "the same",
        "byte 17");
  }
}

}  // namespace

bool matches_megatron(const FormatProbe& probe) { return probe.replaced(".bin", ".idx"); }

OpenedShard open_megatron(const InputFile& file, const ReadOptions& options, const OpenContext& context) {
  if (file.path.ends_with(".idx")) {
    throw Error(ErrorCode::io, fmt::format("{} is not there beside it", sibling(file, ".idx", ".bin").name), file.name);
  }
  if (!file.path.ends_with(".bin")) {
    throw Error(ErrorCode::usage, "a Megatron dataset is a pair X.bin and X.idx; give the .bin", file.name);
  }
  const InputFile index_place = sibling(file, ".bin", ".idx");
  if (!exists(index_place)) throw Error(ErrorCode::io, fmt::format("{} is not there beside it", index_place.name), file.name);
  const Index index = open_index(index_place);

  OpenedShard shard;
  shard.files = {file.path, index_place.path};
  shard.ids.file = std::make_shared<const File>(file.path, File::Mode::read, file.name);
  const std::int64_t data_bytes = shard.ids.file->size();
  shard.ids.type = resolve_type(index, measure_id_bytes(index, data_bytes), options);

  SequenceWalk walk(index, info(shard.ids.type).bytes);
  const bool by_documents = options.unit == Unit::document && index.header_bytes == kHeaderBytes;
  shard.record_begin = by_documents ? cut_by_documents(index, walk) : cut_by_sequences(index, walk);
  shard.ids.append(walk.tokens(), 0);

  const std::int64_t width = info(shard.ids.type).bytes;
  if (data_bytes % width != 0 || data_bytes / width != shard.ids.tokens) {
    throw Error(ErrorCode::bad_data,
                fmt::format("holds {} bytes, but {} lists {} tokens of {} bytes; {}", with_commas(data_bytes), index_place.name,
                            with_commas(shard.ids.tokens), width,
                            data_bytes / width < shard.ids.tokens ? "it was cut short" : "they do not belong together"),
                file.name, fmt::format("byte {}", with_commas(data_bytes)));
  }
  if (index.code == 7 && !options.dtype) check_not_floats(index, shard.ids);
  take_side_columns(shard, file, options, context);
  return shard;
}

}  // namespace shardpack
