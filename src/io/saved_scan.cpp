#include "io/saved_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>

#include "base/checked.h"
#include "base/hash.h"
#include "base/units.h"
#include "io/file.h"
#include "io/group_key_text.h"
#include "io/json.h"
#include "io/manifest_parts.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kFormatVersion = 1;
constexpr std::string_view kFormat = "shardpack-scan";
constexpr std::size_t kHeadBytes = 16;  // magic, then the bytes of the JSON text as u64
constexpr std::int64_t kAlignment = 8;
constexpr std::size_t kHashDigits = 32;
constexpr bool kOnOneLine = true;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::size_t aligned(std::size_t bytes) {
  return (bytes + std::size_t{kAlignment} - 1) / std::size_t{kAlignment} * std::size_t{kAlignment};
}

// ---- writing ----------------------------------------------------------------------------------------------------------------

void write_source(JsonWriter& json, const SourceFile& file, const std::vector<FileStamp>& stamps) {
  json.begin_object(kOnOneLine);
  json.member("name", file.name).member("format", file.format).member("sequences", file.records());
  json.member("tokens", file.tokens()).member("null_records", file.null_records).member("xxh3_128", file.hash);
  write_ids_dtype(json, file.ids_dtype);
  json.key("files").begin_array(kOnOneLine);
  for (const FileStamp& stamp : stamps) {
    json.begin_object(kOnOneLine);
    json.member("name", stamp.shown).member("bytes", stamp.bytes);
    json.member("modified", static_cast<std::int64_t>(stamp.modified.tv_sec));
    json.member("nanoseconds", static_cast<std::int64_t>(stamp.modified.tv_nsec));
    json.end_object();
  }
  json.end_array().end_object();
}

/// The narrowest of u16, u32 and i64 that holds every length.
IdType length_type(const SequenceIndex& index) {
  std::int64_t longest = 0;
  for (const SourceFile& file : index.files()) {
    for (std::size_t record = 0; record + 1 < file.record_begin.size(); ++record)
      longest = std::max(longest, file.record_begin[record + 1] - file.record_begin[record]);
  }
  return longest <= 0xFFFF ? IdType::u16 : longest <= 0xFFFFFFFF ? IdType::u32 : IdType::i64;
}

constexpr std::array<std::string_view, 3> kLossSides{"none", "start", "end"};  // index = LossSide

std::string header_of(const ScannedSource& scanned, const SavedScanOptions& options, IdType lengths) {
  const SequenceIndex& index = scanned.source->index();
  JsonWriter json;
  json.begin_object();
  json.member("format", kFormat).member("format_version", kFormatVersion);
  json.key("options").begin_object();
  for (const auto& [name, value] : options.recorded) json.key(name).raw(value);
  json.end_object();
  json.member("sequences", index.sequences()).member("tokens", index.tokens());
  json.member("id_min", scanned.totals.id_min).member("id_max", scanned.totals.id_max);
  json.member("fingerprint", scanned.totals.fingerprint.hex()).member("loss_tokens", scanned.loss_tokens);
  json.key("padding").begin_object(kOnOneLine);
  json.member("sequences", scanned.padding.sequences).member("tokens", scanned.padding.tokens);
  json.member("loss_tokens", scanned.padding.loss_tokens).end_object();
  json.member("null_records", scanned.null_records);
  write_columns(json, scanned.source->columns());
  json.key("not_carried").begin_array(kOnOneLine);
  for (const std::string& name : scanned.not_carried) json.value(name);
  json.end_array();
  json.key("groups").begin_array(kOnOneLine);
  for (const GroupKey& key : index.group_keys()) json.raw(group_text(key));
  json.end_array();
  json.key("arrays").begin_object(kOnOneLine);
  json.member("lengths", info(lengths).name).member("ends", options.ends).member("groups", index.grouped());
  json.member("loss_places", kLossSides[static_cast<std::size_t>(options.loss_side)]).end_object();
  json.key("sources").begin_array();
  for (std::size_t f = 0; f < index.files().size(); ++f) write_source(json, index.files()[f], scanned.stamps[f]);
  json.end_array().end_object();
  return json.take();
}

/// value(i) for every sequence, as Stored, and zeros up to the next multiple of eight bytes.
template <class Stored, class Get>
void append_array(std::string& bytes, std::int64_t count, Get value) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto stored = static_cast<Stored>(value(i));
    bytes.append(reinterpret_cast<const char*>(&stored), sizeof stored);
  }
  bytes.resize(aligned(bytes.size()), '\0');
}

template <class Stored>
void append_lengths(std::string& bytes, const SequenceIndex& index) {
  std::size_t file = 0, record = 0;
  append_array<Stored>(bytes, index.sequences(), [&](std::int64_t) {
    while (record + 1 == index.files()[file].record_begin.size()) {
      ++file;
      record = 0;
    }
    const std::vector<std::int64_t>& begin = index.files()[file].record_begin;
    ++record;
    return begin[record] - begin[record - 1];
  });
}

// ---- reading ----------------------------------------------------------------------------------------------------------------

/// Takes arrays off the file one after the other; their sizes are known to fit it.
class ArrayReader {
 public:
  ArrayReader(const File& file, std::int64_t offset) : file_(file), offset_(offset) {}

  template <class Stored>
  std::vector<Stored> next(std::int64_t count) {
    std::vector<Stored> values(static_cast<std::size_t>(count));
    file_.read_at(offset_, std::as_writable_bytes(std::span(values)));
    offset_ += static_cast<std::int64_t>(aligned(values.size() * sizeof(Stored)));
    return values;
  }

 private:
  const File& file_;
  std::int64_t offset_;
};

/// What the header says of a source; its boundaries follow from the lengths.
SourceFile read_source(const Json& json, std::vector<FileStamp>& stamps) {
  SourceFile file;
  file.name = json.at("name").as_string();
  file.format = json.at("format").as_string();
  file.null_records = json.at("null_records").as_int(0, kMost);
  file.hash = read_hash(json.at("xxh3_128"));
  file.ids_dtype = read_ids_dtype(json.at("ids_dtype"));
  const Json files = json.at("files");
  if (files.size() == 0) files.fail("expected at least one file");
  for (std::size_t i = 0; i < files.size(); ++i) {
    FileStamp stamp;
    stamp.shown = files.at(i).at("name").as_string();
    stamp.bytes = read_count(files.at(i), "bytes");
    stamp.modified.tv_sec = files.at(i).at("modified").as_int();
    stamp.modified.tv_nsec = files.at(i).at("nanoseconds").as_int(0, 999'999'999);
    file.bytes = checked_add(file.bytes, stamp.bytes, "the bytes of the inputs");
    stamps.push_back(std::move(stamp));
  }
  return file;
}

/// The sources' boundaries, from the lengths of all sequences.
template <class Stored>
void read_boundaries(ArrayReader& arrays, const std::vector<std::int64_t>& records, std::int64_t sequences,
                     std::vector<SourceFile>& files) {
  const std::vector<Stored> lengths = arrays.next<Stored>(sequences);
  std::size_t next = 0;
  for (std::size_t f = 0; f < files.size(); ++f) {
    std::vector<std::int64_t>& begin = files[f].record_begin;
    begin.reserve(static_cast<std::size_t>(records[f]) + 1);
    begin.push_back(0);
    for (std::int64_t record = 0; record < records[f]; ++record) {
      const auto length = static_cast<std::int64_t>(lengths[next++]);
      if (length < 0) throw Error(ErrorCode::bad_data, "a sequence has a negative length", files[f].name);
      begin.push_back(checked_add(begin.back(), length, "the tokens of the inputs"));
    }
  }
}

std::string_view array_name(const Json& json, const std::vector<std::string_view>& names) {
  const std::string found = json.as_string();
  const auto name = std::find(names.begin(), names.end(), found);
  if (name == names.end()) json.fail(fmt::format("this version does not know '{}'", found));
  return *name;
}

/// Which arrays follow the header, in this order.
struct Arrays {
  IdType lengths = IdType::u16;
  bool ends = false, groups = false, loss_places = false;

  std::int64_t bytes(std::int64_t sequences) const {
    std::int64_t all = 0;
    for (const int width : {info(lengths).bytes, ends ? 1 : 0, groups ? 4 : 0, loss_places ? 4 : 0}) {
      const std::int64_t array = checked_mul(sequences, width, "the saved scan");
      all = checked_add(all, checked_add(array, kAlignment - 1, "the saved scan") / kAlignment * kAlignment, "the saved scan");
    }
    return all;
  }
};

[[noreturn]] void refuse(const std::string& path, std::string_view message) { throw Error(ErrorCode::bad_data, message, path); }

/// The header's text, after the file was hashed whole. \throws Error{bad_data}
std::string read_header(const File& file, const std::string& path, std::string& hash) {
  const std::int64_t size = file.size();
  std::array<char, kHeadBytes> head{};
  const auto head_bytes = std::as_writable_bytes(std::span(head));
  if (size < static_cast<std::int64_t>(kHeadBytes + kHashDigits) || file.read_some_at(0, head_bytes) != kHeadBytes ||
      std::string_view(head.data(), kSavedScanMagic.size()) != kSavedScanMagic) {
    refuse(path, "not a saved scan; 'shardpack scan --save FILE' makes one");
  }
  StreamHash all;
  std::vector<std::byte> block(std::size_t{1} << 20);
  const std::int64_t end = size - static_cast<std::int64_t>(kHashDigits);
  for (std::int64_t at = 0; at < end;) {
    const auto part = std::span(block).first(static_cast<std::size_t>(std::min<std::int64_t>(end - at, std::ssize(block))));
    file.read_at(at, part);
    all.update(part);
    at += std::ssize(part);
  }
  std::string stated(kHashDigits, '\0');
  file.read_at(end, std::as_writable_bytes(std::span(stated)));
  hash = all.hex();
  if (stated != hash) refuse(path, "the checksum does not match: the saved scan was damaged or cut short; make it again");

  std::uint64_t bytes = 0;
  std::memcpy(&bytes, head.data() + kSavedScanMagic.size(), sizeof bytes);
  if (bytes > static_cast<std::uint64_t>(end) - kHeadBytes) refuse(path, "its header is longer than the file");
  std::string text(static_cast<std::size_t>(bytes), '\0');
  file.read_at(kHeadBytes, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

std::string saved_scan_bytes(const ScannedSource& scanned, const SavedScanOptions& options) {
  const SequenceIndex& index = scanned.source->index();
  const IdType lengths = length_type(index);
  const std::string header = header_of(scanned, options, lengths);
  const std::uint64_t header_bytes = header.size();
  std::string bytes(kSavedScanMagic);
  bytes.append(reinterpret_cast<const char*>(&header_bytes), sizeof header_bytes);
  bytes += header;
  bytes.resize(aligned(bytes.size()), '\0');
  if (lengths == IdType::u16) append_lengths<std::uint16_t>(bytes, index);
  if (lengths == IdType::u32) append_lengths<std::uint32_t>(bytes, index);
  if (lengths == IdType::i64) append_lengths<std::int64_t>(bytes, index);
  const std::int64_t sequences = index.sequences();
  if (options.ends) append_array<std::uint8_t>(bytes, sequences, [&](SequenceId s) { return index.ends(s); });
  if (index.grouped()) append_array<std::int32_t>(bytes, sequences, [&](SequenceId s) { return index.group(s); });
  if (index.has_loss_places()) append_array<std::uint32_t>(bytes, sequences, [&](SequenceId s) { return index.loss_place(s); });
  return bytes + hash_hex(bytes);
}

SavedScan read_saved_scan(const std::string& path) {
  const File file(path, File::Mode::read);
  SavedScan scan;
  const std::string header = read_header(file, path, scan.hash);
  const Json json = Json::parse(header, path);
  check_format(json, kFormat, kFormatVersion);
  for (const auto& [name, value] : json.at("options").members()) scan.options.emplace_back(name, value.dump());
  scan.facts.totals.id_min = json.at("id_min").as_int();
  scan.facts.totals.id_max = json.at("id_max").as_int();
  scan.facts.totals.fingerprint = Fingerprint::from_hex(read_hash(json.at("fingerprint")));
  scan.facts.loss_tokens = read_count(json, "loss_tokens");
  const Json padding = json.at("padding");
  scan.facts.padding = {read_count(padding, "sequences"), read_count(padding, "tokens"), read_count(padding, "loss_tokens")};
  scan.facts.null_records = read_count(json, "null_records");
  scan.columns = read_columns(json.at("columns"));
  for (std::size_t i = 0; i < json.at("not_carried").size(); ++i)
    scan.facts.not_carried.push_back(json.at("not_carried").at(i).as_string());

  const Json list = json.at("sources"), arrays_json = json.at("arrays");
  std::vector<SourceFile> files;
  std::vector<std::int64_t> records;
  std::int64_t sequences = 0;
  for (std::size_t f = 0; f < list.size(); ++f) {
    files.push_back(read_source(list.at(f), scan.stamps.emplace_back()));
    records.push_back(read_count(list.at(f), "sequences"));
    sequences = checked_add(sequences, records.back(), "the number of sequences");
  }
  Arrays present;
  const std::string_view width = array_name(arrays_json.at("lengths"), {"u16", "u32", "i64"});
  present.lengths = width == "u16" ? IdType::u16 : width == "u32" ? IdType::u32 : IdType::i64;
  present.ends = scan.has_ends = arrays_json.at("ends").as_bool();
  present.groups = arrays_json.at("groups").as_bool();
  const std::string_view side = array_name(arrays_json.at("loss_places"), {kLossSides.begin(), kLossSides.end()});
  scan.loss_side = static_cast<LossSide>(std::find(kLossSides.begin(), kLossSides.end(), side) - kLossSides.begin());
  present.loss_places = scan.loss_side != LossSide::none;

  // Only now, when every count is known to be there in bytes, is anything of their size allocated.
  const auto begin = static_cast<std::int64_t>(aligned(kHeadBytes + header.size()));
  const std::int64_t arrays_end = file.size() - static_cast<std::int64_t>(kHashDigits);
  if (arrays_end - begin != present.bytes(sequences))
    refuse(path, fmt::format("{} sequences do not make a file of {} bytes", with_commas(sequences), with_commas(file.size())));
  ArrayReader arrays(file, begin);
  if (present.lengths == IdType::u16) read_boundaries<std::uint16_t>(arrays, records, sequences, files);
  if (present.lengths == IdType::u32) read_boundaries<std::uint32_t>(arrays, records, sequences, files);
  if (present.lengths == IdType::i64) read_boundaries<std::int64_t>(arrays, records, sequences, files);
  scan.index = SequenceIndex(std::move(files), present.ends ? arrays.next<std::uint8_t>(sequences) : std::vector<std::uint8_t>());
  if (present.groups) {
    const Json keys_json = json.at("groups");
    std::vector<GroupKey> keys;
    for (std::size_t i = 0; i < keys_json.size(); ++i) keys.push_back(read_group(keys_json.at(i)));
    if (!std::is_sorted(keys.begin(), keys.end())) keys_json.fail("groups ascend");
    std::vector<std::int32_t> groups = arrays.next<std::int32_t>(sequences);
    for (const std::int32_t group : groups) {
      if (group < -1 || group >= std::ssize(keys)) refuse(path, "a sequence is of a group that there is not");
    }
    scan.index.set_groups(std::move(keys), std::move(groups));
  }
  if (present.loss_places) scan.index.set_loss_places(arrays.next<std::uint32_t>(sequences));
  return scan;
}

}  // namespace shardpack
