// Histograms for the quality table: seeded, and the same integers on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shardpack/length_histogram.h"
#include "shardpack/types.h"

namespace shardpack {

struct QualityCase {
  std::string name;
  LengthHistogram items;
  std::vector<Length> row_tokens;
  std::vector<std::int32_t> max_segments;  ///< 0 = no limit
};

/// Lengths as datasets have them, the hard classes of the bin packing literature, and extremes.
std::vector<QualityCase> generated_cases();

}  // namespace shardpack
