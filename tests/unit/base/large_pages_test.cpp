// Large pages: room for elements, whatever the system has to give.
#include "base/large_pages.h"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "shardpack/byte_buffer.h"
#include "support/catch.h"

using namespace shardpack;

TEST_CASE("room in large pages leaves what is there as it is") {
  std::vector<std::int32_t> elements{1, 2, 3};
  reserve_large(elements, 4'000'001);
  CHECK(elements == std::vector<std::int32_t>{1, 2, 3});
  REQUIRE(elements.capacity() >= 4'000'001);
  const std::int32_t* const room = elements.data();
  elements.resize(4'000'001, 7);
  CHECK(elements.data() == room);
  CHECK(std::accumulate(elements.begin(), elements.end(), std::int64_t{0}) == 1 + 2 + 3 + 7 * std::int64_t{3'999'998});
}

TEST_CASE("large pages are asked for where whole ones lie inside, or not at all") {
  ByteBuffer buffer;
  reserve_large(buffer, 0);
  CHECK(buffer.empty());
  reserve_large(buffer, 100);
  reserve_large(buffer, 5 << 20);
  buffer.resize(5 << 20, std::byte{9});
  for (const std::size_t first : {std::size_t{0}, std::size_t{1}, std::size_t{2} << 20}) {
    prefer_large_pages(buffer.data() + first, buffer.size() - first);
    prefer_large_pages(buffer.data() + first, 1);
  }
  CHECK(buffer == ByteBuffer(5 << 20, std::byte{9}));
}
