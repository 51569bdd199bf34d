// How a trainer spreads one row over devices, and what that asks of the segments in it.
#pragma once

#include <cstdint>
#include <optional>

#include "shardpack/types.h"

namespace shardpack {

struct Parallelism {
  std::int32_t context = 1;  ///< --cp: devices that share a row, each taking two pieces of every segment
  std::int32_t tensor = 1;   ///< --tp: devices that share a layer
  bool sequence = false;     ///< --sp: sequence parallel, along the tensor parallel devices

  friend bool operator==(const Parallelism&, const Parallelism&) = default;
};

/// The slots that every segment must be a multiple of: lcm(2 * context if context > 1, context * tensor if sequence parallel).
/// \throws Error{usage} for degrees below 1, and for sequence parallel without tensor parallel
Length segment_multiple_for(const Parallelism& parallelism);

/// What --segment-multiple, --cp, --tp and --sp come to together. A `given` multiple wins where the trainer can work with it.
/// \throws Error{usage} when it cannot, saying what to give
Length resolve_segment_multiple(std::optional<Length> given, const Parallelism& parallelism);

}  // namespace shardpack
