// A value of the column that rows must not mix (--group-column).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

namespace shardpack {

/// Ordered: false, true, whole numbers, strings by their bytes.
using GroupKey = std::variant<bool, std::int64_t, std::string>;

/// Different values that a column may have: each has a plan of its own, and more of them are ids rather than groups.
inline constexpr std::size_t kMaxGroups = 65'536;

}  // namespace shardpack
