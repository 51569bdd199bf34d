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

/// The segments of rows [first_row, first_row + rows) of `assignment`, ids allocated but not yet filled, and one request for each
/// segment with source tokens. Row and segment numbers of the block are those of the assignment, less `shard_first_row`'s.
RowBlock lay_out_rows(const std::vector<Item>& items, const Assignment& assignment, const SequenceIndex& index, Length row_tokens,
                      IdType id_type, std::int64_t first_row, std::int64_t rows, std::int64_t shard_first_row,
                      std::vector<TokenRequest>& requests);

/// Write added tokens and padding around the source tokens.
void fill_gaps(RowBlock& block, const FillIds& fill);

/// Of all source tokens in the block, read back from its ids through the source map.
Fingerprint fingerprint_of(const RowBlock& block, const FingerprintKeys& keys, const SequenceIndex& index);

}  // namespace shardpack
