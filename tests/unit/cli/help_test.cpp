#include "cli/help.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "shardpack/packer.h"
#include "support/catch.h"

using namespace shardpack;

namespace {
std::size_t longest_line(const std::string& page) {
  std::size_t longest = 0;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}
}  // namespace

TEST_CASE("every page fits the width, and short pages fit a screen and hold two examples") {
  CHECK(longest_line(overview_page()) <= 100);
  for (const CommandInfo& command : commands()) {
    const std::string brief = brief_page(command.command), full = full_page(command.command);
    CHECK(longest_line(brief) <= 100);
    CHECK(longest_line(full) <= 100);
    CHECK(std::count(brief.begin(), brief.end(), '\n') <= 40);
    for (const char* example : command.examples) CHECK(brief.find(std::string("\n  shardpack ") + example) != std::string::npos);
  }
}

TEST_CASE("every flag has one meaning, and a command's pages show what it takes and nothing else") {
  std::set<std::string> seen;
  for (const Option& option : options()) {
    for (const std::string& flag : option.flags()) {
      INFO(flag);
      CHECK(seen.insert(flag).second);
      CHECK(find_option(flag) == &option);
    }
    INFO(option.names);
    CHECK((option.brief & ~option.commands) == 0);
    CHECK((option.standard == nullptr || !option.is_switch()));
    for (const CommandInfo& command : commands()) {
      const bool shown = full_page(command.command).find(std::string(option.flags().front())) != std::string::npos;
      if (option.taken_by(command.command)) CHECK(shown);
    }
  }
  CHECK(full_page(Command::verify).find("--packer") == std::string::npos);
  CHECK(brief_page(Command::pack).find("--nnls-weights") == std::string::npos);
}

TEST_CASE("a page speaks of its own command: no option names another, and its own help is for commands that take it") {
  for (const Option& option : options()) {
    CommandSet own = 0;
    for (const HelpUse& use : option.own_help) {
      INFO(option.names);
      CHECK((use.commands & ~option.commands) == 0);
      CHECK((use.commands & own) == 0);
      own |= use.commands;
    }
    CHECK((own == 0 || own != option.commands));  // the general text serves someone
    CHECK((option.instead.commands & option.commands) == 0);
  }
  for (const CommandInfo& command : commands()) {
    for (const Option& option : options()) {
      if (!option.taken_by(command.command)) continue;
      const std::string help = option.help_of(command.command);
      for (const CommandInfo& other : commands()) {
        INFO(command.name << ", " << option.names << ": " << help);
        const bool is_noun = other.command == Command::plan || other.command == Command::batch;  // "of a batch plan: ..."
        CHECK((is_noun || help.find(std::string(other.name) + ": ") == std::string::npos));
      }
    }
  }
  CHECK(full_page(Command::scan).find("write the histogram here") != std::string::npos);
  CHECK(full_page(Command::pack).find("the folder to make") != std::string::npos);
  CHECK(options_markdown().find("the folder to make; required; *scan*: write the histogram here") != std::string::npos);
}

TEST_CASE("the help of --packer names every packer") {
  for (const PackerInfo& packer : packers()) {
    CHECK(std::string(find_option("--packer")->help).find(packer.name) != std::string::npos);
  }
}

TEST_CASE("docs/cli.md holds the table of options as it is") {
  const std::string path = std::string(SHARDPACK_SOURCE_DIR) + "/docs/cli.md";
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string open = "<!-- options: made from the option table; SHARDPACK_UPDATE_DOCS=1 test_cli writes it -->\n\n";
  const std::string close = "<!-- end of options -->\n";
  const std::size_t begin = text.find(open), end = text.find(close);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  const std::size_t from = begin + open.size();
  if (std::getenv("SHARDPACK_UPDATE_DOCS") != nullptr) {
    text.replace(from, end - from, options_markdown());
    std::ofstream(path) << text;
    return;
  }
  CHECK(text.substr(from, end - from) == options_markdown());
}
