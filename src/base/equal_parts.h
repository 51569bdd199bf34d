// Numbers of things cut into parts that differ by one at most.
#pragma once

#include <cstdint>

#include "base/checked.h"

namespace shardpack {

/// Where part `part` of `parts` begins among `count` things; part number `parts` begins at their end. \throws Error{limit}
inline std::int64_t part_begin(std::int64_t count, std::int64_t part, std::int64_t parts) {
  return count / parts * part + checked_mul(count % parts, part, "the parts") / parts;
}

/// The part that thing number `place` of `count` is in: the last that begins at it or before. \throws Error{limit}
inline std::int64_t part_of(std::int64_t count, std::int64_t place, std::int64_t parts) {
  return (checked_mul(place + 1, parts, "the parts") - 1) / count;
}

}  // namespace shardpack
