#include "base/large_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace shardpack {

void prefer_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr std::uintptr_t kPageBytes = 2 << 20;
  const auto begin = (reinterpret_cast<std::uintptr_t>(memory) + kPageBytes - 1) / kPageBytes * kPageBytes;
  const auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / kPageBytes * kPageBytes;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace shardpack
