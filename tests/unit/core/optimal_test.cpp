// The optimal packer and its proof. Across versions of the solver the strategies may differ; bounds may not, and gaps hardly.
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "shardpack/certificate.h"
#include "shardpack/packer.h"
#include "support/catch.h"
#include "support/shared_data.h"

using namespace shardpack;

namespace {
PackingPlan planned(const LengthHistogram& items, Length row_tokens, std::int32_t max_segments, const char* packer = "optimal") {
  PackerOptions options;
  options.row_tokens = row_tokens;
  options.max_segments = max_segments;
  return plan_packs(items, packer, options);  // which checks cover, row length, depth, bound and certificate
}

PackingPlan planned(const std::vector<LengthCount>& counts, Length row_tokens, std::int32_t max_segments) {
  return planned(LengthHistogram(counts), row_tokens, max_segments);
}

struct Expected {
  std::int32_t max_segments;
  std::int64_t bound;
};

void check_published(const LengthHistogram& items, Length row_tokens, std::int64_t most_gap, const std::vector<Expected>& table) {
  for (const Expected& expected : table) {
    INFO("at most " << expected.max_segments << " segments");
    const PackingPlan plan = planned(items, row_tokens, expected.max_segments);
    CHECK(plan.bound.rows == expected.bound);
    CHECK(plan.gap() <= most_gap);
    CHECK((plan.bound.kind == BoundKind::lp) == (plan.certificate.scale > 0));
    if (plan.bound.kind != BoundKind::lp) continue;

    CHECK(bound_of(plan.certificate, items) == expected.bound);
    PackingPlan tampered = plan;
    tampered.certificate.scale -= tampered.certificate.scale / 1'000'000;
    CHECK_FALSE(check_certificate(tampered, items).empty());
    tampered = plan;
    tampered.certificate.prices[tampered.certificate.prices.size() / 2].second += tampered.certificate.scale / 1'000;
    CHECK_FALSE(check_certificate(tampered, items).empty());
  }
}
}  // namespace

TEST_CASE("optimal: Wikipedia, 512 tokens, within one row of the bound at any depth", "[published]") {
  const std::optional<LengthHistogram> wikipedia = published_histogram("wikipedia_bert_512.csv");
  if (!wikipedia) {
    WARN(kNoSharedData);
    return;
  }
  check_published(*wikipedia, 512, 1,
                  {{0, 8'135'727}, {2, 10'099'081}, {3, 8'143'829}, {4, 8'135'727}, {8, 8'135'727}, {16, 8'135'727}});
}

TEST_CASE("optimal: SQuAD 1.1, 384 tokens, as few rows as there can be", "[published]") {
  const std::optional<LengthHistogram> squad = published_histogram("squad_1_1_384.csv");
  if (!squad) {
    WARN(kNoSharedData);
    return;
  }
  check_published(*squad, 384, 0, {{0, 40'195}, {2, 45'335}, {3, 40'195}, {4, 40'195}, {8, 40'195}, {16, 40'195}});
}

TEST_CASE("optimal: thirds and quarters that best fit gets wrong") {
  // Best fit puts 6 with 4 and 3 with 3 3: 3 rows; 6 3 and 4 3 3 are 2.
  CHECK(planned({{3, 3}, {4, 1}, {6, 1}}, 10, 0).rows() == 2);
  // Triplets that fill a row: the bound by slots is met.
  CHECK(planned({{380, 100}, {310, 200}, {490, 50}, {255, 100}}, 1000, 0).gap() == 0);
  const PackingPlan plan = planned({{251, 3'000}, {334, 3'000}, {501, 3'000}}, 1000, 0);
  CHECK(plan.gap() == 0);
  CHECK(plan.bound.kind == BoundKind::lp);  // slots alone prove 3,258, thresholds 3,258; the truth is over 500 rows more
}

TEST_CASE("optimal: extremes") {
  const std::int64_t many = 1'000'000'000'000;
  CHECK(planned(std::vector<LengthCount>{}, 16, 0).rows() == 0);
  CHECK(planned({{5, 10}}, 16, 0).rows() == 4);
  CHECK(planned({{16, many}}, 16, 0).rows() == many);
  CHECK(planned({{9, 10}, {16, 10}}, 16, 0).rows() == 20);
  CHECK(planned({{1, 7}}, 1, 0).rows() == 7);
  CHECK(planned({{1, 7}, {2, 7}}, 3, 1).rows() == 14);
  CHECK(planned({{1, many}}, 16, 1'000).rows() == many / 16);
  CHECK(planned({{3, many}, {5, many}, {7, many}}, 16, 0).gap() <= 1);
  const PackingPlan trillions = planned({{1, many}, {37, many}, {170, many}, {255, many}, {400, many}}, 512, 0);
  CHECK(trillions.gap() <= 1);
  CHECK(trillions.bound.kind == BoundKind::lp);
}

TEST_CASE("optimal: lengths with a common divisor are packed in its units, and proven so") {
  const std::vector<LengthCount> small{{3, 301}, {4, 107}, {5, 333}, {7, 205}},
      large{{48, 301}, {64, 107}, {80, 333}, {112, 205}};
  const PackingPlan plan = planned(small, 11, 0), scaled = planned(large, 191, 0);  // 191 is 11 units and a rest
  CHECK(plan.rows() == scaled.rows());
  CHECK(plan.bound.rows == scaled.bound.rows);
  CHECK(scaled.gap() <= 1);
  if (scaled.certificate.scale > 0) CHECK(scaled.certificate.granularity == 16);
}

TEST_CASE("optimal: equal histograms give equal plans, and a stop is obeyed") {
  LengthHistogram items;
  for (int length = 20; length <= 100; ++length) items.add(length, 1 + length * 31 % 17);
  const PackingPlan first = planned(items, 150, 3), second = planned(items, 150, 3);
  CHECK(first.lengths == second.lengths);
  CHECK(first.count == second.count);
  CHECK(first.certificate == second.certificate);

  std::stop_source source;
  source.request_stop();
  PackerOptions options;
  options.row_tokens = 150;
  CHECK_THROWS_AS(plan_packs(items, "optimal", options, source.get_token()), Error);
}
