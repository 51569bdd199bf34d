#include "cli/progress_bar.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "support/catch.h"
#include "support/temp_folder.h"

using namespace shardpack;

namespace {

/// What `use` writes to its console, which is a file.
template <class Use>
std::string written(Use use) {
  const TempFolder folder;
  const int descriptor = ::open(folder.path("out").c_str(), O_RDWR | O_CREAT, 0600);
  {
    Console console(descriptor);
    use(console);
  }
  ::close(descriptor);
  std::ifstream file(folder.path("out"));
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a running stage shows its share, rate and time left") {
  const StageRecord stage{.name = "scan", .unit = "tokens", .total = 400'000'000, .done = 100'000'000, .seconds = 2};
  CHECK(progress_text(stage, 200) == "scan  [######..................]  25 %  100.0 M of 400.0 M tokens  50.0 M/s  0:06 left");
  CHECK(progress_text(stage, 21) == "scan  [######.......");
  CHECK(progress_text(stage, 0).empty());
}

TEST_CASE("nothing is claimed that is not known") {
  CHECK(progress_text({.name = "scan", .unit = "tokens", .total = 100, .done = 0, .seconds = 2}, 99) ==
        "scan  [........................]   0 %  0 of 100 tokens");
  CHECK(progress_text({.name = "read", .unit = "bytes", .total = 0, .done = 3 << 20, .seconds = 61}, 99) ==
        "read  3.0 MiB  1:01");
  // More than was announced is all of it, never 101 %.
  CHECK(progress_text({.name = "scan", .unit = "rows", .total = 10, .done = 11, .seconds = 1}, 99).find("100 %  10 of 10 rows") !=
        std::string::npos);
}

TEST_CASE("a finished stage says how much and how fast") {
  CHECK(finished_text({.name = "scan", .unit = "tokens", .total = 5, .done = 3'000'000, .seconds = 1.5}) ==
        "scan: 3,000,000 tokens in 1.5 s (2,000,000/s)");
  CHECK(finished_text({.name = "scan", .unit = "bytes", .total = 5, .done = 1024, .seconds = 0}) == "scan: 1.0 KiB in 0.0 s");
}

TEST_CASE("elsewhere than on a terminal a stage is a line at its start and one at its end, or nothing") {
  const auto run = [](Console& console, ProgressStyle style) {
    ProgressBar progress(console, style, false);
    progress.begin_stage("scan", 10, "rows");
    progress.advance(10);
    progress.end_stage();
    const std::vector<StageRecord> stages = progress.stages();
    REQUIRE(stages.size() == 1);
    CHECK(stages[0].done == 10);
  };
  CHECK(written([&](Console& console) { run(console, ProgressStyle::lines); }) ==
        "shardpack: scan ...\nshardpack: scan: 10 rows in 0.0 s\n");
  CHECK(written([&](Console& console) { run(console, ProgressStyle::none); }).empty());
  CHECK(progress_style(When::automatic, false, false, -1) == ProgressStyle::none);
  CHECK(progress_style(When::automatic, false, true, -1) == ProgressStyle::lines);
  CHECK(progress_style(When::always, false, false, -1) == ProgressStyle::lines);
  CHECK(progress_style(When::always, true, false, -1) == ProgressStyle::none);
  CHECK(progress_style(When::never, false, true, -1) == ProgressStyle::none);
}

TEST_CASE("the bar is painted at most six times a second, and is gone in the end") {
  const std::string text = written([](Console& console) {
    ProgressBar progress(console, ProgressStyle::bar, false);
    progress.begin_stage("scan", 1000, "rows");
    for (int i = 0; i < 60; ++i) {
      progress.advance(10);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    progress.end_stage();
  });
  std::size_t paints = 0;
  for (std::size_t at = text.find("scan  ["); at != std::string::npos; at = text.find("scan  [", at + 1)) ++paints;
  CHECK(paints >= 1);
  CHECK(paints <= 8);  // 0.6 s are 3; a loaded machine sleeps longer
  CHECK(text.substr(text.size() - 4) == "\r\x1b[K");
}

TEST_CASE("a message clears the status line before it") {
  CHECK(written([](Console& console) {
          console.status("50 %");
          console.line("hello");
          console.line("again");
        }) == "\r\x1b[K50 %\r\x1b[Khello\nagain\n");
}
