// A row as a picture and a table, and the verdict of verify, to the letter.
#include <algorithm>
#include <sstream>

#include "report/inspect_report.h"
#include "report/row_picture.h"
#include "report/verify_text.h"
#include "support/catch.h"

namespace shardpack {
namespace {

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

TEST_CASE("the picture of a row") {
  RowView row{.row = 1234, .shard = "shard-00000-00000", .row_in_shard = 1234, .row_tokens = 8, .segments = {}};
  const auto add = [&](std::int64_t begin, Length length, Length slots) {
    SegmentView segment;
    segment.begin = begin;
    segment.length = length;
    segment.slots = slots;
    segment.source = "a-rather-long-folder-name/and-a-file-name.jsonl.gz";
    segment.record = 7;
    segment.tokens = length;
    segment.first_ids = {1, 2, 3};
    segment.last_ids = {8, 9};
    row.segments.push_back(segment);
  };
  SECTION("one column a slot") {
    add(0, 3, 3);
    add(3, 2, 2);
    add(5, 1, 1);
    CHECK(row_picture(row) == "111223..\n|\n0\n");
    CHECK(inspect_to_text({.path = "", .row = row}) ==
          "row 1,234: row 1,234 of shard-00000-00000\n"
          "3 segments, 6 tokens in 8 slots, 2 of padding\n"
          "\n"
          "111223..\n|\n0\n"
          "\n"
          "mark  #            slots       positions  source                          record          its tokens\n"
          " 1    1              0-2             0-2  a-rather...e-name.jsonl.gz           7                 0-2\n"
          "         ids 1 2 3 .. 8 9\n"
          " 2    2              3-4             0-1  a-rather...e-name.jsonl.gz           7                 0-1\n"
          "         ids 1 2 3 .. 8 9\n"
          " 3    3              5-5             0-0  a-rather...e-name.jsonl.gz           7                 0-0\n"
          "         ids 1 2 3 .. 8 9\n");
  }
  SECTION("many slots a column, and marks that begin again") {
    row.row_tokens = 800;
    for (std::int64_t s = 0; s < 70; ++s) add(s * 10, 10, 10);
    const std::string picture = row_picture(row);
    CHECK(picture.substr(0, 80) == "123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ123456789..........");
    CHECK(picture.find("\n0                   200                 400                 600\n") != std::string::npos);
    CHECK(widest_line(inspect_to_text({.path = "", .row = row})) <= 100);
  }
  SECTION("a fill row") { CHECK(row_picture(row).substr(0, 8) == "........"); }
}

TEST_CASE("the verdict as text") {
  VerifyResult result;
  result.bytes = 2048;
  result.checked = {"rows: 3 of 8 slots"};
  CHECK(verify_to_text(result, "packed", 0.25) == "rows: 3 of 8 slots\npacked holds: 2.0 KiB read in 0.2 s\n");
  result.issues = {{"checksum", "shard-00000-00000/input_ids.npy", -1, "the bytes differ"},
                   {"row", "shard-00000-00000", 1234, "no"}};
  CHECK(verify_to_text(result, "packed", 0.25) ==
        "checksum: shard-00000-00000/input_ids.npy: the bytes differ\n"
        "row: shard-00000-00000, row 1,234: no\n"
        "packed does not hold: 2 issues; 2.0 KiB read in 0.2 s\n");
}

}  // namespace
}  // namespace shardpack
