// Both forms of the loops over ids against numbers of 128 bits and the standard library, at every length around a vector's width.
#include "core/id_loops.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "base/wide.h"
#include "support/catch.h"

namespace shardpack {
namespace {

std::uint64_t expected_sum(std::span<const std::uint64_t> keys, std::span<const std::uint64_t> ids) {
  Uint128 sum = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) sum += static_cast<Uint128>(keys[i]) * ids[i] + keys[i];
  return static_cast<std::uint64_t>(sum);
}

template <class Id>
void check_all_lengths() {
  std::mt19937_64 random(7);
  constexpr std::size_t kMost = 67;
  std::vector<std::uint64_t> low(kMost), high(kMost);
  std::vector<Id> ids(kMost);
  for (std::size_t length = 0; length <= kMost; ++length) {
    for (std::uint64_t& key : low) key = random();
    for (std::uint64_t& key : high) key = random();
    for (Id& id : ids) id = static_cast<Id>(random());
    if (length > 0) ids[random() % length] = std::numeric_limits<Id>::max();
    const std::span<const Id> part = std::span<const Id>(ids).first(length);
    const std::vector<std::uint64_t> wide(part.begin(), part.end());
    INFO("length " << length);
    for (const KeySums sums : {key_sums(low.data(), high.data(), part), portable::key_sums(low.data(), high.data(), part)}) {
      CHECK(sums.low == expected_sum(low, wide));
      CHECK(sums.high == expected_sum(high, wide));
    }
    if (length == 0) continue;
    for (const IdRange range : {id_range(part), portable::id_range(part)}) {
      CHECK(range.least == *std::min_element(wide.begin(), wide.end()));
      CHECK(range.greatest == *std::max_element(wide.begin(), wide.end()));
    }
  }
}

TEST_CASE("sums of keys and ids are the same for every processor", "[id_loops]") {
  check_all_lengths<std::uint16_t>();
  check_all_lengths<std::uint32_t>();
}

}  // namespace
}  // namespace shardpack
