// Small cases with their exact plans, and inputs made to break packers.
#include <stop_token>
#include <string>
#include <vector>

#include "shardpack/packer.h"
#include "support/catch.h"

using namespace shardpack;

namespace {
PackerOptions options(Length row_tokens, std::int32_t max_segments) {
  PackerOptions result;
  result.row_tokens = row_tokens;
  result.max_segments = max_segments;
  return result;
}

/// "rows x lengths" of every strategy: "3x 7 2; 1x 4".
std::string text(const PackingPlan& plan) {
  std::string result;
  for (std::int64_t s = 0; s < plan.strategies(); ++s) {
    if (s > 0) result += "; ";
    result += std::to_string(plan.count[static_cast<std::size_t>(s)]) + "x";
    for (const Length length : plan.strategy(s)) result += " " + std::to_string(length);
  }
  return result;
}

std::string planned(const char* packer, const std::vector<LengthCount>& counts, Length row_tokens,
                    std::int32_t max_segments = 0) {
  return text(plan_packs(LengthHistogram(counts), packer, options(row_tokens, max_segments)));
}

std::vector<const PackerInfo*> histogram_packers() {
  std::vector<const PackerInfo*> result;
  for (const PackerInfo& packer : packers()) {
    if (!packer.input_order) result.push_back(&packer);
  }
  return result;
}
}  // namespace

TEST_CASE("each packer chooses by its own rule") {
  const std::vector<LengthCount> counts{{2, 1}, {4, 2}, {7, 1}};
  CHECK(planned("none", counts, 10) == "1x 7; 2x 4; 1x 2");
  CHECK(planned("sorted-greedy", counts, 10) == "1x 7; 1x 4 4 2");
  CHECK(planned("ffd", counts, 10) == "1x 7 2; 1x 4 4");        // the row opened first
  CHECK(planned("bfd", counts, 10) == "1x 7; 1x 4 4 2");        // the tightest row
  CHECK(planned("lpfhp", counts, 10) == "1x 7; 1x 4 4 2");      // the tightest row
  CHECK(planned("spfhp", counts, 10) == "1x 7; 1x 4 2; 1x 4");  // a row for each 4, then the emptiest row
}

TEST_CASE("ties between equally full rows: the last touched in lpfhp, the first opened in bfd") {
  const std::vector<LengthCount> counts{{1, 1}, {3, 1}, {6, 1}, {9, 1}};
  CHECK(planned("lpfhp", counts, 10) == "1x 9; 1x 6 3 1");
  CHECK(planned("bfd", counts, 10) == "1x 9 1; 1x 6 3");
}

TEST_CASE("counts split strategies") {
  // Ten rows of 6; seven 4s enter seven of them; then 3s enter the other three, and share new rows by threes.
  const std::vector<LengthCount> counts{{3, 10}, {4, 7}, {6, 10}};
  for (const char* packer : {"lpfhp", "bfd", "ffd"}) CHECK(planned(packer, counts, 10) == "7x 6 4; 3x 6 3; 2x 3 3 3; 1x 3");
  CHECK(planned("spfhp", counts, 10) == "7x 6 4; 3x 6 3; 7x 3");
  CHECK(planned("sorted-greedy", counts, 10) == "1x 6 4; 9x 6; 3x 4 4; 3x 3 3 3; 1x 3");
}

TEST_CASE("the segment limit closes rows, and one beyond the row length is no limit") {
  const std::vector<LengthCount> counts{{1, 10}, {6, 2}};
  CHECK(planned("none", counts, 10, 2) == "2x 6; 10x 1");
  for (const char* packer : {"lpfhp", "bfd", "ffd"}) {
    CHECK(planned(packer, counts, 10, 3) == "2x 6 1 1; 2x 1 1 1");
    CHECK(planned(packer, counts, 10, 100) == "2x 6 1 1 1 1; 1x 1 1");
    CHECK(planned(packer, counts, 10, 0) == "2x 6 1 1 1 1; 1x 1 1");
  }
  CHECK(planned("spfhp", counts, 10, 3) == "2x 6 1 1; 6x 1");
  CHECK(planned("spfhp", counts, 10, 0) == "2x 6 1 1 1 1; 2x 1");
  CHECK(planned("sorted-greedy", counts, 10, 3) == "1x 6 1 1; 1x 6; 2x 1 1 1; 1x 1 1");
  CHECK(planned("sorted-greedy", counts, 10, 0) == "1x 6 1 1 1 1; 1x 6; 1x 1 1 1 1 1 1");
}

TEST_CASE("one segment a row is no packing, for every packer") {
  const std::vector<LengthCount> counts{{1, 10}, {5, 2}, {10, 1}};
  for (const PackerInfo* packer : histogram_packers()) {
    INFO(packer->name);
    const PackingPlan plan = plan_packs(LengthHistogram(counts), packer->name, options(10, 1));
    CHECK(text(plan) == "1x 10; 2x 5; 10x 1");
    CHECK(plan.gap() == 0);
  }
}

TEST_CASE("no items make a plan without rows; empty sequences are no items") {
  for (const PackerInfo* packer : histogram_packers()) {
    INFO(packer->name);
    for (const std::vector<LengthCount>& counts : {std::vector<LengthCount>{}, std::vector<LengthCount>{{0, 7}}}) {
      const PackingPlan plan = plan_packs(LengthHistogram(counts), packer->name, options(10, 0));
      CHECK(plan.rows() == 0);
      CHECK(plan.strategies() == 0);
      CHECK(plan.bound.rows == 0);
      CHECK(plan.row_tokens == 10);
    }
  }
}

TEST_CASE("a plan names the packer that made it") {
  const std::vector<LengthCount> counts{{0, 2}, {4, 3}};
  const PackingPlan plan = plan_packs(LengthHistogram(counts), "auto", options(10, 2));
  CHECK(plan.packer == "lpfhp");
  CHECK(plan_packs(LengthHistogram(counts), "spfhp", options(10, 2)).packer == "spfhp");
  CHECK(plan.row_tokens == 10);
  CHECK(plan.max_segments == 2);
  CHECK(plan.bound.rows == 2);
}

TEST_CASE("inputs made to break packers") {
  struct Case {
    const char* what;
    Length row_tokens;
    std::vector<LengthCount> counts;
  };
  const std::int64_t trillion = 1'000'000'000'000;
  std::vector<LengthCount> powers_of_two, twenty;
  for (int power = 0; power <= 9; ++power) powers_of_two.push_back({1 << power, 1 + 3 * power});
  for (int i = 0; i < 20; ++i) twenty.push_back({5 + i * i % 67, 1});
  const std::vector<Case> cases{
      {"one length", 512, {{171, 1000}}},
      {"one length, the row's", 512, {{512, 1000}}},
      {"one length, one token", 64, {{1, 1000}}},
      {"the row length and just over half of it", 512, {{257, 1000}, {512, 1000}}},
      {"just over a half, a third and a quarter", 1000, {{251, 600}, {334, 600}, {501, 600}}},
      {"powers of two", 512, powers_of_two},
      {"twenty sequences", 256, twenty},
      {"rows of one slot", 1, {{1, 5}}},
      {"a trillion of each", 512, {{1, trillion}, {37, trillion}, {170, trillion}, {255, trillion}, {400, trillion}}},
      {"one short item among a trillion", 512, {{1, 1}, {300, trillion}}},
  };
  for (const PackerInfo* packer : histogram_packers()) {
    for (const Case& test : cases) {
      for (const std::int32_t max_segments : {0, 1, 2, 3, 7, 100'000}) {
        INFO(packer->name << ", " << test.what << ", at most " << max_segments << " segments");
        const LengthHistogram histogram(test.counts);
        const PackingPlan plan = plan_packs(histogram, packer->name, options(test.row_tokens, max_segments));
        CHECK(check_exact_cover(plan, histogram).empty());
        CHECK(plan.rows() >= plan.bound.rows);
        CHECK(stats(plan).items == histogram.sequences());
        CHECK(stats(plan).slots_used == histogram.tokens());
        CHECK((max_segments == 0 || stats(plan).max_segments_in_row <= max_segments));
      }
    }
  }
}

TEST_CASE("twenty sequences need no more rows than best fit decreasing gives them") {
  // On twenty sequences published least-squares code loses twelve rows of eighteen to rounding.
  const std::vector<LengthCount> counts{{20, 4}, {40, 4}, {60, 4}, {80, 4}, {110, 4}};
  CHECK(plan_packs(LengthHistogram(counts), "lpfhp", options(256, 0)).rows() == 6);
  CHECK(plan_packs(LengthHistogram(counts), "auto", options(256, 0)).rows() == 6);
}

TEST_CASE("row lengths of a million slots with every fifth length cost no scans") {
  LengthHistogram histogram;
  for (std::int64_t length = 1; length <= 1'048'576; length += 5) histogram.add(length, 1 + length % 3);
  for (const char* packer : {"spfhp", "lpfhp", "bfd", "ffd", "sorted-greedy", "none"}) {
    INFO(packer);
    const PackingPlan plan = plan_packs(histogram, packer, options(1'048'576, 0));
    CHECK(stats(plan).items == histogram.sequences());
    CHECK(plan.rows() >= plan.bound.rows);
  }
}

TEST_CASE("strategies of ten thousands of segments are planned in counts") {
  const std::vector<LengthCount> counts{{3, 10'000'000}, {7, 50}, {1'000, 5}};
  for (const char* packer : {"lpfhp", "bfd", "ffd", "spfhp", "sorted-greedy"}) {
    INFO(packer);
    const PackingPlan plan = plan_packs(LengthHistogram(counts), packer, options(131'072, 0));
    CHECK(stats(plan).items == 10'000'055);
    if (std::string(packer) != "spfhp") CHECK(plan.gap() <= 1);
  }
}

TEST_CASE("a stop is heard") {
  std::stop_source source;
  source.request_stop();
  const std::vector<LengthCount> counts{{3, 10}, {7, 50}};
  for (const char* packer : {"lpfhp", "bfd", "ffd", "spfhp", "sorted-greedy", "auto"}) {
    try {
      plan_packs(LengthHistogram(counts), packer, options(10, 0), source.get_token());
      FAIL(packer << " went on");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::cancelled);
    }
  }
}
