#include "cli/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "support/catch.h"
#include "support/temp_folder.h"

using namespace shardpack;

namespace {

std::string logged(bool quiet, bool verbose, bool color) {
  const TempFolder folder;
  const int descriptor = ::open(folder.path("out").c_str(), O_RDWR | O_CREAT, 0600);
  {
    Console console(descriptor);
    Log log(console, quiet, verbose, color);
    log.error("no {} such file");  // braces are text
    log.warn("odd");
    log.info("note");
    log.debug("detail");
  }
  ::close(descriptor);
  std::ifstream file(folder.path("out"));
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("messages say what they are, and -q and -v choose among them") {
  CHECK(logged(false, false, false) == "shardpack: error: no {} such file\nshardpack: warning: odd\nshardpack: note\n");
  CHECK(logged(true, false, false) == "shardpack: error: no {} such file\n");
  CHECK(logged(false, true, false) ==
        "shardpack: error: no {} such file\nshardpack: warning: odd\nshardpack: note\nshardpack: debug: detail\n");
  CHECK(logged(true, false, true) == "shardpack: \x1b[1;31merror:\x1b[0m no {} such file\n");
}

TEST_CASE("colour: the flag, FORCE_COLOR, NO_COLOR, CLICOLOR_FORCE, a terminal, in this order") {
  for (const char* name : {"FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE"}) ::unsetenv(name);
  CHECK_FALSE(wants_color(When::automatic, -1));
  CHECK(wants_color(When::always, -1));
  ::setenv("CLICOLOR_FORCE", "0", 1);
  CHECK_FALSE(wants_color(When::automatic, -1));
  ::setenv("CLICOLOR_FORCE", "1", 1);
  CHECK(wants_color(When::automatic, -1));
  ::setenv("NO_COLOR", "", 1);
  CHECK(wants_color(When::automatic, -1));
  ::setenv("NO_COLOR", "0", 1);  // any text counts, as no-color.org says
  CHECK_FALSE(wants_color(When::automatic, -1));
  ::setenv("FORCE_COLOR", "1", 1);
  CHECK(wants_color(When::automatic, -1));
  CHECK_FALSE(wants_color(When::never, -1));
  for (const char* name : {"FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE"}) ::unsetenv(name);
}
