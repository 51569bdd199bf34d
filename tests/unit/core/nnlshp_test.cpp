// The least squares packer: published counts and better, and inputs that break the published code.
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "shardpack/packer.h"
#include "support/catch.h"
#include "support/shared_data.h"
#include "support/web_text.h"

using namespace shardpack;

namespace {
PackingPlan planned(const LengthHistogram& items, Length row_tokens, std::int32_t max_segments, const char* packer = "nnlshp",
                    NnlsWeights weights = NnlsWeights::paper) {
  PackerOptions options;
  options.row_tokens = row_tokens;
  options.max_segments = max_segments;
  options.nnls_weights = weights;
  return plan_packs(items, packer, options);  // which checks cover, row length, depth and bound
}

std::int64_t rows(const std::vector<LengthCount>& counts, Length row_tokens, std::int32_t max_segments) {
  return planned(LengthHistogram(counts), row_tokens, max_segments).rows();
}

bool same(const PackingPlan& a, const PackingPlan& b) {
  return a.lengths == b.lengths && a.begin == b.begin && a.count == b.count;
}
}  // namespace

TEST_CASE("nnlshp: fewer rows than published on Wikipedia, close to the least possible", "[published]") {
  const std::optional<LengthHistogram> wikipedia = published_histogram("wikipedia_bert_512.csv");
  if (!wikipedia) {
    WARN(kNoSharedData);
    return;
  }
  // Published: 8,155,059. The linear program's bound at depth 3: 8,143,829.
  for (const NnlsWeights weights : {NnlsWeights::paper, NnlsWeights::tokens}) {
    const PackingPlan plan = planned(*wikipedia, 512, 3, "nnlshp", weights);
    CHECK(plan.rows() >= 8'143'829);
    CHECK(plan.rows() <= 8'144'200);
    CHECK(stats(plan).max_segments_in_row <= 3);
  }
  CHECK(planned(*wikipedia, 512, 1).rows() == 16'279'552);
  CHECK(planned(*wikipedia, 512, 2).rows() == 10'099'081);  // optimal
}

TEST_CASE("nnlshp: fewer rows than published on SQuAD, close to the least possible", "[published]") {
  const std::optional<LengthHistogram> squad = published_histogram("squad_1_1_384.csv");
  if (!squad) {
    WARN(kNoSharedData);
    return;
  }
  // Published: 40,782 at depth 3 and 40,784 at depth 4. The bound of the linear program is 40,195.
  for (const std::int32_t max_segments : {0, 3, 4, 8}) {
    INFO(max_segments);
    const std::int64_t found = planned(*squad, 384, max_segments).rows();
    CHECK(found >= 40'195);
    CHECK(found <= 40'198);
  }
  CHECK(planned(*squad, 384, 2).rows() == 45'335);
}

TEST_CASE("nnlshp: few sequences, where rounding decides") {
  // The published code needs 18 rows for twenty sequences whose bound is 6.
  LengthHistogram twenty;
  for (const int length : {8, 15, 21, 30, 33, 42, 47, 55, 58, 60, 64, 71, 77, 85, 90, 96, 110, 120, 135, 150}) twenty.add(length);
  const PackingPlan plan = planned(twenty, 256, 3);
  CHECK(plan.rows() <= planned(twenty, 256, 3, "lpfhp").rows());
  CHECK(plan.rows() <= 8);
}

TEST_CASE("nnlshp: one length, full rows, halves, nothing, and counts of a million million") {
  const std::int64_t many = 1'000'000'000'000;
  CHECK(rows({{5, 10}}, 16, 0) == 4);
  CHECK(rows({{5, 10}}, 16, 2) == 5);
  CHECK(rows({{16, 10}}, 16, 0) == 10);
  CHECK(rows({{16, 10}}, 16, 1) == 10);
  CHECK(rows({{9, 10}, {16, 10}}, 16, 0) == 20);
  CHECK(rows({{1, 7}}, 1, 0) == 7);
  CHECK(rows({}, 16, 0) == 0);
  CHECK(rows({{16, many}}, 16, 0) == many);
  CHECK(rows({{6, many}, {10, many}}, 16, 0) == many);
  CHECK(rows({{4, many}, {5, many}, {7, many}}, 16, 3) == many);
  CHECK(rows({{1, many}}, 16, 1000) == many / 16);  // more depth than a row has room for
}

TEST_CASE("nnlshp: never more rows than best fit at the same depth, on lengths of many kinds") {
  LengthHistogram items;
  for (int length = 3; length <= 150; ++length) items.add(length, 1 + (length * 7919 % 97) * (150 - length) / 20);
  for (const std::int32_t depth : {1, 2, 3, 5}) {
    for (const Length row_tokens : {150, 400}) {
      INFO(depth << " in " << row_tokens);
      CHECK(planned(items, row_tokens, depth).rows() <= planned(items, row_tokens, depth, "lpfhp").rows());
    }
  }
  CHECK(same(planned(items, 400, 0), planned(items, 400, 3)));  // no limit means depth 3
}

TEST_CASE("nnlshp: rows of any length, in coarse lengths where all would be too many") {
  const LengthHistogram web = web_text(0, 1'000'000, {5.3, 0.9, 8, 8192});
  CHECK(planned(web, 8192, 3, "lpfhp").gap() > 100);
  CHECK(planned(web, 8192, 3).gap() <= 20);

  const LengthHistogram many = web_text(0, 300'000, {8.0, 1.5, 8, 131'072});
  CHECK(std::ssize(many.counts()) > 30'000);
  CHECK(planned(many, 131'072, 3).rows() < planned(many, 131'072, 3, "lpfhp").rows() * 99 / 100);

  // Deeper than its table can be.
  const LengthHistogram short_ones(std::vector<LengthCount>{{3, 1'000'000}, {1'000, 5}});
  CHECK(planned(short_ones, 131'072, 2000).rows() == planned(short_ones, 131'072, 2000, "lpfhp").rows());
}

TEST_CASE("nnlshp: equal histograms give equal plans, and a stop is obeyed") {
  LengthHistogram items;
  for (int length = 1; length <= 100; ++length) items.add(length, length * 31 % 17);
  CHECK(same(planned(items, 128, 3), planned(items, 128, 3)));

  std::stop_source source;
  source.request_stop();
  PackerOptions options;
  options.row_tokens = 128;
  CHECK_THROWS_AS(plan_packs(items, "nnlshp", options, source.get_token()), Error);
}
