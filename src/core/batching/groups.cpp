// Rank groups: batches that are alike go to the ranks of one step, so that none waits for another.
#include <algorithm>
#include <numeric>

#include "core/batching/steps.h"

namespace shardpack {

std::uint64_t cost_key(Length pad_length, std::int64_t size) {
  return static_cast<std::uint64_t>(pad_length) << 32 | static_cast<std::uint64_t>(std::min<std::int64_t>(size, 0xffffffff));
}

std::vector<std::uint32_t> order_groups(std::span<const std::uint64_t> keys, std::int64_t group_size, bool costliest_first,
                                        const RandomStream& stream) {
  std::vector<std::uint32_t> sorted(keys.size());
  std::iota(sorted.begin(), sorted.end(), 0U);
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });

  const auto size = static_cast<std::size_t>(group_size);
  std::vector<std::uint32_t> groups(keys.size() / size);
  std::iota(groups.begin(), groups.end(), 0U);
  stream.shuffle(std::span(groups));
  if (costliest_first && !groups.empty()) std::swap(groups.front(), *std::max_element(groups.begin(), groups.end()));

  std::vector<std::uint32_t> order;
  order.reserve(sorted.size());
  for (const std::uint32_t group : groups) {
    const auto first = sorted.begin() + static_cast<std::ptrdiff_t>(group * size);
    order.insert(order.end(), first, first + static_cast<std::ptrdiff_t>(size));
  }
  return order;
}

}  // namespace shardpack
