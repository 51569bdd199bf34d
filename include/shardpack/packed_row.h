// What a packed row is, said once.
//
// A row has row_tokens slots. Its segments lie one after the other from slot 0, each in `slots` slots of which the first
// `length()` hold tokens: an added BOS, the source tokens, an added EOS. Every other slot is padding.
//   token ids     padding holds the pad id. A real token may equal it: boundaries come from lengths, never from ids.
//   segment ids   1..k in row order; 0 on padding, inside a segment's slots as well as at the row's end.
//   position ids  position_start, +1, ... in every segment; 0 on padding.
//   columns       a value for each source token; fill_value() on padding and on added tokens. What belongs to a whole sequence
//                 belongs to each of its segments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shardpack/byte_buffer.h"
#include "shardpack/column.h"
#include "shardpack/item.h"
#include "shardpack/types.h"

namespace shardpack {

/// One segment of a row and where its tokens came from.
struct RowSegment {
  std::int32_t file = 0;         ///< index into the manifest's sources
  std::int64_t record = 0;       ///< record number in that file
  std::int64_t first_token = 0;  ///< of that record, counted after padding was removed
  Length tokens = 0;             ///< source tokens
  Length slots = 0;
  std::uint8_t added = 0;  ///< kAddedBos | kAddedEos

  Length length() const { return tokens + (added & 1) + (added >> 1); }
};

/// A run of whole rows, ready to be encoded. Boundaries are carried as lengths.
struct RowBlock {
  std::int64_t first_row = 0;      ///< in its shard
  std::int64_t first_segment = 0;  ///< in its shard
  std::int64_t rows = 0;
  Length row_tokens = 0;                ///< slots of each; 0: as many as its segments have, as in batches
  IdType id_type = IdType::u16;         ///< u16 or u32
  ByteBuffer ids;                       ///< rows * row_tokens ids, complete with added tokens and padding
  std::vector<std::int64_t> row_begin;  ///< rows + 1 entries into segments, the first 0
  std::vector<RowSegment> segments;
  std::vector<std::int64_t> slot_begin{};  ///< where row_tokens is 0: rows + 1 places of the rows' slots, the first 0
  std::int64_t first_slot = 0;             ///< the same: in its shard
  std::vector<std::int64_t> begins{};      ///< instead of ids: places_in_files(), one a segment
  std::vector<ColumnValues> columns;       ///< one for each of the dataset's columns: values of slots, or of segments

  /// Where a row's slots begin in the block; those of row number `rows`, where they end.
  std::int64_t slots_before(std::int64_t row) const {
    return row_tokens > 0 ? row * row_tokens : slot_begin[static_cast<std::size_t>(row)];
  }
  std::int64_t slots() const { return slots_before(rows); }
};

/// Fill `out` (row_tokens entries) with the segment ids, or the position ids, of one row. Id is std::uint16_t or std::uint32_t.
template <class Id>
void fill_segment_ids(std::span<const RowSegment> segments, std::span<Id> out);
template <class Id>
void fill_position_ids(std::span<const RowSegment> segments, std::uint32_t position_start, std::span<Id> out);

}  // namespace shardpack
