#include "core/packers/free_space_buckets.h"

#include <set>

#include "base/rng.h"
#include "support/catch.h"

using namespace shardpack;

TEST_CASE("the bit tree answers as an ordered set does, at every number of levels") {
  const RandomStream random(5, RandomPurpose::sample);
  std::uint64_t draw = 0;
  for (const std::int64_t size : {1, 2, 63, 64, 65, 4096, 4097, 262'145}) {
    BitTree tree(size);
    std::set<std::int64_t> set;
    const auto any = [&] { return static_cast<std::int64_t>(random.bounded(draw++, static_cast<std::uint64_t>(size))); };
    const auto check = [&](std::int64_t bound) {
      const auto found = set.lower_bound(bound);
      REQUIRE(tree.first_from(bound) == (found == set.end() ? -1 : *found));
      REQUIRE(tree.last() == (set.empty() ? -1 : *set.rbegin()));
    };
    check(0);
    check(size);
    for (int step = 0; step < 2000; ++step) {
      const std::int64_t member = any();
      if (random.bounded(draw++, 2) == 0) {
        tree.insert(member);
        set.insert(member);
      } else if (!set.empty()) {
        const std::int64_t present = *set.begin();  // the front goes, so that whole words run empty
        tree.erase(present);
        set.erase(present);
      }
      check(any());
      check(member);
    }
    check(0);
    check(size - 1);
    check(size);
  }
}

TEST_CASE("buckets are last in, first out, and reuse what was removed") {
  FreeSpaceBuckets buckets(100);
  CHECK(buckets.least_from(1) == -1);
  CHECK(buckets.most() == -1);
  const auto put = [&](Length free, std::int64_t rows) { buckets.put({rows, 0, free, 1, 0}); };
  put(40, 1);
  put(40, 2);
  put(100, 3);
  CHECK(buckets.least_from(1) == 40);
  CHECK(buckets.least_from(41) == 100);
  CHECK(buckets.least_from(101) == -1);
  CHECK(buckets.most() == 100);
  CHECK(buckets.pop(40).rows == 2);
  put(40, 4);
  CHECK(buckets.pop(40).rows == 4);
  CHECK(buckets.pop(40).rows == 1);
  CHECK(buckets.least_from(1) == 100);
  put(7, 5);
  put(7, 6);
  CHECK(buckets.pop(100).rows == 3);
  CHECK(buckets.most() == 7);
  CHECK(buckets.pop(7).rows == 6);
  CHECK(buckets.pop(7).rows == 5);
  CHECK(buckets.most() == -1);
}
