// Writes one shard in the native layout. Workers make the bytes of every file, compressed where asked for; the one writing thread
// only hashes and appends, so plain and compressed files take the same way and any order of workers gives the same bytes.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <utility>

#include "base/checked.h"
#include "io/hashed_file.h"
#include "io/npy.h"
#include "io/zstd_seekable.h"
#include "shardpack/error.h"
#include "shardpack/row_sink.h"

namespace shardpack {

static_assert(std::endian::native == std::endian::little, "files are little-endian, and so must this machine be");

namespace {

using Bytes = ByteBuffer;

/// One file of a shard: what its elements are, and how a block's part of it is made.
struct Array {
  std::string stem;
  ValueType type;
  std::vector<std::int64_t> shape;
  std::function<Bytes(RowBlock& block, const ShardPlan& plan)> encode;
  bool leading_zero = false;  ///< element 0 belongs to no block: offsets begin with 0
};

Bytes encode_ids(RowBlock& block, const ShardPlan&) { return std::move(block.ids); }

/// fill(segments of a row, its slots) for every row.
template <class Id, class Fill>
Bytes encode_per_slot(const RowBlock& block, Fill fill) {
  const auto row_tokens = static_cast<std::size_t>(block.row_tokens);
  Bytes bytes(static_cast<std::size_t>(block.rows) * row_tokens * sizeof(Id));
  const std::span<Id> slots(reinterpret_cast<Id*>(bytes.data()), bytes.size() / sizeof(Id));
  const std::span<const RowSegment> segments(block.segments);
  for (std::size_t row = 0; row < static_cast<std::size_t>(block.rows); ++row) {
    const auto begin = static_cast<std::size_t>(block.row_begin[row]);
    const auto end = static_cast<std::size_t>(block.row_begin[row + 1]);
    fill(segments.subspan(begin, end - begin), slots.subspan(row * row_tokens, row_tokens));
  }
  return bytes;
}
template <class Id>
Bytes encode_segment_ids(RowBlock& block, const ShardPlan&) {
  return encode_per_slot<Id>(block, fill_segment_ids<Id>);
}
template <class Id>
Bytes encode_position_ids(RowBlock& block, const ShardPlan& plan) {
  return encode_per_slot<Id>(block, [&plan](std::span<const RowSegment> segments, std::span<Id> slots) {
    fill_position_ids(segments, plan.position_start, slots);
  });
}

/// `Columns` elements for every segment: put(segment, elements).
template <class Element, std::size_t Columns, class Put>
Bytes encode_per_segment(const RowBlock& block, Put put) {
  Bytes bytes(block.segments.size() * Columns * sizeof(Element));
  auto* elements = reinterpret_cast<Element*>(bytes.data());
  for (const RowSegment& segment : block.segments) {
    put(segment, elements);
    elements += Columns;
  }
  return bytes;
}
Bytes encode_seq_lengths(RowBlock& block, const ShardPlan&) {
  return encode_per_segment<std::int32_t, 1>(block, [](const RowSegment& s, std::int32_t* out) { *out = s.length(); });
}
Bytes encode_seq_source(RowBlock& block, const ShardPlan&) {
  return encode_per_segment<std::int64_t, 3>(block, [](const RowSegment& s, std::int64_t* out) {
    out[0] = s.file;
    out[1] = s.record;
    out[2] = s.first_token;
  });
}
Bytes encode_seq_added(RowBlock& block, const ShardPlan&) {
  return encode_per_segment<std::uint8_t, 1>(block, [](const RowSegment& s, std::uint8_t* out) { *out = s.added; });
}
Bytes encode_seq_begin(RowBlock& block, const ShardPlan&) {
  const std::span<const std::byte> places = std::as_bytes(std::span(block.begins));
  return Bytes(places.begin(), places.end());
}
Bytes encode_seq_slots(RowBlock& block, const ShardPlan&) {
  return encode_per_segment<std::int32_t, 1>(block, [](const RowSegment& s, std::int32_t* out) { *out = s.slots; });
}

/// Where each row of the block ends, counted in segments of the shard.
Bytes encode_row_offsets(RowBlock& block, const ShardPlan&) {
  Bytes bytes(static_cast<std::size_t>(block.rows) * sizeof(std::int64_t));
  auto* const ends = reinterpret_cast<std::int64_t*>(bytes.data());
  for (std::size_t row = 0; row < static_cast<std::size_t>(block.rows); ++row) {
    ends[row] = block.first_segment + block.row_begin[row + 1];
  }
  return bytes;
}

/// Where each row's slots end, counted in the shard; only where rows differ.
Bytes encode_slot_offsets(RowBlock& block, const ShardPlan&) {
  Bytes bytes(static_cast<std::size_t>(block.rows) * sizeof(std::int64_t));
  auto* const ends = reinterpret_cast<std::int64_t*>(bytes.data());
  for (std::int64_t row = 0; row < block.rows; ++row) ends[row] = block.first_slot + block.slots_before(row + 1);
  return bytes;
}

/// A table of rows, or all their slots one after the other where they differ.
std::vector<std::int64_t> shape_of_slots(const ShardPlan& plan) {
  return plan.row_tokens > 0 ? std::vector<std::int64_t>{plan.rows, plan.row_tokens} : std::vector<std::int64_t>{plan.row_slots};
}

/// The values of a column and, for lists, where each segment's end.
void add_column(std::vector<Array>& arrays, const ShardPlan& plan, std::size_t number) {
  const Column& column = plan.columns[number];
  const auto encode_values = [number](RowBlock& block, const ShardPlan&) { return std::move(block.columns[number].bytes); };
  switch (column.kind) {
    case ColumnKind::token:
      arrays.push_back({column.name, column.type, shape_of_slots(plan), encode_values});
      return;
    case ColumnKind::sequence:
      arrays.push_back({column.name, column.type, {plan.segments}, encode_values});
      return;
    case ColumnKind::list:
    case ColumnKind::text:
      break;
  }
  const auto encode_ends = [number](RowBlock& block, const ShardPlan&) {
    const std::span<const std::byte> ends = std::as_bytes(std::span(block.columns[number].begin).subspan(1));
    return Bytes(ends.begin(), ends.end());
  };
  arrays.push_back({column.name, column.type, {plan.list_values[number]}, encode_values});
  arrays.push_back({column.name + std::string(kOffsetsSuffix), ValueType::i64, {plan.segments + 1}, encode_ends, true});
}

/// The files of a shard, sorted by name, as the manifest lists them.
std::vector<Array> arrays_of(const ShardPlan& plan) {
  constexpr std::int64_t kMaxU16 = std::numeric_limits<std::uint16_t>::max();
  const std::vector<std::int64_t> slots = shape_of_slots(plan), segments{plan.segments};
  const bool batches = plan.row_tokens == 0;
  ensure(!batches || !plan.derived, "segment and position ids are those of rows of one width");
  std::vector<Array> arrays;
  const bool derived = plan.slots && plan.derived;
  if (plan.slots)
    arrays.push_back({"input_ids", plan.id_type == IdType::u16 ? ValueType::u16 : ValueType::u32, slots, encode_ids});
  if (derived) {
    const std::int64_t last_position = std::int64_t{plan.position_start} + plan.row_tokens - 1;
    ensure(last_position <= std::numeric_limits<std::uint32_t>::max(), "position ids of at most 32 bits");
    if (last_position <= kMaxU16) {
      arrays.push_back({"position_ids", ValueType::u16, slots, encode_position_ids<std::uint16_t>});
    } else {
      arrays.push_back({"position_ids", ValueType::u32, slots, encode_position_ids<std::uint32_t>});
    }
  }
  arrays.push_back({batches ? "batch_offsets" : "row_offsets", ValueType::i64, {plan.rows + 1}, encode_row_offsets, true});
  if (batches) arrays.push_back({"batch_slot_offsets", ValueType::i64, {plan.rows + 1}, encode_slot_offsets, true});
  if (derived) {
    if (plan.max_segments_in_row <= kMaxU16) {
      arrays.push_back({"segment_ids", ValueType::u16, slots, encode_segment_ids<std::uint16_t>});
    } else {
      arrays.push_back({"segment_ids", ValueType::u32, slots, encode_segment_ids<std::uint32_t>});
    }
  }
  if (plan.write_added) arrays.push_back({"seq_added", ValueType::u8, segments, encode_seq_added});
  if (plan.begins) arrays.push_back({"seq_begin", ValueType::i64, segments, encode_seq_begin});
  arrays.push_back({"seq_lengths", ValueType::i32, segments, encode_seq_lengths});
  if (plan.write_slots) arrays.push_back({"seq_slots", ValueType::i32, segments, encode_seq_slots});
  arrays.push_back({"seq_source", ValueType::i64, {plan.segments, 3}, encode_seq_source});
  for (std::size_t column = 0; column < plan.columns.size(); ++column) add_column(arrays, plan, column);
  std::sort(arrays.begin(), arrays.end(), [](const Array& a, const Array& b) { return a.stem < b.stem; });
  return arrays;
}

class NativeSink final : public RowSink {
 public:
  explicit NativeSink(const ShardPlan& plan) : plan_(plan), arrays_(arrays_of(plan)) {
    ensure(plan.zstd_level >= 0 && plan.zstd_level <= ZstdCompressor::max_level(), "a zstd level that exists");
    make_folder(plan_.folder);
    EncodedBlock heads;
    for (const Array& array : arrays_) {
      std::string name = fmt::format("{}.npy{}", array.stem, compressed() ? ".zst" : "");
      const std::string path = fmt::format("{}/{}", plan_.folder, name);
      std::string head = make_npy_header(info(array.type).numpy, array.shape);
      const std::int64_t bytes_of_all =
          std::ssize(head) + NpyHeader{"", false, array.shape, 0}.elements() * info(array.type).bytes;
      outputs_.push_back({std::move(name), HashedFile(path, compressed() ? 0 : bytes_of_all), ZstdSeekTable(), 0});
      if (array.leading_zero) head.append(static_cast<std::size_t>(info(array.type).bytes), '\0');
      const std::span<const std::byte> bytes = std::as_bytes(std::span(head));
      heads.parts.push_back({heads.parts.size(), Bytes(bytes.begin(), bytes.end())});
    }
    compress(heads);
    write(std::move(heads));
  }

  EncodedBlock encode(RowBlock&& block) const override {
    EncodedBlock encoded;
    for (const Array& array : arrays_) encoded.parts.push_back({encoded.parts.size(), array.encode(block, plan_)});
    compress(encoded);
    return encoded;
  }

  void write(EncodedBlock&& block) override {
    for (const EncodedPart& part : block.parts) {
      Output& output = outputs_[part.file];
      output.content_bytes += compressed() ? output.seek_table.add(part.bytes) : static_cast<std::int64_t>(part.bytes.size());
      output.file.append(part.bytes);
    }
  }

  std::vector<ManifestFile> finish() override {
    std::vector<ManifestFile> files;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      Output& output = outputs_[i];
      const NpyHeader header{std::string(info(arrays_[i].type).numpy), false, arrays_[i].shape, 0};
      const auto head_bytes = static_cast<std::int64_t>(make_npy_header(header.descr, header.shape).size());
      ensure(output.content_bytes == head_bytes + header.elements() * info(arrays_[i].type).bytes,
             "a shard holds the rows and segments that its plan says");
      if (compressed()) output.file.append(output.seek_table.bytes());
      files.push_back(output.file.finish(output.name));
    }
    sync_folder(plan_.folder);
    return files;
  }

 private:
  struct Output {
    std::string name;
    HashedFile file;
    ZstdSeekTable seek_table;        // stays empty when not compressed
    std::int64_t content_bytes = 0;  // before compression
  };

  bool compressed() const { return plan_.zstd_level > 0; }

  /// Make each part a frame of its own.
  void compress(EncodedBlock& block) const {
    if (!compressed()) return;
    ZstdCompressor compressor(plan_.zstd_level);
    for (EncodedPart& part : block.parts) part.bytes = compressor.frame(part.bytes);
  }

  const ShardPlan plan_;
  const std::vector<Array> arrays_;
  std::vector<Output> outputs_;  // one for each of arrays_
};

}  // namespace

std::unique_ptr<RowSink> make_native_sink(const ShardPlan& plan) { return std::make_unique<NativeSink>(plan); }

}  // namespace shardpack
