// Histogram files: CSV "length,count", JSON {"schema":1,"counts":{...}}, a plain list of lengths, or a 1-D integer .npy of
// lengths.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shardpack/length_histogram.h"

namespace shardpack {

/// The histogram in `path` ("-" = standard input), or nothing when the file is not one by content (then it is a shard).
/// A grouped histogram (third CSV column "group") is refused here: Error{usage}.
/// \throws Error{bad_data} with the line for a negative number, a fraction, a missing count, an unknown column.
std::optional<LengthHistogram> read_histogram(const std::string& path);

/// CSV text with header, ascending lengths.
std::string histogram_to_csv(const LengthHistogram& histogram);
std::string histogram_to_json(const LengthHistogram& histogram);

}  // namespace shardpack
