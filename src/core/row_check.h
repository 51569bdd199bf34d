// Is every row of a block what packed_row.h says? Shares no code with the layout; always run.
#pragma once

#include <cstdint>
#include <vector>

#include "shardpack/error.h"
#include "shardpack/packed_row.h"

namespace shardpack {

/// Segments ordered and whole, slots within the row, at most `max_segments` (0 = no limit), no empty segment, offsets rising.
/// `segment_multiple` 0: all segments of a row have equally many slots, as in padded batches.
std::vector<Issue> check_rows(const RowBlock& block, std::int32_t max_segments, Length segment_multiple);

}  // namespace shardpack
