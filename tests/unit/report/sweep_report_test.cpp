#include "report/sweep_report.h"

#include <algorithm>
#include <sstream>

#include "io/json.h"
#include "support/catch.h"

using namespace shardpack;

namespace {

/// Five row lengths, six packers, four limits, with figures as wide as they come.
SweepResult large_sweep() {
  SweepResult result;
  result.lengths.add(5, 8'000'000);
  result.lengths.add(131'072, 8'279'552);
  result.row_tokens = {512, 1024, 2048, 4096, 131'072};
  result.overlong = {Overlong::split};
  result.packers = {"auto", "sorted-greedy", "nnlshp", "none", "sequential", "concat"};
  result.max_segments = {0, 2, 16, 128};
  result.over.resize(5);
  for (std::size_t l = 0; l < 4; ++l) result.over[l] = {8'279'552, 1'085'217'439'744, 131'072, 500'000'000'000, 99'000'000};
  for (const Length row_tokens : result.row_tokens) {
    for (const std::string& packer : result.packers) {
      for (const std::int32_t limit : result.max_segments) {
        SweepCell cell;
        cell.row_tokens = row_tokens;
        cell.packer = cell.planner = packer;
        cell.max_segments = cell.segment_limit = limit;
        cell.sequences = 16'279'552;
        cell.tokens = std::int64_t{16'279'550} * row_tokens;
        cell.rows = 16'279'552;
        cell.segments = 30'000'000;
        cell.bound = {packer == "auto" ? cell.rows : 8'135'727, BoundKind::cardinality};
        cell.best_bound = cell.bound.rows;
        cell.touched_sequences = packer == "concat" ? 16'279'552 : result.over[result.cells.size() / 24].sequences;
        if (packer == "sequential" || packer == "concat") cell.order = InputOrder::sampled;
        result.cells.push_back(cell);
      }
    }
  }
  result.knee = 4;
  return result;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Counts characters, not bytes.
std::size_t width(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

TEST_CASE("120 choices fit one screen of 100 columns, with a line each below on demand") {
  const SweepResult result = large_sweep();
  REQUIRE(result.cells.size() == 120);
  const std::vector<std::string> table = lines_of(sweep_to_text(result, false));
  CHECK(table.size() <= 45);
  for (const std::string& line : table) {
    INFO(line);
    CHECK(width(line) <= 100);
  }
  const std::vector<std::string> details = lines_of(sweep_to_text(result, true));
  CHECK(details.size() == table.size() + 122);
  for (const std::string& line : details) CHECK(width(line) <= 120);
}

TEST_CASE("the choice to take is marked once, and given as flags") {
  SweepResult result = large_sweep();
  std::string text = sweep_to_text(result, false);
  CHECK(std::count(text.begin(), text.end(), '*') == 2);
  CHECK(text.find("* take -L 512 --packer sorted-greedy --overlong split\n  99.999 % full, 16,279,552 rows, 1.84 segments") !=
        std::string::npos);
  result.knee = 4 * 24 + 2;  // the longest rows, where nothing is over-long; auto; -K 16
  CHECK(sweep_to_text(result, false).find("* take -L 131072 -K 16\n  99.999 % full") != std::string::npos);
  result.knee.reset();
  CHECK(sweep_to_text(result, false).find('*') == std::string::npos);
}

TEST_CASE("CSV and JSON have every cell, those without a plan too") {
  SweepResult result = large_sweep();
  result.cells[7].problem = "one, \"two\"";
  const std::vector<std::string> csv = lines_of(sweep_to_csv(result));
  REQUIRE(csv.size() == 121);
  const auto commas = std::count(csv[0].begin(), csv[0].end(), ',');
  for (const std::string& line : csv) {
    if (&line != &csv[8]) CHECK(std::count(line.begin(), line.end(), ',') == commas);
  }
  CHECK(csv[8] ==
        "512,split,sorted-greedy,128" + std::string(static_cast<std::size_t>(commas) - 3, ',') + "\"one, \"\"two\"\"\"");

  const Json json = Json::parse(sweep_to_json(result, 1.5), "report");
  CHECK(json.at("command").as_string() == "sweep");
  CHECK(json.at("results").size() == 120);
  CHECK(json.at("results").at(7).at("problem").as_string() == "one, \"two\"");
  CHECK_FALSE(json.at("results").at(7).has("rows"));
  CHECK(json.at("results").at(8).at("rows").as_int() == 16'279'552);
  CHECK(json.at("results").at(8).at("input_order").is_null());
  CHECK(json.at("results").at(16).at("input_order").as_string() == "sampled");
  CHECK(json.at("results").at(16).at("estimated").as_bool());
  CHECK(json.at("knee").as_int() == 4);
  CHECK(json.at("results").at(4).at("knee").as_bool());
  CHECK(json.at("overlong").at(0).at("truncate_tokens").as_int() == 500'000'000'000);
}
