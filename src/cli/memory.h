// The --memory budget.
#pragma once

#include <cstdint>
#include <string>

namespace shardpack {

inline constexpr const char* kStandardMemory = "256M";  ///< for blocks in flight, where no budget is given

/// "512M", "2G" or "25%" of what this process may use (the machine's memory, or its control group's limit if that is lower).
/// \throws Error{usage} for anything else, Error{limit} below the least that works, naming it
std::int64_t parse_memory(const std::string& text);

}  // namespace shardpack
