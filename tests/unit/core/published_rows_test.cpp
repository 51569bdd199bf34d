// The row counts that Krell et al. (2021) and their code reach on the two histograms they publish, to the last digit.
#include <optional>
#include <vector>

#include "shardpack/packer.h"
#include "support/catch.h"
#include "support/shared_data.h"

using namespace shardpack;

namespace {
struct Published {
  const char* packer;
  std::int32_t max_segments;  // 0 = no limit
  std::int64_t rows;
};

void check(const LengthHistogram& histogram, Length row_tokens, const std::vector<Published>& table) {
  for (const Published& expected : table) {
    PackerOptions options;
    options.row_tokens = row_tokens;
    options.max_segments = expected.max_segments;
    const PackingPlan plan = plan_packs(histogram, expected.packer, options);
    INFO(expected.packer << ", at most " << expected.max_segments << " segments");
    CHECK(plan.rows() == expected.rows);
    CHECK(stats(plan).items == histogram.sequences());
    CHECK(stats(plan).slots_used == histogram.tokens());
  }
}
}  // namespace

TEST_CASE("published rows: Wikipedia, 512 tokens", "[published]") {
  const std::optional<LengthHistogram> wikipedia = published_histogram("wikipedia_bert_512.csv");
  if (!wikipedia) {
    WARN(kNoSharedData);
    return;
  }
  REQUIRE(wikipedia->sequences() == 16'279'552);
  check(*wikipedia, 512, {{"none", 0, 16'279'552},  {"none", 1, 16'279'552},  {"spfhp", 1, 16'279'552}, {"lpfhp", 1, 16'279'552},
                          {"spfhp", 2, 10'101'683}, {"spfhp", 3, 9'094'695},  {"spfhp", 4, 8'658'996},  {"spfhp", 6, 8'324'436},
                          {"spfhp", 8, 8'224'673},  {"spfhp", 12, 8'166'708}, {"spfhp", 16, 8'166'708}, {"spfhp", 0, 8'166'708},
                          {"lpfhp", 2, 10'099'081}, {"lpfhp", 3, 9'090'154},  {"lpfhp", 4, 8'657'119},  {"lpfhp", 8, 8'207'569},
                          {"lpfhp", 12, 8'149'619}, {"lpfhp", 16, 8'140'006}, {"lpfhp", 0, 8'138'483},  {"bfd", 0, 8'138'483},
                          {"ffd", 0, 8'138'483}});

  const LowerBound bound = lower_bound(*wikipedia, 512, 0);
  CHECK(bound.rows == 8'135'727);
  CHECK(bound.kind == BoundKind::l2);
  CHECK((wikipedia->tokens() + 511) / 512 == 8'134'368);
  CHECK(lower_bound(*wikipedia, 512, 1).rows == 16'279'552);
  CHECK(lower_bound(*wikipedia, 512, 1).kind == BoundKind::cardinality);
}

TEST_CASE("published rows: SQuAD 1.1, 384 tokens", "[published]") {
  const std::optional<LengthHistogram> squad = published_histogram("squad_1_1_384.csv");
  if (!squad) {
    WARN(kNoSharedData);
    return;
  }
  REQUIRE(squad->sequences() == 88'641);
  std::vector<Published> table{{"spfhp", 2, 45'335}, {"lpfhp", 2, 45'335}};
  for (const std::int32_t max_segments : {3, 4, 6, 8, 12, 16, 0}) {
    table.push_back({"spfhp", max_segments, 40'711});
    table.push_back({"lpfhp", max_segments, 40'631});
  }
  check(*squad, 384, table);

  const LowerBound bound = lower_bound(*squad, 384, 0);
  CHECK(bound.rows == 39'775);
  CHECK(bound.kind == BoundKind::l2);
  CHECK((squad->tokens() + 383) / 384 == 39'713);
}
