// The loops over token ids that take most of a scan's time, with a second form for processors that have AVX2. Both give the same
// numbers; which one runs is decided once, when the program asks the processor.
#pragma once

#include <cstdint>
#include <span>

namespace shardpack {

struct KeySums {
  std::uint64_t low = 0, high = 0;
};

struct IdRange {
  std::uint32_t least = 0, greatest = 0;
};

/// The forms that every processor runs.
namespace portable {
/// Sums of low[i] * (ids[i] + 1) and of high[i] * (ids[i] + 1), mod 2^64.
KeySums key_sums(const std::uint64_t* low, const std::uint64_t* high, std::span<const std::uint16_t> ids);
KeySums key_sums(const std::uint64_t* low, const std::uint64_t* high, std::span<const std::uint32_t> ids);
/// Of at least one id.
IdRange id_range(std::span<const std::uint16_t> ids);
IdRange id_range(std::span<const std::uint32_t> ids);
}  // namespace portable

#if defined(__x86_64__)
KeySums key_sums(const std::uint64_t* low, const std::uint64_t* high, std::span<const std::uint16_t> ids);
KeySums key_sums(const std::uint64_t* low, const std::uint64_t* high, std::span<const std::uint32_t> ids);
IdRange id_range(std::span<const std::uint16_t> ids);
IdRange id_range(std::span<const std::uint32_t> ids);
#else
using portable::id_range;
using portable::key_sums;
#endif

}  // namespace shardpack
