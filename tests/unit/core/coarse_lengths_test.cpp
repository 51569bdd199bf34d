#include "core/coarse_lengths.h"

#include <vector>

#include "core/packers/packer_list.h"
#include "shardpack/packer.h"
#include "support/catch.h"

using namespace shardpack;

TEST_CASE("coarse lengths are rounded either way") {
  const std::vector<LengthCount> counts{{1, 5}, {3, 7}, {4, 1}, {7, 2}, {8, 3}, {9, 4}, {11, 1}, {12, 2}, {13, 1}, {14, 6}};
  const CoarseLengths coarse(LengthHistogram(counts), 14, 4);
  CHECK(coarse.row_units() == 3);
  CHECK(coarse.rounded_down().counts() == std::vector<LengthCount>{{1, 3}, {2, 8}, {3, 9}});
  CHECK(coarse.rounded_up().counts() == std::vector<LengthCount>{{1, 13}, {2, 5}, {3, 14}});  // 13 and 14: all of a row
}

TEST_CASE("a plan of coarse lengths becomes one of the real lengths") {
  LengthHistogram items;
  for (int length = 1; length <= 1000; ++length) items.add(length, 1 + length * 7919 % 13);
  for (const std::int32_t granularity : {1, 2, 7, 30, 333, 1000}) {
    INFO("granularity " << granularity);
    const CoarseLengths coarse(items, 1000, granularity);
    PackerOptions options;
    options.row_tokens = coarse.row_units();
    options.max_segments = 5;
    const PackingPlan packed = plan_packs(coarse.rounded_up(), "lpfhp", options);
    PackingPlan plan = coarse.expanded(packed);
    plan.row_tokens = 1000;
    plan.max_segments = 5;
    CHECK(plan.rows() == packed.rows());
    CHECK(check_exact_cover(plan, items).empty());
  }
}

TEST_CASE("long rows: optimal works in coarse lengths, and proves what it says of the real ones") {
  // Triplets that fill rows of a million slots: best fit wastes one row in six of them.
  LengthHistogram items;
  const Length row_tokens = 1'048'573;
  std::int64_t triplets = 0;
  for (std::int64_t i = 0; i < 600; ++i, ++triplets) {
    const std::int64_t first = 400'009 + i * 157, second = 270'001 + i * i * 31 % 50'000;
    for (const std::int64_t length : {first, second, row_tokens - first - second}) items.add(length);
  }
  PackerOptions options;
  options.row_tokens = row_tokens;
  const PackingPlan plan = plan_packs(items, "optimal", options);
  CHECK(plan.bound.rows == triplets);
  CHECK(plan.gap() <= 6);
  CHECK(plan_packs(items, "lpfhp", options).gap() >= 60);

  // With a limit of segments the linear program proves more than the simple bounds do.
  items = {};
  for (std::int64_t i = 0; i < 2'000; ++i) items.add(1'000 + i * i * 7919 % 400'003);
  options.max_segments = 4;
  const PackingPlan limited = plan_packs(items, "optimal", options);
  CHECK(limited.gap() * 50 <= limited.rows());
  if (limited.bound.kind == BoundKind::lp) CHECK(limited.certificate.granularity > 1);
}
