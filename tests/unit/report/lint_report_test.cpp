// Findings as text: what is long goes on in lines of its own, and no line leaves the page.
#include "report/lint_report.h"

#include <algorithm>
#include <sstream>

#include "base/wrap.h"
#include "support/catch.h"

namespace shardpack {
namespace {

TEST_CASE("words are wrapped after the line's beginning, and never broken") {
  std::string page = "head\n  rule: ";
  append_words(page, std::string(80, 'a') + " " + std::string(11, 'b') + " c " + std::string(120, 'd') + " e", 4);
  CHECK(page == "head\n  rule: " + std::string(80, 'a') + " " + std::string(11, 'b') + "\n    c\n    " + std::string(120, 'd') +
                    "\n    e");
}

TEST_CASE("a finding's lines fit the page and hold all of its words") {
  LintResult result;
  std::string words;
  for (int i = 0; i < 60; ++i) words += (i == 0 ? "word" : " word") + std::to_string(i);
  result.findings.push_back({Severity::error, "rule", "a.path", words, "fix " + words});
  const std::string text = lint_to_text(result, "ds.json");
  std::string flat;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    CHECK(line.size() <= kPageWidth);
    flat += line.substr(std::min(line.find_first_not_of(' '), line.size())) + " ";
  }
  CHECK(flat.find("rule: " + words + " fix: fix " + words + " ds.json: 1 error") != std::string::npos);
}

}  // namespace
}  // namespace shardpack
