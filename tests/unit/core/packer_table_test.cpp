#include <set>
#include <string>
#include <vector>

#include "shardpack/packer.h"
#include "support/catch.h"

using namespace shardpack;

namespace {
/// "code: message" of the Error that `function` throws.
template <class Function>
std::string refusal(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return (error.code() == ErrorCode::usage ? "usage: " : "another code: ") + error.message();
  }
  return "accepted";
}

std::string refused_plan(const std::vector<LengthCount>& counts, const char* packer, Length row_tokens,
                         std::int32_t max_segments) {
  PackerOptions options;
  options.row_tokens = row_tokens;
  options.max_segments = max_segments;
  return refusal([&] { plan_packs(LengthHistogram(counts), packer, options); });
}
}  // namespace

TEST_CASE("the table names each packer once and gives all but the input-order ones a function") {
  std::set<std::string_view> names;
  for (const PackerInfo& packer : packers()) {
    CHECK(names.insert(packer.name).second);
    CHECK_FALSE(packer.summary.empty());
    CHECK(packer.input_order == (packer.plan == nullptr));
    CHECK(&find_packer(packer.name) == &packer);
  }
  CHECK(packers().front().name == "auto");
  for (const char* name : {"spfhp", "lpfhp", "bfd", "ffd", "sorted-greedy", "none", "sequential", "concat"})
    CHECK(names.count(name) == 1);
}

TEST_CASE("an unknown packer is refused with the nearest name and the list") {
  CHECK(refusal([] {
          find_packer("lpfph");
        }).rfind("usage: there is no packer 'lpfph'; did you mean 'lpfhp'? (packers: auto, ", 0) == 0);
  CHECK(refusal([] {
          find_packer("greedy-sorted-thing");
        }).rfind("usage: there is no packer 'greedy-sorted-thing' (packers: ", 0) == 0);
  CHECK(refusal([] { find_packer(""); }).rfind("usage: there is no packer ''", 0) == 0);
  CHECK(refused_plan({{1, 1}}, "spfph", 10, 0).find("did you mean 'spfhp'?") != std::string::npos);
}

TEST_CASE("options and lengths that do not fit together are refused with the numbers and what helps") {
  CHECK(refused_plan({{1, 1}}, "lpfhp", 0, 0) == "usage: a row has at least 1 token, not 0");
  CHECK(refused_plan({{1, 1}}, "lpfhp", -5, 0) == "usage: a row has at least 1 token, not -5");
  CHECK(refused_plan({{1, 1}}, "lpfhp", 10, -1) == "usage: --max-segments is 0 (no limit) or more, not -1");
  CHECK(refused_plan({{3, 7}, {513, 1}}, "lpfhp", 512, 0) ==
        "usage: 1 sequence is longer than a row of 512 tokens (the longest takes 513); give longer rows, or --overlong truncate, "
        "split or drop");
  CHECK(refused_plan({{513, 1'000}, {5'000'000'000, 234}}, "none", 512, 0) ==
        "usage: 1,234 sequences are longer than a row of 512 tokens (the longest takes 5,000,000,000); give longer rows, or "
        "--overlong truncate, split or drop");
  for (const char* packer : {"sequential", "concat"}) {
    CHECK(refused_plan({{1, 1}}, packer, 10, 0) ==
          "usage: packer '" + std::string(packer) + "' keeps the input order, so a histogram is not enough for it");
  }
}
