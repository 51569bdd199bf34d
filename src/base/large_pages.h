// Large pages for large memory: clearing and mapping one by one what fills a page of 2 MiB takes several times as long.
#pragma once

#include <cstddef>
#include <vector>

namespace shardpack {

/// Ask for large pages where whole ones lie inside these bytes, which are not written yet. Costs a system call; where the system
/// has none to give, or may give none, nothing changes. Thread-safe.
void prefer_large_pages(void* memory, std::size_t bytes);

/// Room for `count` elements, in large pages where there are any.
template <class T, class Allocator>
void reserve_large(std::vector<T, Allocator>& elements, std::size_t count) {
  elements.reserve(count);
  prefer_large_pages(elements.data() + elements.size(), (elements.capacity() - elements.size()) * sizeof(T));
}

}  // namespace shardpack
