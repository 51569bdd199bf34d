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
