// Outputs appear whole or not at all, and nothing that is not ours is ever touched.
#include "io/staged_output.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/exchange_folders.h"
#include "io/file.h"
#include "io/manifest_parts.h"
#include "io/packed_dataset.h"
#include "shardpack/error.h"
#include "support/catch.h"
#include "support/packed_sample.h"
#include "support/temp_folder.h"

using namespace shardpack;
namespace fs = std::filesystem;

namespace {

class Notes final : public Diagnostics {
 public:
  void warn(std::string_view line) override { text += line; }
  void info(std::string_view line) override { text += line; }
  void debug(std::string_view) override {}
  std::string text;
};

/// The error that an action ends in.
struct Failure {
  ErrorCode code;
  std::string text;
};
Failure failure(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  FAIL("no error");
  return {};
}
/// Both the real thing and the check that a dry run makes.
Failure refusal(const std::string& output, bool force) {
  NoDiagnostics quiet;
  const Failure checked = failure([&] { check_output_place(output, kPackedFormat, force); });
  const Failure taken = failure([&] { StagedOutput(output, kPackedFormat, force, quiet); });
  CHECK(checked.code == taken.code);
  CHECK(checked.text == taken.text);
  return taken;
}
bool says(const Failure& found, std::string_view text) {
  UNSCOPED_INFO(found.text);
  return found.text.find(text) != std::string::npos;
}

/// Write a dataset and publish it.
void publish_dataset(const std::string& output, bool force, Diagnostics& diagnostics, int zstd_level = 0) {
  StagedOutput staged(output, kPackedFormat, force, diagnostics);
  write_sample_dataset(staged.folder(), zstd_level);
  staged.publish();
}
void publish_dataset(const std::string& output, bool force = false, int zstd_level = 0) {
  NoDiagnostics quiet;
  publish_dataset(output, force, quiet, zstd_level);
}

std::vector<std::string> listing(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}
using Names = std::vector<std::string>;

fs::file_time_type age(const std::string& path) {
  const fs::file_time_type time = fs::last_write_time(path) - std::chrono::hours(48);
  fs::last_write_time(path, time);
  return time;
}

/// Run `action` in a process of its own that is then killed, as by kill -9: no destructor runs.
void run_and_kill(const std::function<void()>& action) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    try {
      action();
    } catch (...) {
      ::_exit(1);
    }
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
}

}  // namespace

TEST_CASE("an output of another kind is never replaced") {
  const TempFolder folder;
  publish_dataset(folder.path("out"));
  NoDiagnostics quiet;
  const Failure found = failure([&] { StagedOutput(folder.path("out"), kLtdFormat, true, quiet); });
  CHECK(found.code == ErrorCode::usage);
  CHECK(says(found, "another kind (shardpack-packed)"));
  publish_dataset(folder.path("out"), true);
}

TEST_CASE("a fresh output appears by publish and not before") {
  const TempFolder folder;
  NoDiagnostics quiet;
  check_output_place(folder.path("out"), kPackedFormat, false);
  CHECK(listing(folder.path()).empty());
  {
    StagedOutput staged(folder.path("out"), kPackedFormat, false, quiet);
    CHECK(staged.folder() == folder.path("out.partial"));
    CHECK(listing(folder.path()) == Names{"out.partial"});
    fs::create_directory(staged.folder() + "/shard");
    staged.write_file("shard/data", "abc");
    staged.write_file("manifest.json", "{}");
    staged.publish();
    CHECK(listing(folder.path()) == Names{"out"});
  }
  CHECK(listing(folder.path()) == Names{"out"});
  CHECK(listing(folder.path("out")) == Names{"manifest.json", "shard"});
  CHECK(read_small_file(folder.path("out/shard/data")) == "abc");
}

TEST_CASE("an output that is not published leaves nothing") {
  const TempFolder folder;
  NoDiagnostics quiet;
  {
    StagedOutput staged(folder.path("out"), kPackedFormat, false, quiet);
    staged.write_file("manifest.json", "{}");
    fs::create_directory(staged.folder() + "/shard");
  }
  CHECK(listing(folder.path()).empty());
}

TEST_CASE("an output that exists is refused, with --force as the remedy") {
  const TempFolder folder;
  publish_dataset(folder.path("out"));
  const Failure found = refusal(folder.path("out"), false);
  CHECK(found.code == ErrorCode::usage);
  CHECK(says(found, "--force"));
  CHECK(listing(folder.path()) == Names{"out"});
}

TEST_CASE("force replaces what we made, also when it is damaged") {
  const TempFolder folder;
  const std::string out = folder.path("out");
  publish_dataset(out);
  CHECK(fs::exists(out + "/shard-00000-00000/input_ids.npy"));
  publish_dataset(out, true, 3);
  CHECK(listing(folder.path()) == Names{"out"});
  CHECK(listing(out) == Names{"manifest.json", "shard-00000-00000"});
  CHECK_FALSE(fs::exists(out + "/shard-00000-00000/input_ids.npy"));
  CHECK(fs::exists(out + "/shard-00000-00000/input_ids.npy.zst"));

  std::string manifest = read_small_file(out + "/manifest.json");
  manifest.resize(manifest.size() / 2);
  folder.write("out/manifest.json", manifest);
  publish_dataset(out, true);
  CHECK(listing(folder.path()) == Names{"out"});
}

TEST_CASE("force without an old output is no different") {
  const TempFolder folder;
  publish_dataset(folder.path("out"), true);
  CHECK(listing(folder.path()) == Names{"out"});
}

TEST_CASE("force never replaces what we did not make") {
  const TempFolder folder;
  fs::create_directory(folder.path("empty"));
  folder.write("photos/a.jpg", "x");
  folder.write("other/manifest.json", R"({ "format": "other-packed" })");
  folder.write("file", "x");
  fs::create_directories(folder.path("folder/manifest.json"));
  for (const char* name : {"empty", "photos", "other", "folder"}) {
    CHECK(says(refusal(folder.path(name), true), "not made by shardpack"));
    CHECK(refusal(folder.path(name), true).code == ErrorCode::usage);
    CHECK(refusal(folder.path(name), false).code == ErrorCode::usage);
  }
  CHECK(says(refusal(folder.path("file"), true), "not a folder"));
  CHECK(listing(folder.path()) == Names{"empty", "file", "folder", "other", "photos"});
  CHECK(read_small_file(folder.path("photos/a.jpg")) == "x");
}

TEST_CASE("force does not take along a file that somebody put into our folder") {
  const TempFolder folder;
  publish_dataset(folder.path("out"));
  folder.write("out/.stamp", "hidden ones do not count");
  publish_dataset(folder.path("out"), true);
  const std::string notes = folder.write("out/notes.txt", "x");
  CHECK(says(refusal(folder.path("out"), true), "holds notes.txt, which was not made by shardpack"));
  fs::remove(notes);
  folder.write("out/shard-00000-00000/labels.npy", "x");
  CHECK(says(refusal(folder.path("out"), true), "holds shard-00000-00000/labels.npy"));
}

TEST_CASE("a place that cannot be is refused before anything is read") {
  const TempFolder folder;
  const Failure missing = refusal(folder.path("no/such/out"), false);
  CHECK(missing.code == ErrorCode::io);
  CHECK(says(missing, "does not exist"));
  folder.write("file", "x");
  CHECK(refusal(folder.path("file/out"), false).code == ErrorCode::io);
  CHECK(refusal("/", true).code == ErrorCode::usage);
  CHECK(refusal("", false).code == ErrorCode::usage);
  fs::create_symlink("nowhere", folder.path("link"));
  CHECK(refusal(folder.path("link"), false).code == ErrorCode::usage);
  if (::geteuid() != 0) {
    fs::create_directory(folder.path("locked"));
    fs::permissions(folder.path("locked"), fs::perms::owner_read | fs::perms::owner_exec);
    CHECK(refusal(folder.path("locked/out"), false).code == ErrorCode::io);
  }
}

TEST_CASE("every spelling of a name means the same folder") {
  const TempFolder folder;
  NoDiagnostics quiet;
  for (const char* spelling : {"out/", "out//", "out/.", "out/./", "./out", "sub/../out"}) {
    fs::create_directory(folder.path("sub"));
    INFO(spelling);
    publish_dataset(folder.path(spelling));
    CHECK(listing(folder.path()) == Names{"out", "sub"});
    fs::remove_all(folder.path("out"));
  }
}

TEST_CASE("relative names, dots and links to folders are followed to the real one") {
  const TempFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  publish_dataset("out");
  CHECK(listing(folder.path()) == Names{"out"});
  fs::current_path(folder.path("out"));
  CHECK(refusal(".", false).code == ErrorCode::usage);
  publish_dataset(".", true);
  fs::current_path(folder.path("out/shard-00000-00000"));
  publish_dataset("..", true);
  fs::current_path(before);
  CHECK(listing(folder.path()) == Names{"out"});

  fs::create_directory(folder.path("disk"));
  fs::rename(folder.path("out"), folder.path("disk/real"));
  fs::create_directory_symlink("disk/real", folder.path("out"));
  publish_dataset(folder.path("out"), true, 1);
  CHECK(fs::is_symlink(folder.path("out")));
  CHECK(listing(folder.path("disk")) == Names{"real"});
  CHECK(fs::exists(folder.path("disk/real/shard-00000-00000/input_ids.npy.zst")));
}

TEST_CASE("files that come out equal keep their modification time, others do not") {
  const TempFolder folder;
  const std::string out = folder.path("out"), shard = out + "/shard-00000-00000/";
  publish_dataset(out);
  const auto ids_time = age(shard + "input_ids.npy"), manifest_time = age(out + "/manifest.json");
  const auto lengths_time = age(shard + "seq_lengths.npy");
  std::string changed = read_small_file(shard + "seq_lengths.npy");
  changed.back() = static_cast<char>(changed.back() + 1);
  folder.write("out/shard-00000-00000/seq_lengths.npy", changed);
  fs::last_write_time(shard + "seq_lengths.npy", lengths_time);

  publish_dataset(out, true);
  CHECK(fs::last_write_time(shard + "input_ids.npy") == ids_time);
  CHECK(fs::last_write_time(out + "/manifest.json") == manifest_time);
  CHECK(fs::last_write_time(shard + "seq_lengths.npy") > lengths_time);
}

TEST_CASE("what a killed run left is removed with a note") {
  const TempFolder folder;
  const std::string out = folder.path("out");
  run_and_kill([&] {
    NoDiagnostics quiet;
    auto* const staged = new StagedOutput(out, kPackedFormat, false, quiet);
    write_sample_dataset(staged->folder());
  });
  CHECK(listing(folder.path()) == Names{"out.partial"});
  check_output_place(out, kPackedFormat, false);
  CHECK(fs::exists(folder.path("out.partial/manifest.json")));  // a check takes nothing away

  Notes notes;
  {
    StagedOutput staged(out, kPackedFormat, false, notes);
    CHECK(listing(staged.folder()) == Names{".shardpack-owner"});
    CHECK(notes.text.find("out.partial: removed what an interrupted run had left") != std::string::npos);
  }
  CHECK(listing(folder.path()).empty());

  // Killed between making the folder and its marker.
  fs::create_directory(folder.path("out.partial"));
  publish_dataset(out);
  CHECK(listing(folder.path()) == Names{"out"});
}

TEST_CASE("a run killed after publishing but before the old output was deleted leaves it to the next") {
  const TempFolder folder;
  const std::string out = folder.path("out");
  publish_dataset(out);
  // The state after the exchange: both folders have markers.
  publish_dataset(folder.path("new"), false, 3);
  folder.write("out/.shardpack-owner", "");
  folder.write("new/.shardpack-owner", "");
  fs::rename(out, folder.path("out.partial"));
  fs::rename(folder.path("new"), out);

  Notes notes;
  publish_dataset(out, true, notes, 3);
  CHECK(notes.text.find("removed what an interrupted run had left") != std::string::npos);
  CHECK(listing(folder.path()) == Names{"out"});
  CHECK(listing(out) == Names{"manifest.json", "shard-00000-00000"});
}

TEST_CASE("killed at any moment, a run leaves the old output or the new one, whole, and the next run works") {
  const TempFolder folder;
  const std::string out = folder.path("out");
  publish_dataset(out);
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (int level = 0;; level = 3 - level) publish_dataset(out, true, level);
    }
    ::usleep(static_cast<useconds_t>(1000 + 3777 * round % 40'000));
    ::kill(child, SIGKILL);
    REQUIRE(::waitpid(child, nullptr, 0) == child);

    for (const std::string& name : listing(folder.path())) CHECK((name == "out" || name == "out.partial"));
    const PackedDataset dataset(out);
    for (const ManifestFile& file : dataset.shards().front().files) {
      CHECK(hash_hex(read_small_file(dataset.file_path("shard-00000-00000", file.name))) == file.hash);
    }
  }
  publish_dataset(out, true);
  CHECK(listing(folder.path()) == Names{"out"});
  CHECK(listing(out) == Names{"manifest.json", "shard-00000-00000"});
}

TEST_CASE("a staging folder that is not ours is refused and never followed") {
  const TempFolder folder;
  const std::string out = folder.path("out"), precious = folder.write("precious/data", "x");
  fs::create_directory_symlink("precious", folder.path("out.partial"));
  folder.write("precious/.shardpack-owner", "");
  CHECK(says(refusal(out, false), "not made by shardpack"));
  CHECK(refusal(out, false).code == ErrorCode::usage);
  CHECK(fs::exists(precious));
  fs::remove(folder.path("out.partial"));

  folder.write("out.partial/data", "x");
  CHECK(says(refusal(out, false), "not made by shardpack"));
  CHECK(fs::exists(folder.path("out.partial/data")));
  fs::remove_all(folder.path("out.partial"));

  publish_dataset(folder.path("out.partial"));  // a dataset of ours that somebody named so
  CHECK(says(refusal(out, false), "out.partial"));
  CHECK(fs::exists(folder.path("out.partial/manifest.json")));
  fs::remove_all(folder.path("out.partial"));

  folder.write("out.partial", "a file");
  CHECK(says(refusal(out, false), "not made by shardpack"));
  fs::remove(folder.path("out.partial"));

  fs::create_directory(folder.path("out.partial"));
  fs::create_symlink(precious, folder.path("out.partial/.shardpack-owner"));
  CHECK(says(refusal(out, false), "not made by shardpack"));
}

TEST_CASE("a place that a living run holds is refused, and free once it has ended") {
  const TempFolder folder;
  const std::string out = folder.path("out");
  int ready[2], done[2];
  REQUIRE(::pipe(ready) == 0);
  REQUIRE(::pipe(done) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  char byte = 0;
  if (child == 0) {
    ::close(done[1]);
    NoDiagnostics quiet;
    auto* const staged = new StagedOutput(out, kPackedFormat, false, quiet);
    staged->write_file("manifest.json", "{}");
    (void)!::write(ready[1], "x", 1);
    (void)!::read(done[0], &byte, 1);
    ::_exit(0);
  }
  ::close(done[0]);
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  const Failure found = refusal(out, true);
  CHECK(found.code == ErrorCode::usage);
  CHECK(says(found, "another run of shardpack is writing here"));
  CHECK(fs::exists(folder.path("out.partial/manifest.json")));

  ::close(done[1]);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  publish_dataset(out);
  CHECK(listing(folder.path()) == Names{"out"});
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("an output that somebody makes meanwhile is not replaced, and the new one not lost") {
  const TempFolder folder;
  NoDiagnostics quiet;
  {
    StagedOutput staged(folder.path("out"), kPackedFormat, false, quiet);
    staged.write_file("manifest.json", "{}");
    folder.write("out/data", "x");
    const Failure found = failure([&] { staged.publish(); });
    CHECK(found.code == ErrorCode::usage);
    CHECK(says(found, "stays in " + folder.path("out.partial")));
  }
  CHECK(listing(folder.path()) == Names{"out", "out.partial"});
  CHECK(listing(folder.path("out")) == Names{"data"});
  CHECK(listing(folder.path("out.partial")) == Names{"manifest.json"});
}

TEST_CASE("folders are exchanged, with or without the file system's help") {
  const TempFolder folder;
  for (const auto exchange : {exchange_folders, exchange_by_renames}) {
    folder.write("a/new", "");
    folder.write("b/old", "");
    exchange(folder.path("a"), folder.path("b"), folder.path("aside"));
    CHECK(listing(folder.path()) == Names{"a", "b"});
    CHECK(listing(folder.path("a")) == Names{"old"});
    CHECK(listing(folder.path("b")) == Names{"new"});
    fs::remove_all(folder.path("a"));
    fs::remove_all(folder.path("b"));
  }
  folder.write("a/new", "");
  folder.write("b/old", "");
  folder.write("aside/theirs", "");
  CHECK(failure([&] { exchange_by_renames(folder.path("a"), folder.path("b"), folder.path("aside")); }).code == ErrorCode::io);
  CHECK(failure([&] { exchange_by_renames(folder.path("none"), folder.path("b"), folder.path("c")); }).code == ErrorCode::io);
  CHECK(listing(folder.path()) == Names{"a", "aside", "b"});
  CHECK(listing(folder.path("b")) == Names{"old"});
}

TEST_CASE("a run killed between renames loses no output") {
  const TempFolder folder;
  const std::string out = folder.path("out");
  publish_dataset(out);
  folder.write("out/.shardpack-owner", "");

  // After the first rename: the old output stands aside, the new one is still staged.
  fs::rename(out, folder.path("out.replaced"));
  folder.write("out.partial/.shardpack-owner", "");
  Notes notes;
  CHECK(failure([&] { StagedOutput(out, kPackedFormat, false, notes); }).code == ErrorCode::usage);  // it is there again
  CHECK(notes.text.find("put back the output") != std::string::npos);
  CHECK(listing(out) == Names{"manifest.json", "shard-00000-00000"});
  publish_dataset(out, true);
  CHECK(listing(folder.path()) == Names{"out"});

  // After the second: the new one is in place, the old one goes.
  publish_dataset(folder.path("old"));
  folder.write("old/.shardpack-owner", "");
  fs::rename(folder.path("old"), folder.path("out.replaced"));
  publish_dataset(out, true);
  CHECK(listing(folder.path()) == Names{"out"});

  // A folder of that name without our marker is nobody's business.
  publish_dataset(folder.path("out.replaced"));
  publish_dataset(out, true);
  CHECK(listing(folder.path()) == Names{"out", "out.replaced"});
}
