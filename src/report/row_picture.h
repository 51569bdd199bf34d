// One row of a packed dataset as a picture in text.
#pragma once

#include <cstddef>
#include <string>

#include "shardpack/inspect.h"

namespace shardpack {

/// The character that stands for segment `s` (from 0): 1 to 9, a to z, A to Z, and again.
char segment_mark(std::size_t s);

/// A bar of at most 80 columns, every column with the mark of the segment that has most of its slots, '.' where most are padding,
/// and a ruler of slots below.
std::string row_picture(const RowView& row);

}  // namespace shardpack
