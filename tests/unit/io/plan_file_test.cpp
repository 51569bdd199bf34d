// plan.json's bytes, and what its reader refuses.
#include "io/plan_file.h"

#include <array>
#include <string>
#include <vector>

#include "shardpack/error.h"
#include "shardpack/version.h"
#include "support/catch.h"

using namespace shardpack;

namespace {

PlanFile sample() {
  PlanFile file;
  file.plan.packer = "lpfhp";
  file.plan.row_tokens = 12;
  file.plan.max_segments = 3;
  file.plan.policy = {.row_tokens = 12,
                      .overlong = Overlong::split,
                      .truncate_side = TruncateSide::start,
                      .split_min_tokens = 2,
                      .min_tokens = 1,
                      .append_eos = true,
                      .prepend_bos = false,
                      .segment_multiple = 4};
  file.plan.add(std::array<Length, 1>{12}, 7);
  file.plan.add(std::array<Length, 2>{8, 4}, 2);
  file.plan.bound = {9, BoundKind::l2};
  file.items.add(12, 7);
  file.items.add(8, 2);
  file.items.add(4, 2);
  file.items.add(0, 5);
  return file;
}

const std::string kText = std::string(R"({
  "format": "shardpack-plan",
  "format_version": 1,
  "tool_version": ")") + kVersion +
                          R"(",
  "packer": "lpfhp",
  "row_tokens": 12,
  "max_segments": 3,
  "segment_multiple": 4,
  "policy": { "overlong": "split", "append_eos": true, "prepend_bos": false, "slot_rule": "tokens", "keep_together": 1, "truncate_side": "start", "split_min_tokens": 2, "min_tokens": 1 },
  "histogram": [
    [12, 7],
    [8, 2],
    [4, 2]
  ],
  "rows": 9,
  "bound": 9,
  "bound_kind": "l2",
  "entries": [
    { "lengths": [12], "count": 7 },
    { "lengths": [8, 4], "count": 2 }
  ]
}
)";

std::string refusal(const std::string& from, const std::string& to) {
  std::string text = kText;
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  try {
    plan_from_json(text, "plan.json");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_data);
    CHECK(error.path() == "plan.json");
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("a plan's bytes are these, and are read back") {
  const PlanFile file = sample();
  CHECK(to_json(file.plan, file.items) == kText);
  const PlanFile read = plan_from_json(kText, "plan.json");
  CHECK(to_json(read.plan, read.items) == kText);
  CHECK(read.tool_version == kVersion);
  CHECK(read.plan.policy == file.plan.policy);
  CHECK(read.plan.lengths == file.plan.lengths);
  CHECK(read.plan.count == file.plan.count);
  CHECK(read.plan.bound.kind == BoundKind::l2);
  CHECK(read.items.sequences() == 11);
  CHECK(check_exact_cover(read.plan, read.items).empty());
}

TEST_CASE("a plan of nothing is a plan") {
  PackingPlan plan;
  plan.packer = "none";
  plan.row_tokens = 5;
  const std::string text = to_json(plan, {});
  CHECK(text.find("\"histogram\": [],") != std::string::npos);
  CHECK(plan_from_json(text, "p").plan.rows() == 0);
}

TEST_CASE("a certificate is read back, and what cannot be one is named by its key") {
  PlanFile file = sample();
  file.plan.bound.kind = BoundKind::lp;
  file.plan.certificate = {std::int64_t{1} << 53, 4, {{12, std::int64_t{1} << 53}, {8, 7}}};
  const std::string text = to_json(file.plan, file.items);
  CHECK(text.find("\"prices\": [\n      [12, 9007199254740992],\n      [8, 7]\n    ]") != std::string::npos);
  const PlanFile read = plan_from_json(text, "plan.json");
  CHECK(read.plan.certificate == file.plan.certificate);
  CHECK(read.plan.bound.kind == BoundKind::lp);

  const auto refused = [](const std::string& certificate) {
    return refusal("\"l2\",", "\"l2\", \"certificate\": " + certificate + ",");
  };
  const auto with_prices = [](const std::string& prices) {
    return "{ \"scale\": 3, \"granularity\": 1, \"prices\": " + prices + " }";
  };
  CHECK(refused(with_prices("[[12, 3], [8, 1]]")) == "none");
  CHECK(refused("{ \"scale\": 1 }") == "plan.json: certificate: the key 'granularity' is missing");
  const std::vector<std::array<std::string, 2>> cases{
      {"{ \"scale\": 0, \"granularity\": 1, \"prices\": [] }", "certificate.scale: expected a whole number from 1 to"},
      {"{ \"scale\": 9007199254740993, \"granularity\": 1, \"prices\": [] }",
       "certificate.scale: expected a whole number from 1 to"},
      {"{ \"scale\": 1.5, \"granularity\": 1, \"prices\": [] }", "certificate.scale: "},
      {"{ \"scale\": 1, \"granularity\": 13, \"prices\": [] }", "certificate.granularity: expected a whole number from 1 to 12"},
      {with_prices("7"), "certificate.prices: "},
      {with_prices("[[12]]"), "certificate.prices[0]: expected a length and a price, found 1 entries"},
      {with_prices("[[12, 1], [13, 1]]"), "certificate.prices[1][0]: expected a whole number from 1 to 12"},
      {with_prices("[[12, 0]]"), "certificate.prices[0][1]: expected a whole number from 1 to"},
      {with_prices("[[12, 4]]"), "certificate.prices[0][1]: expected a whole number from 1 to 3"},
      {with_prices("[[12, -1]]"), "certificate.prices[0][1]: "},
  };
  for (const auto& [certificate, expected] : cases) {
    INFO(certificate);
    CHECK(refused(certificate).find("plan.json: " + expected) == 0);
  }
}

TEST_CASE("plans of groups sit in a list, each with its key") {
  const PlanFile one = sample();
  const std::vector<GroupPlan> groups{
      {false, one.plan, one.items}, {std::int64_t{-3}, one.plan, one.items}, {std::string("web"), one.plan, one.items}};
  const std::string text = to_json("lang", groups);
  const PlanFile read = plan_from_json(text, "plan.json");
  CHECK(read.group_column == "lang");
  REQUIRE(read.groups.size() == 3);
  CHECK(to_json(read.group_column, read.groups) == text);
  CHECK(read.groups[1].key == GroupKey(std::int64_t{-3}));
  CHECK(read.plan.rows() == 3 * one.plan.rows());
  CHECK(read.plan.bound.rows == 3 * one.plan.bound.rows);
  CHECK(read.plan.strategies() == one.plan.strategies());
  CHECK(read.items.sequences() == 33);
  CHECK(check_exact_cover(read.plan, read.items).empty());

  const auto refused = [&](const std::string& from, const std::string& to) -> std::string {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    try {
      plan_from_json(changed, "p");
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  CHECK(refused("\"key\": -3", "\"key\": false") == "p: groups[1].key: expected a key above false");
  CHECK(refused("\"key\": -3", "\"key\": [1]").find("p: groups[1].key: ") == 0);
  CHECK(refused("\"row_tokens\": 12", "\"row_tokens\": 16").find("p: groups[1]: its row_tokens, max_segments or policy differ") ==
        0);
}

TEST_CASE("what cannot be is named by its key") {
  CHECK(refusal("9", "9") == "none");
  const std::vector<std::array<std::string, 3>> cases{
      {"shardpack-plan", "shardpack-packed", "format: expected \"shardpack-plan\""},
      {"\"format_version\": 1", "\"format_version\": 9", "format_version: "},
      {"\"lpfhp\"", "\"red\\u001b[31m\"", "packer: there is no packer of this name"},
      {"\"row_tokens\": 12", "\"row_tokens\": 0", "row_tokens: "},
      {"\"max_segments\": 3", "\"max_segments\": -1", "max_segments: "},
      {"\"segment_multiple\": 4", "\"segment_multiple\": 13", "segment_multiple: expected a whole number from 1 to 12"},
      {"\"split\"", "\"cut\"", "policy.overlong: expected one of error, truncate, split, drop, found 'cut'"},
      {"\"start\"", "\"middle\"", "policy.truncate_side: "},
      {"\"tokens\"", "\"pairs\"", "policy.slot_rule: expected one of tokens, targets, found 'pairs'"},
      {"\"keep_together\": 1", "\"keep_together\": 0", "policy.keep_together: "},
      {"\"append_eos\": true", "\"append_eos\": 1", "policy.append_eos: expected true or false"},
      {"[12, 7],", "[13, 7],", "histogram[0][0]: expected a whole number from 1 to 12, found 13"},
      {"[8, 2],", "[12, 2],", "histogram[1][0]: expected a whole number from 1 to 11"},
      {"[4, 2]", "[0, 2]", "histogram[2][0]: "},
      {"[4, 2]", "[4, 0]", "histogram[2][1]: "},
      {"[4, 2]", "[4, 2, 1]", "histogram[2]: expected a length and a count, found 3 entries"},
      {"[12, 7],", "[12, 9223372036854775807],", "histogram: the number of tokens exceeds 2^63"},
      {"\"rows\": 9", "\"rows\": 10", "rows: expected 9, the sum of the entries' counts, found 10"},
      {"\"bound\": 9", "\"bound\": -9", "bound: "},
      {"\"l2\"", "\"l3\"", "bound_kind: expected one of l1, l2, cardinality, lp, found 'l3'"},
      {"[8, 4], \"count\"", "[4, 8], \"count\"", "entries[1].lengths[1]: expected a whole number from 1 to 4, found 8"},
      {"[12], \"count\"", "[13], \"count\"", "entries[0].lengths[0]: "},
      {"[12], \"count\"", "[], \"count\"", "entries[0].lengths: expected at least one length"},
      {"\"count\": 7", "\"count\": 0", "entries[0].count: "},
      {"\"count\": 7", "\"count\": 9223372036854775807", "rows: the counts of the entries exceed 2^63 - 1"},
  };
  for (const auto& [from, to, says] : cases) {
    const std::string found = refusal(from, to);
    INFO(found);
    CHECK(found.find(says) != std::string::npos);
  }
}
