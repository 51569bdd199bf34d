// Records as flat arrays: X.npy with X.lengths.npy, or Megatron's X.bin with X.idx (its layout is described at the reader,
// formats/megatron.cpp), and X.COLUMN.npy for each column.
#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/units.h"
#include "exec/ordered_map.h"
#include "io/hashed_file.h"
#include "io/npy_writer.h"
#include "io/record_sinks.h"
#include "shardpack/byte_buffer.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;

/// Calls write(bytes) for the values [first, last) of a spool's file, piece by piece.
template <class Write>
void copy(const File& from, std::int64_t first, std::int64_t last, int width, const RunContext& context, Write write) {
  ByteBuffer piece;
  std::int64_t at = first * width;
  while (at < last * width) {
    throw_if_stopped(context.stop);
    piece.resize(static_cast<std::size_t>(std::min(kPieceBytes, last * width - at)));
    from.read_at(at, piece);
    write(std::span<const std::byte>(piece));
    at += static_cast<std::int64_t>(piece.size());
  }
}

/// Megatron's pair; every record is one sequence and one document.
class MegatronPair {
 public:
  MegatronPair(const std::string& folder, const std::string& bin, const std::string& idx, IdType id_type)
      : folder_(folder),
        bin_name_(bin),
        idx_name_(idx),
        id_type_(id_type),
        bin_(folder + "/" + bin),
        lengths_(File::temporary(folder)) {}

  void append_ids(std::span<const std::byte> bytes) { bin_.append(bytes); }
  void append_lengths(std::span<const std::int64_t> lengths) {
    std::vector<std::int32_t> narrow;
    for (const std::int64_t length : lengths) {
      if (length > 0x7fffffff) {
        throw Error(ErrorCode::limit, "a record has more tokens than Megatron's index can say (2^31 - 1); --as npy");
      }
      narrow.push_back(static_cast<std::int32_t>(length));
    }
    lengths_.write_at(records_ * kLengthBytes, std::as_bytes(std::span(narrow)));
    records_ += static_cast<std::int64_t>(lengths.size());
  }

  std::vector<ManifestFile> finish() {
    constexpr std::uint8_t kCodeOfI32 = 4, kCodeOfU16 = 8;
    HashedFile idx(folder_ + "/" + idx_name_);
    idx.append(std::as_bytes(std::span("MMIDIDX\0", 9)));
    append(idx, std::uint64_t{1});
    append(idx, id_type_ == IdType::u16 ? kCodeOfU16 : kCodeOfI32);
    append(idx, records_);
    append(idx, records_ + 1);
    for_each_piece([&](std::span<const std::int32_t> lengths) { idx.append(std::as_bytes(lengths)); });
    std::int64_t place = 0, document = 0;
    for_each_piece([&](std::span<const std::int32_t> lengths) {
      std::vector<std::int64_t> places;
      for (const std::int32_t length : lengths) {
        places.push_back(place);
        place += std::int64_t{length} * info(id_type_).bytes;
      }
      idx.append(std::as_bytes(std::span(places)));
    });
    append(idx, document);
    for_each_piece([&](std::span<const std::int32_t> lengths) {
      std::vector<std::int64_t> documents;
      for (std::size_t i = 0; i < lengths.size(); ++i) documents.push_back(++document);
      idx.append(std::as_bytes(std::span(documents)));
    });
    return {bin_.finish(bin_name_), idx.finish(idx_name_)};
  }

 private:
  static constexpr std::int64_t kLengthBytes = 4;

  template <class T>
  static void append(HashedFile& file, const T& value) {
    file.append(std::as_bytes(std::span(&value, 1)));
  }
  template <class Visit>
  void for_each_piece(Visit visit) const {
    constexpr std::int64_t kPiece = 1 << 16;
    std::vector<std::int32_t> lengths;
    for (std::int64_t first = 0; first < records_; first += kPiece) {
      lengths.resize(static_cast<std::size_t>(std::min(kPiece, records_ - first)));
      lengths_.read_at(first * kLengthBytes, std::as_writable_bytes(std::span(lengths)));
      visit(std::span<const std::int32_t>(lengths));
    }
  }

  const std::string folder_, bin_name_, idx_name_;
  const IdType id_type_;
  HashedFile bin_;
  File lengths_;  // the index begins with them, and their number comes last
  std::int64_t records_ = 0;
};

class NpyPair {
 public:
  NpyPair(const std::string& folder, const std::string& ids, const std::string& lengths, IdType id_type)
      : ids_(folder, ids, id_type == IdType::u16 ? "<u2" : "<u4"),
        lengths_(folder, lengths, "<i8"),
        bytes_(info(id_type).bytes) {}

  void append_ids(std::span<const std::byte> bytes) {
    ids_.append_stored(bytes, static_cast<std::int64_t>(bytes.size()) / bytes_);
  }
  void append_lengths(std::span<const std::int64_t> lengths) { lengths_.append(lengths); }
  std::vector<ManifestFile> finish() { return {ids_.finish(), lengths_.finish()}; }

 private:
  NpyWriter ids_, lengths_;
  std::int64_t bytes_;
};

template <class Pair>
class ArraySink final : public RecordSink {
 public:
  ArraySink(const RecordSinkSettings& settings, const std::string& folder, const std::vector<std::string>& files,
            const RunContext& context)
      : settings_(settings), context_(context), pair_(folder, files[0], files[1], settings.id_type) {
    for (std::size_t c = 0; c < settings.columns.size(); ++c)
      columns_.emplace_back(folder, files[2 + c], info(settings.columns[c].type).numpy);
  }

  void add(const RecordSpool& spool, std::int64_t first, std::int64_t last) override {
    const auto at = [&](std::int64_t record) { return spool.begin[static_cast<std::size_t>(record)]; };
    std::vector<std::int64_t> lengths;
    for (std::int64_t record = first; record < last; ++record) {
      lengths.push_back(at(record + 1) - at(record));
      if (lengths.size() < (std::size_t{1} << 16) && record + 1 < last) continue;
      pair_.append_lengths(lengths);
      lengths.clear();
    }
    copy(spool.ids, at(first), at(last), info(settings_.id_type).bytes, context_,
         [&](std::span<const std::byte> bytes) { pair_.append_ids(bytes); });
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const RecordSpool::Values& values = spool.columns[c];
      const int width = info(values.column.type).bytes;
      copy(values.file, spool.value_begin(values, first), spool.value_begin(values, last), width, context_,
           [&](std::span<const std::byte> bytes) {
             columns_[c].append_stored(bytes, static_cast<std::int64_t>(bytes.size()) / width);
           });
    }
  }

  std::vector<ManifestFile> finish() override {
    std::vector<ManifestFile> files = pair_.finish();
    for (NpyWriter& column : columns_) files.push_back(column.finish());
    return files;
  }

 private:
  const RecordSinkSettings& settings_;
  const RunContext& context_;
  Pair pair_;
  std::deque<NpyWriter> columns_;
};

}  // namespace

std::unique_ptr<RecordSink> make_array_sink(const RecordSinkSettings& settings, const std::string& folder,
                                            const std::string& stem, const RunContext& context) {
  const std::vector<std::string> files = record_files(settings, stem);
  if (settings.format == UnpackFormat::megatron)
    return std::make_unique<ArraySink<MegatronPair>>(settings, folder, files, context);
  return std::make_unique<ArraySink<NpyPair>>(settings, folder, files, context);
}

}  // namespace shardpack
