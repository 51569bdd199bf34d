// Equal parts: they follow each other, differ by one at most, and everything is in the part that it lies in.
#include "base/equal_parts.h"

#include <limits>

#include "shardpack/error.h"
#include "support/catch.h"

using namespace shardpack;

TEST_CASE("equal parts hold everything once, and part_of finds the part") {
  for (std::int64_t count = 0; count <= 40; ++count) {
    for (std::int64_t parts = 1; parts <= 45; ++parts) {
      INFO(count << " in " << parts);
      REQUIRE(part_begin(count, 0, parts) == 0);
      REQUIRE(part_begin(count, parts, parts) == count);
      for (std::int64_t part = 0; part < parts; ++part) {
        const std::int64_t begin = part_begin(count, part, parts), end = part_begin(count, part + 1, parts);
        REQUIRE((end - begin == count / parts || end - begin == (count + parts - 1) / parts));
        for (std::int64_t place = begin; place < end; ++place) REQUIRE(part_of(count, place, parts) == part);
      }
    }
  }
}

TEST_CASE("parts of very many things") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  CHECK(part_begin(kMost, 1, 2) == kMost / 2);
  CHECK(part_begin(kMost, 3, 3) == kMost);
  constexpr std::int64_t kMany = std::int64_t{1} << 40;
  CHECK(part_of(kMany, kMany - 1, 1000) == 999);
  CHECK(part_of(kMany, kMany / 2 - 1, 2) == 0);
  CHECK(part_of(kMany, kMany / 2, 2) == 1);
  CHECK_THROWS_AS(part_of(kMost, kMost - 1, 2), Error);
}
