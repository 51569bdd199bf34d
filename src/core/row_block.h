// From an assignment to blocks of rows: where each segment's tokens go, what is added and padded around them, and their
// fingerprint.
#pragma once

#include <vector>

#include "core/fingerprint_keys.h"
#include "shardpack/assignment.h"
#include "shardpack/packed_row.h"
#include "shardpack/sequence_index.h"
#include "shardpack/sequence_source.h"

namespace shardpack {

/// Ids that the layout writes itself.
struct FillIds {
  std::uint32_t pad = 0, bos = 0, eos = 0;
};

/// Slots of the items of one row.
std::int64_t row_slots(const std::vector<Item>& items, const Assignment& assignment, std::int64_t row);

/// The segments of rows [first_row, first_row + rows) of `assignment`, ids allocated but not yet filled, and one request for each
/// segment with source tokens. `unslotted`: tokens of every item beyond its slots; `row_tokens` has room for them. 0 row_tokens:
/// each row is as wide as its items, and the block's first_slot is the caller's to set. Row and segment numbers of the block are
/// those of the assignment, less `shard_first_row`'s. `ids`: memory for the block's ids.
RowBlock lay_out_rows(const std::vector<Item>& items, const Assignment& assignment, const SequenceIndex& index, Length row_tokens,
                      IdType id_type, std::int64_t first_row, std::int64_t rows, std::int64_t shard_first_row,
                      std::vector<TokenRequest>& requests, Length unslotted = 0, ByteBuffer ids = {});

/// Where each segment's source tokens lie (SequenceSource::place_in_file()); -1 where they do not lie together, and for none.
std::vector<std::int64_t> places_in_files(const RowBlock& block, const SequenceSource& source);

/// Read the values of all columns for a block that is laid out: those of tokens at the places of `requests`, those of whole
/// sequences for each segment, and those of single tokens (Column::places) for the segment that has the token, the places as
/// slots of the row. `first_values`: for columns of kind list and text, the values of the shard's segments before.
void read_columns(const SequenceSource& source, std::span<const TokenRequest> requests,
                  std::span<const std::int64_t> first_values, RowBlock& block);

/// Write added tokens and padding around the source tokens, and fill_value() there in the columns.
void fill_gaps(RowBlock& block, const FillIds& fill, std::span<const Column> columns = {});

/// What whole sequences have of columns counts once for each sequence: at the segment with its first token, or at any when
/// sequences have one segment alone and it may begin later (truncated at the start).
constexpr bool counts_whole_sequence(std::int64_t first_token, std::int64_t tokens, bool single_segments) {
  return single_segments || (first_token == 0 && tokens > 0);  // concat may cut just behind an added BOS
}

/// Of all source tokens in the block, and of all that the columns hold for them, read back through the source map.
Fingerprint fingerprint_of(const RowBlock& block, const DatasetKeys& keys, const SequenceIndex& index,
                           std::span<const Column> columns = {}, bool single_segments = false);

/// Of what sequence number `i` of `values` has of a column that is not of kind token.
Fingerprint fingerprint_of_sequence(const Column& column, const ColumnValues& values, std::size_t i, const FingerprintKeys& keys,
                                    SequenceId record);

/// read_columns() and fill_gaps() of the dataset's loss_column() alone.
void read_loss_column(const SequenceSource& source, std::span<const TokenRequest> requests, RowBlock& block);

/// Tokens of each row that take part in the loss, by the dataset's loss_column(); none where there is no such column.
std::vector<std::int64_t> loss_tokens_of(const RowBlock& block, std::span<const Column> columns);

}  // namespace shardpack
