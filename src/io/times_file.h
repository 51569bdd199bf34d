// Measured training times, for batch --calibrate: a CSV file whose header says what was measured.
#pragma once

#include <string>
#include <vector>

#include "shardpack/batch_cost.h"

namespace shardpack {

/// Columns batch_size,pad_length,batches,seconds: so many batches of that size, padded to that length, took so long together.
/// Or padded_tokens,padded_squares,batches,seconds: a run with these sums over its batches. In any order; `minutes` for
/// `seconds`; blank lines and `#` comments are skipped. \throws Error{bad_data} with the line
std::vector<TimedWork> read_times(const std::string& path);

}  // namespace shardpack
