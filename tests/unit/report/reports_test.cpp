#include "report/figures.h"
#include "report/pack_report.h"
#include "report/plan_report.h"
#include "report/scan_report.h"
#include "report/verify_json.h"
#include "support/catch.h"

using namespace shardpack;

namespace {

PackResult a_pack() {
  PackResult result;
  Manifest& manifest = result.manifest;
  manifest.row_tokens = 2048;
  manifest.rows = 145'032;
  manifest.source_sequences = manifest.sequences = manifest.segments = 1'000'000;
  manifest.source_tokens = manifest.tokens = 297'021'464;
  manifest.max_segments_in_row = 61;
  manifest.plan = {
      .packer = "lpfhp", .bound_kind = "l1", .max_segments = 0, .segment_multiple = 1, .rows = 145'032, .bound = 145'031};
  manifest.options = {{"seed", "0"}, {"order", "\"shuffled\""}};
  manifest.shards.resize(4);
  manifest.shards[0].folder = "shard-00000-00000";
  result.strategies = 1234;
  result.bytes_written = 1'825'361'101;
  result.dynamic_padding_slots = 683'160'000;
  result.shuffle_window_tokens = 268'000'000;
  result.partitions = 2;
  result.cut_rows = 3;
  result.verified = true;
  return result;
}

/// plan.json of five sequences: 8, 5, 3, 2, 2 in rows of 8.
PlanResult a_plan() {
  PlanResult result;
  result.plan.packer = "lpfhp";
  result.plan.row_tokens = 8;
  const std::vector<Length> first{8}, second{5, 3}, third{2, 2};
  result.plan.add(first, 1);
  result.plan.add(second, 1);
  result.plan.add(third, 1);
  result.plan.bound = {3, BoundKind::l1};
  result.sequences = 6;
  result.tokens = 31;
  result.policy.sequences = 5;
  result.policy.counts[static_cast<std::size_t>(RemovalCause::dropped)] = {1, 11};
  return result;
}

Json parsed(const std::string& text) { return Json::parse(text, "report"); }

}  // namespace

TEST_CASE("a share is cut, not rounded: 100 % means that no slot is empty") {
  CHECK(percent_text(1) == "100.000 %");
  CHECK(percent_text(0.9999999) == "99.999 %");
  CHECK(percent_text(0) == "0.000 %");
}

TEST_CASE("removed sequences are told by cause") {
  RemovedCounts removed{};
  CHECK(removed_text(removed) == "nothing");
  removed[static_cast<std::size_t>(RemovalCause::empty)] = {3, 0};
  removed[static_cast<std::size_t>(RemovalCause::truncated)] = {5, 1234};
  removed[static_cast<std::size_t>(RemovalCause::dropped)] = {1, 1};
  CHECK(removed_text(removed) == "empty 3, truncated 5 (1,234 tokens), dropped 1 (1 token)");
}

TEST_CASE("the summary of pack") {
  CHECK(pack_summary(a_pack(), {.output = "packed", .dry_run = false, .seconds = 2.94}) ==
        "packed 1,000,000 sequences (297.0 M tokens) into 145,032 rows of 2,048: 99.998 % full, 6.90 sequences a row\n"
        "bound 145,031 rows: at most 1 row from the proven optimum\n"
        "removed nothing · every token once\n"
        "6.90x fewer rows than padding to 2,048 (at most 6.90x)\n"
        "2.3x fewer slots than dynamic padding of 64\n"
        "cut into 2 partitions, which costs 3 rows\n"
        "rows are shuffled within 268.0 M tokens (--partition-order shuffled: over more)\n"
        "wrote 1.7 GiB in 4 shards to packed/ in 2.9 s\n"
        "read with: np.load(\"packed/shard-00000-00000/input_ids.npy\", mmap_mode=\"r\")");
}

TEST_CASE("the summary of pack tells what is out of the ordinary") {
  PackResult result = a_pack();
  result.manifest.rows += 8;
  result.manifest.repeated_rows = 8;
  result.manifest.plan.bound = 145'032;
  result.manifest.added_eos = 7;
  result.manifest.compress = "zstd:3";
  result.manifest.options = {{"order", "\"input\""}};
  const std::string text = pack_summary(result, {.output = "out/", .dry_run = false, .seconds = 1});
  CHECK(text.find("into 145,032 rows of 2,048 (and 8 repeated): ") != std::string::npos);
  CHECK(text.find("bound 145,032 rows: proven optimal\n") != std::string::npos);
  CHECK(text.find("removed nothing · added 7 EOS · ") != std::string::npos);
  CHECK(text.find("\nrows are in input order\n") != std::string::npos);
  CHECK(text.find("to out/ in 1.0 s\ncheck with: shardpack verify out/") != std::string::npos);
}

TEST_CASE("of rows in windows the summary says how large they are, and who shuffles them all") {
  PackResult result = a_pack();
  result.manifest.options = {{"order", "\"windowed\""}};
  result.shuffle_window_tokens = 2'090'000;
  const auto says = [&](std::string_view preset, const std::string& expected) {
    result.manifest.preset = preset;
    const std::string text = pack_summary(result, {.output = "out", .dry_run = false, .seconds = 1});
    INFO(text);
    CHECK(text.find("\nrows are shuffled " + expected + "\n") != std::string::npos);
  };
  const std::string windows = "within windows of 2,090,000 tokens (--order shuffled: within whole partitions)";
  says("native", windows);
  says("trl", windows + "; TRL's SFTTrainer shuffles them all");
  says("torchtune", windows + "; a torchtune recipe shuffles them all (but with shuffle: False)");
  result.partitions = 1;
  says("native", "within windows of 2,090,000 tokens (--order shuffled: over the whole dataset)");
  result.shuffle_window_tokens = result.manifest.tokens;
  says("trl", "over the whole dataset");
}

TEST_CASE("of rows in balanced order the summary says whether the preset's trainer keeps them") {
  PackResult result = a_pack();
  result.manifest.options = {{"order", "\"balanced\""}};
  result.steps.emplace();
  result.steps->shape = {.world = 8, .accumulation = 1, .micro_batch = 1};
  const auto says = [&](std::string_view preset, bool exchanged, const std::string& expected) {
    result.manifest.preset = preset;
    result.steps->exchanged.reset();
    if (exchanged) result.steps->exchanged.emplace();
    const std::string text = pack_summary(result, {.output = "out", .dry_run = false, .seconds = 1});
    INFO(text);
    CHECK(text.find("\n" + expected + "\n") != std::string::npos);
  };
  says("native", false, "a trainer that shuffles rows itself undoes the order; what --balance attention does lasts");
  says("native", true, "a trainer that shuffles rows itself undoes the order, not the exchange");
  says("trl", false, "TRL's SFTTrainer shuffles rows itself: the order will not last, rows of --balance attention would");
  says("trl", true, "TRL's SFTTrainer shuffles rows itself: the order will not last, the balanced rows will");
  says("llamafactory", true,
       "LLaMA-Factory shuffles rows itself: the order will not last (but with disable_shuffling: true), the balanced rows will");

  result.steps->loss = StepLoss{.mean = 1234.4, .least = 900, .most = 1500, .least_of_rank = 17};
  says("native", true, "loss tokens a step: 1,234 on average, 900 to 1,500 · a rank has 17 or more in a micro-step");
  result.steps->loss->least_of_rank = 0;
  says("native", true,
       "loss tokens a step: 1,234 on average, 900 to 1,500 · some rank has none in a micro-step: divide by the step's");
}

TEST_CASE("where sequences were split, the speed-up is that of their pieces") {
  PackResult result = a_pack();
  result.manifest.sequences = 1000;
  const std::string text = pack_summary(result, {.output = "packed", .dry_run = false, .seconds = 1});
  CHECK(text.find("packed 1,000 sequences in 1,000,000 pieces (297.0 M tokens) into 145,032 rows of 2,048: 99.998 % full, 6.90 "
                  "segments a row\n") == 0);
  CHECK(text.find("6.90x fewer rows than padding to 2,048 (at most 6.90x)") != std::string::npos);
}

TEST_CASE("a dry run claims nothing that it did not do") {
  PackResult result = a_pack();
  result.verified = false;
  result.manifest.shards.clear();
  result.bytes_written = 0;
  const std::string text = pack_summary(result, {.output = "packed", .dry_run = true, .seconds = 1});
  CHECK(text.find("would pack 1,000,000 sequences") == 0);
  CHECK(text.find("every token once") == std::string::npos);
  CHECK(text.find("would write to packed/; nothing was written (--dry-run)") != std::string::npos);
  const Json json = parsed(pack_to_json(result, {.output = "packed", .dry_run = true, .seconds = 1}));
  CHECK(json.at("dry_run").as_bool());
  CHECK(json.at("bytes_written").as_int() == 0);
  CHECK_FALSE(json.at("verified").as_bool());
}

TEST_CASE("a pack of nothing divides by nothing") {
  PackResult result;
  result.manifest.row_tokens = 8;
  const std::string text = pack_summary(result, {.output = "out", .dry_run = false, .seconds = 0});
  CHECK(
      text.find(
          "packed 0 sequences (0 tokens) into 0 rows of 8: 100.000 % full, 0.00 sequences a row\nbound 0 rows: proven optimal") ==
      0);
  CHECK(text.find("nan") == std::string::npos);
  CHECK(text.find("inf") == std::string::npos);
}

TEST_CASE("pack --json has the keys of the contract, in its order") {
  PackResult result = a_pack();
  result.manifest.rows += 2;
  result.manifest.fill_rows = 2;
  const Json json = parsed(pack_to_json(result, {.output = "packed", .dry_run = false, .seconds = 2}));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.members()) keys.push_back(key);
  const std::vector<std::string> contract{
      "schema",     "command",  "packer",         "row_tokens", "max_segments",   "sequences",
      "tokens",     "rows",     "padding_tokens", "efficiency", "packing_factor", "max_segments_in_row",
      "strategies", "bound",    "bound_kind",     "gap",        "proven_optimal", "speedup_ceiling",
      "seconds",    "output",   "dry_run",        "shards",     "bytes_written",  "removed",
      "added",      "repeated", "fingerprint",    "verified"};
  REQUIRE(keys.size() >= contract.size());
  CHECK(std::vector<std::string>(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(contract.size())) == contract);
  CHECK(json.at("rows").as_int() == 145'034);
  CHECK(json.at("gap").as_int() == 1);  // over the planned rows
  CHECK_FALSE(json.at("proven_optimal").as_bool());
  CHECK(json.at("padding_tokens").as_int() == 145'032LL * 2048 - 297'021'464);
  CHECK(json.at("shards").size() == 4);
}

TEST_CASE("plan: figures follow from the plan and the policy") {
  const Json json = parsed(plan_to_json(a_plan(), 0.25));
  CHECK(json.at("command").as_string() == "plan");
  CHECK(json.at("sequences").as_int() == 5);
  CHECK(json.at("tokens").as_int() == 20);
  CHECK(json.at("rows").as_int() == 3);
  CHECK(json.at("padding_tokens").as_int() == 4);
  CHECK(json.at("efficiency").as_double() == 0.833333);
  CHECK(json.at("packing_factor").as_double() == 1.666667);
  CHECK(json.at("speedup_ceiling").as_double() == 2);
  CHECK(json.at("max_segments_in_row").as_int() == 2);
  CHECK(json.at("strategies").as_int() == 3);
  CHECK(json.at("gap").as_int() == 0);
  CHECK(json.at("proven_optimal").as_bool());
  CHECK(json.at("bound_kind").as_string() == "l1");
  CHECK(json.at("removed").at("dropped").at("tokens").as_int() == 11);
  CHECK(plan_to_text(a_plan(), 0.25) ==
        "packer        lpfhp, rows of 8 with any number of segments\n"
        "sequences     5 with 20 tokens\n"
        "removed       dropped 1 (11 tokens)\n"
        "rows          3\n"
        "efficiency    83.333 %\n"
        "padding       4 tokens\n"
        "packing       1.6667 sequences a row of at most 2.0000: 83.333 % of the possible speed-up over padding\n"
        "strategies    3, up to 2 segments a row\n"
        "bound         3 rows (l1): proven optimal\n"
        "time          0.250 s\n");
}

TEST_CASE("scan: totals in text and JSON") {
  ScanResult result;
  for (const std::int64_t length : {0, 1, 3, 3, 10}) result.lengths.add(length);
  result.id_min = 0;
  result.id_max = 70'000;
  result.files.push_back({.name = "a.bin", .format = "megatron", .bytes = 34, .sequences = 5, .tokens = 17, .hash = "00"});
  result.not_carried = {"text"};
  CHECK(scan_to_text(result) ==
        "sequences     5 (1 empty)\n"
        "tokens        17\n"
        "lengths       1 to 10, mean 4.2\n"
        "quantiles     10 %: 1 · 50 %: 3 · 90 %: 10 · 99 %: 10 · 99.9 %: 10\n"
        "token ids     0 to 70,000, stored as u32\n"
        "fingerprint   00000000000000000000000000000000\n"
        "not carried   text\n"
        "files         1, 34 B\n"
        "  a.bin: megatron, 5 sequences, 17 tokens, 34 B\n");
  const Json json = parsed(scan_to_json(result, 1));
  CHECK(json.at("empty").as_int() == 1);
  CHECK(json.at("quantiles").at("0.5").as_int() == 3);
  CHECK(json.at("token_id_max").as_int() == 70'000);
  CHECK(json.at("files").at(std::size_t{0}).at("format").as_string() == "megatron");

  result.files.resize(13, result.files[0]);
  CHECK(scan_to_text(result).find("\n  ... and 3 more (--json lists all)\n") != std::string::npos);
  CHECK(parsed(scan_to_json(result, 1)).at("files").size() == 13);
  CHECK(parsed(scan_to_json(ScanResult(), 1)).at("token_id_max").is_null());
}

TEST_CASE("verify --json carries every issue whole") {
  VerifyResult result;
  CHECK(parsed(verify_to_json(result, "packed", 1)).at("ok").as_bool());
  result.issues.push_back({.kind = "checksum", .file = "shard/input_ids.npy", .row = -1, .message = "a \"quoted\" one"});
  result.issues.push_back({.kind = "row", .file = "shard", .row = 7, .message = "odd"});
  const Json json = parsed(verify_to_json(result, "packed", 1));
  CHECK_FALSE(json.at("ok").as_bool());
  CHECK(json.at("issues").at(std::size_t{0}).at("row").is_null());
  CHECK(json.at("issues").at(std::size_t{0}).at("message").as_string() == "a \"quoted\" one");
  CHECK(json.at("issues").at(std::size_t{1}).at("row").as_int() == 7);
}
