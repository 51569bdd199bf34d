// Lines of memory that are on their way to the cache before they are needed. The processor looks ahead by itself, but not beyond
// a page of 4 KiB, nor to places that do not follow each other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardpack {

inline constexpr std::size_t kCacheLineBytes = 64;

/// Fetch the lines that begin in these bytes, which need not be memory of the program: that changes nothing.
inline void prefetch_to_read(std::uintptr_t begin, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kCacheLineBytes) __builtin_prefetch(reinterpret_cast<const void*>(begin + at), 0, 2);
  asm volatile("");  // g++ leaves out calls of what does nothing but fetch
}

/// The same for bytes that are to be overwritten.
inline void prefetch_to_write(std::uintptr_t begin, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kCacheLineBytes) __builtin_prefetch(reinterpret_cast<const void*>(begin + at), 1, 3);
  asm volatile("");
}

}  // namespace shardpack
