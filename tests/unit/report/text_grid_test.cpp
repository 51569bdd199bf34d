#include "report/text_grid.h"

#include "support/catch.h"

using namespace shardpack;

TEST_CASE("figures and notes stand under one another, wide texts take both places") {
  const std::vector<GridLine> lines{{"length", {{"512", "", true}, {"1,024", "", true}}},
                                    {"best", {{"8,138,483 rows", "", true}, {"", "", true}}},
                                    {"  auto", {{"99.949", "+2,756"}, {"*99.9", "="}}},
                                    {"  none", {{"1.5", "+8.14M"}, {"no plan", "", true}}}};
  CHECK(grid_text(lines, 100) ==
        "length             512    1,024\n"
        "best    8,138,483 rows\n"
        "  auto   99.949 +2,756  *99.9 =\n"
        "  none      1.5 +8.14M  no plan\n");
}

TEST_CASE("columns move closer before they move below") {
  const std::vector<GridLine> lines{{"label", {{"1"}, {"22"}, {"333"}}}, {"b", {{"4"}, {"5"}}}};
  CHECK(grid_text(lines, 17) == "label  1  22  333\nb      4   5\n");
  CHECK(grid_text(lines, 16) == "label 1 22 333\nb     4  5\n");
  CHECK(grid_text(lines, 14) == "label 1 22 333\nb     4  5\n");
  CHECK(grid_text(lines, 13) == "label  1  22\nb      4   5\n\nlabel  333\nb\n");
  CHECK(grid_text(lines, 1) == "label  1\nb      4\n\nlabel  22\nb       5\n\nlabel  333\nb\n");
  CHECK(grid_text({}, 80).empty());
}
