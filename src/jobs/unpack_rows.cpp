#include "jobs/unpack_rows.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/placed_values.h"
#include "exec/ordered_map.h"
#include "io/packed_rows.h"

namespace shardpack {

namespace {

constexpr std::int64_t kBlockSlots = std::int64_t{1} << 18;

/// Puts what a block holds into the spool. Thread-safe.
class BlockScatter {
 public:
  /// \param first_segment  of the shard in the partition
  BlockScatter(const UnpackSetup& setup, const ManifestPartition& partition, const PartitionLayout& layout,
               const RecordSpool& spool, std::int64_t first_segment)
      : setup_(setup), partition_(partition), layout_(layout), spool_(spool), first_segment_(first_segment) {}

  /// \return the fingerprint of the block
  Fingerprint scatter(const RowBlock& block) const {
    Fingerprint total;
    for (std::int64_t row = 0; row < block.rows; ++row) {
      std::int64_t slot = row * block.row_tokens;
      for (std::int64_t s = block.row_begin[static_cast<std::size_t>(row)];
           s < block.row_begin[static_cast<std::size_t>(row) + 1]; ++s) {
        const RowSegment& segment = block.segments[static_cast<std::size_t>(s)];
        total += take_segment(block, static_cast<std::size_t>(s), row, slot + (segment.added & kAddedBos));
        slot += segment.slots;
      }
    }
    return total;
  }

 private:
  /// \param slot  of its first source token, in the block
  Fingerprint take_segment(const RowBlock& block, std::size_t s, std::int64_t row, std::int64_t slot) const {
    const RowSegment& segment = block.segments[s];
    const SequenceId sequence = setup_.first_sequence[static_cast<std::size_t>(segment.file)] + segment.record;
    const auto number = static_cast<std::size_t>(first_segment_ + block.first_segment) + s;
    const std::int64_t destination = layout_.destination[number];
    const std::uint32_t place = layout_.place[static_cast<std::size_t>(sequence - partition_.sequences.first())];

    const ValueType id_type = block.id_type == IdType::u16 ? ValueType::u16 : ValueType::u32;
    Fingerprint total = copy_tokens(spool_.ids, id_type, setup_.keys.ids, block.ids, segment, sequence, slot, destination);
    for (std::size_t c = 0; c < block.columns.size(); ++c) {
      const RecordSpool::Values& values = spool_.columns[c];
      const FingerprintKeys& keys = setup_.keys.columns[c];
      if (values.column.kind == ColumnKind::token) {
        total += copy_tokens(values.file, values.column.type, keys, block.columns[c].bytes, segment, sequence, slot, destination);
        continue;
      }
      if (is_placed(values.column)) {
        const std::int64_t token_0 = slot - row * block.row_tokens - segment.first_token;
        total += copy_placed(c, block, s, token_0, sequence, layout_.values[c][number]);
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

  /// Values that belong to tokens; slots become places of the record again.
  /// \param token_0  the slot of the record's first token, if it were in the row
  Fingerprint copy_placed(std::size_t c, const RowBlock& block, std::size_t s, std::int64_t token_0, SequenceId sequence,
                          std::int64_t destination) const {
    const RecordSpool::Values& values = spool_.columns[c];
    const std::span<const Column> columns = setup_.dataset.manifest().columns;
    const std::size_t where = places_column(columns, values.column);
    const auto part = [&](std::size_t column) {
      const ColumnValues& stored = block.columns[column];
      const auto bytes = static_cast<std::size_t>(info(columns[column].type).bytes);
      return std::span(stored.bytes)
          .subspan(static_cast<std::size_t>(stored.begin[s] - stored.begin.front()) * bytes,
                   static_cast<std::size_t>(stored.begin[s + 1] - stored.begin[s]) * bytes);
    };
    std::vector<std::int64_t> places = whole_numbers(columns[where].type, part(where));
    const RowSegment& segment = block.segments[s];
    for (std::int64_t& place : places) {
      place -= token_0;
      if (place < segment.first_token || place - segment.first_token >= segment.tokens)
        fail_to_unpack(columns[where].name, "a slot that has no token of its segment");
    }
    const int width = info(values.column.type).bytes;
    const std::span<const std::byte> stored = part(c);
    ByteBuffer own(stored.begin(), stored.end());
    if (own.size() != places.size() * static_cast<std::size_t>(width))
      fail_to_unpack(values.column.name, "not a value for each slot");
    if (c == where) store_whole_numbers(places, values.column.type, own);
    values.file.write_at(destination * width, own);
    return setup_.keys.columns[c].of_placed(sequence, places, values.column.type, own.data());
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

  const UnpackSetup& setup_;
  const ManifestPartition& partition_;
  const PartitionLayout& layout_;
  const RecordSpool& spool_;
  const std::int64_t first_segment_;
};

}  // namespace

Fingerprint scatter_rows(const UnpackSetup& setup, const ManifestPartition& partition,
                         const std::vector<const ManifestShard*>& shards, const PartitionLayout& layout,
                         const RecordSpool& spool) {
  Fingerprint total;
  std::int64_t first_segment = 0;
  for (const ManifestShard* shard : shards) {
    const PackedRows rows(setup.dataset, *shard, true, setup.source);
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

}  // namespace shardpack
