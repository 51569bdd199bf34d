// The loops over token ids that take most of a scan's time, in several forms for processors that can do more than others. All
// give the same numbers; which ones run is decided once, when the program asks the processor.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardpack {

struct KeySums {
  std::uint64_t low = 0, high = 0;
};

struct IdRange {
  std::uint32_t least = 0, greatest = 0;
};

/// Sums of low[i] * (ids[i] + 1) and of high[i] * (ids[i] + 1), mod 2^64.
KeySums key_sums(const std::uint64_t* low, const std::uint64_t* high, std::span<const std::uint16_t> ids);
KeySums key_sums(const std::uint64_t* low, const std::uint64_t* high, std::span<const std::uint32_t> ids);
/// Of at least one id.
IdRange id_range(std::span<const std::uint16_t> ids);
IdRange id_range(std::span<const std::uint32_t> ids);

/// One form of each of them.
struct IdLoops {
  const char* name;
  KeySums (*sums_u16)(const std::uint64_t* low, const std::uint64_t* high, std::span<const std::uint16_t> ids);
  KeySums (*sums_u32)(const std::uint64_t* low, const std::uint64_t* high, std::span<const std::uint32_t> ids);
  IdRange (*range_u16)(std::span<const std::uint16_t> ids);
  IdRange (*range_u32)(std::span<const std::uint32_t> ids);
};

/// Those that this processor runs, the fastest first; the last one runs on every processor.
std::vector<IdLoops> id_loops();

}  // namespace shardpack
