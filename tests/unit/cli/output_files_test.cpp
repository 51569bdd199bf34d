#include "cli/output_files.h"

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "io/json.h"
#include "shardpack/error.h"
#include "support/catch.h"
#include "support/temp_folder.h"

using namespace shardpack;
namespace fs = std::filesystem;

namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ErrorCode code_of(const std::string& path, bool force, std::string_view signature) {
  try {
    check_output_file(path, force, signature);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;  // stands for "fine"
}

}  // namespace

TEST_CASE("a file that is there is replaced only with --force, and only when it looks like ours") {
  const TempFolder folder;
  const std::string path = folder.path("lengths.csv");
  CHECK(code_of(path, false, "length,count") == ErrorCode::internal);
  folder.write("lengths.csv", "length,count\n1,2\n");
  CHECK(code_of(path, false, "length,count") == ErrorCode::usage);
  CHECK(code_of(path, true, "length,count") == ErrorCode::internal);
  folder.write("lengths.csv", "my thesis");
  CHECK(code_of(path, true, "length,count") == ErrorCode::usage);
  folder.write("lengths.csv", "");
  CHECK(code_of(path, true, "length,count") == ErrorCode::usage);
  CHECK(code_of(folder.path(), true, "") == ErrorCode::usage);
  CHECK(code_of(folder.path("none/lengths.csv"), true, "") == ErrorCode::io);
  CHECK(code_of("/dev/null", false, "length,count") == ErrorCode::internal);
}

TEST_CASE("a file is written whole, and equal bytes keep the old time") {
  const TempFolder folder;
  const std::string path = folder.path("plan.json");
  write_output_file(path, "one");
  CHECK(content(path) == "one");
  const auto old_time = fs::last_write_time(path) - std::chrono::hours(1);
  fs::last_write_time(path, old_time);
  write_output_file(path, "one");
  CHECK(fs::last_write_time(path) == old_time);
  write_output_file(path, "two");
  CHECK(content(path) == "two");
  CHECK(fs::last_write_time(path) != old_time);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("devices are written through and stay what they are") {
  write_output_file("/dev/null", "gone");
  CHECK(fs::is_character_file("/dev/null"));
  CHECK_THROWS_AS(write_output_file("/dev/full", "x"), Error);
}

TEST_CASE("the depfile has one rule with every input, and an empty rule for each") {
  CHECK(depfile_text("out.stamp", {"a.bin", "b c#$.bin"}) ==
        "out.stamp: \\\n  a.bin \\\n  b\\ c\\#$$.bin\na.bin:\nb\\ c\\#$$.bin:\n");
  CHECK(depfile_text("out", {}) == "out:\n");
}

TEST_CASE("a run depends on every file that it reads, each once, named as it was given") {
  const TempFolder folder;
  folder.write("shards/b.jsonl", "{\"input_ids\": [1]}\n");
  folder.write("shards/a.jsonl", "{\"input_ids\": [1]}\n");
  Settings settings;
  settings.command = Command::pack;
  const std::string shards = folder.path("shards"), config = folder.path("c.toml");
  settings.inputs = {shards + "/../shards", shards + "/b.jsonl"};
  settings.pack.read.allow_repeats = true;
  settings.config_file = config;
  settings.files_from = "-";
  CHECK(dependencies(settings) == std::vector<std::string>{shards + "/a.jsonl", shards + "/b.jsonl", config});

  settings.command = Command::verify;
  settings.inputs = {shards};
  settings.verify.against = {shards + "/b.jsonl"};
  settings.config_file.clear();
  CHECK(dependencies(settings) == std::vector<std::string>{shards + "/manifest.json", shards + "/b.jsonl"});

  settings.command = Command::plan;
  settings.inputs = {"-"};
  CHECK(dependencies(settings).empty());
}

TEST_CASE("run facts go to --stats, the stamp is touched and never cut, and only on success") {
  const TempFolder folder;
  Settings settings;
  settings.command = Command::pack;
  settings.stats_file = folder.path("stats.json");
  settings.stamp_file = folder.path("stamp");
  Console console(-1);
  ProgressBar progress(console, ProgressStyle::none, true);
  progress.begin_stage("scan", 10, "tokens");
  progress.advance(10);
  progress.end_stage();
  const RunFacts facts{.tokens = 1000, .input_bytes = 2000, .output_bytes = 3000, .seconds = 0.5};
  write_side_files(settings, facts, progress, 2, false);
  CHECK_FALSE(fs::exists(settings.stamp_file));

  const Json stats = Json::parse(content(settings.stats_file), "stats.json");
  CHECK(stats.at("threads").as_int() == 2);
  CHECK(stats.at("tokens_per_second").as_double() == 2000);
  CHECK(stats.at("output_bytes").as_int() == 3000);
  CHECK(stats.at("peak_rss_bytes").as_int() > 0);
  CHECK(stats.at("peak_anonymous_bytes").as_int() > 0);
  CHECK(stats.at("peak_anonymous_bytes").as_int() <= stats.at("peak_rss_bytes").as_int());
  CHECK(stats.at("stages").at(std::size_t{0}).at("done").as_int() == 10);

  folder.write("stamp", "by mistake");
  const auto old_time = fs::last_write_time(settings.stamp_file) - std::chrono::hours(1);
  fs::last_write_time(settings.stamp_file, old_time);
  write_side_files(settings, facts, progress, 2, true);
  CHECK(content(settings.stamp_file) == "by mistake");
  CHECK(fs::last_write_time(settings.stamp_file) > old_time);
}

TEST_CASE("side files have no place inside a packed dataset") {
  const TempFolder folder;
  Settings settings;
  settings.command = Command::pack;
  settings.output = folder.path("packed");
  fs::create_directory(settings.output);
  settings.stamp_file = settings.output + "/.stamp";
  CHECK_THROWS_AS(check_side_files(settings), Error);
  settings.stamp_file = folder.path("packed.stamp");
  CHECK_NOTHROW(check_side_files(settings));
}
