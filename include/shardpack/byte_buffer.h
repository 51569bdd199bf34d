// Bytes of a block, allocated without being zeroed: every one of them is written before it is read, and clearing gigabytes first
// would cost as much as filling them.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace shardpack {

/// std::allocator, but elements made without arguments stay uninitialized.
template <class T>
struct UninitializedAllocator : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = UninitializedAllocator<U>;
  };
  template <class U>
  void construct(U* place) noexcept {
    ::new (static_cast<void*>(place)) U;
  }
  template <class U, class First, class... Rest>
  void construct(U* place, First&& first, Rest&&... rest) {
    ::new (static_cast<void*>(place)) U(std::forward<First>(first), std::forward<Rest>(rest)...);
  }
};

using ByteBuffer = std::vector<std::byte, UninitializedAllocator<std::byte>>;

}  // namespace shardpack
