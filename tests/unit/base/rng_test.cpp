// Known answers of Philox 4x32-10 from the Random123 distribution's kat_vectors.
#include "base/rng.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "support/catch.h"

using namespace shardpack;

TEST_CASE("philox matches its published known answers") {
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("bounded draws stay below the bound and a shuffle is a permutation") {
  const RandomStream stream(7, RandomPurpose::members);
  for (std::uint64_t i = 0; i < 1000; ++i) CHECK(stream.bounded(i, 3) < 3);
  std::vector<int> items(100);
  std::iota(items.begin(), items.end(), 0);
  std::vector<int> shuffled = items;
  stream.shuffle(std::span(shuffled));
  CHECK(shuffled != items);
  std::sort(shuffled.begin(), shuffled.end());
  CHECK(shuffled == items);
}

TEST_CASE("many values at once are the single ones, and a shuffle swaps by single draws from the end") {
  const RandomStream stream(0x123456789, RandomPurpose::members, 5);
  const std::uint64_t first_index = 0xffffffff - 300;  // past 32 bits
  for (const std::size_t count : {0u, 1u, 7u, 8u, 9u, 255u, 256u, 257u, 1000u}) {
    INFO(count);
    std::vector<std::uint64_t> values(count);
    stream.values(first_index, values);
    std::vector<std::size_t> shuffled(count), expected(count);
    std::iota(shuffled.begin(), shuffled.end(), std::size_t{0});
    std::iota(expected.begin(), expected.end(), std::size_t{0});
    bool same = true;
    for (std::size_t i = 0; i < count; ++i) same = same && values[i] == stream.value(first_index + i);
    CHECK(same);
    for (std::size_t i = count; i > 1; --i) std::swap(expected[i - 1], expected[stream.bounded(first_index + i - 1, i)]);
    stream.shuffle(std::span(shuffled), first_index);
    CHECK(shuffled == expected);
  }
}
