// Every call that touches a file is made to fail, one after the other, in whole runs of the command line; and the process or the
// machine ends there. Whatever happens, an output is absent, or the old one whole, or the new one whole; a run is gone on with to
// the same bytes, without writing a finished shard again; and the next run leaves nothing behind.
//
// The test proper takes every so many calls; "[every]" (./dev faults) takes all.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/app.h"
#include "faulty_system_calls.h"
#include "io/journal.h"
#include "io/owned_folder.h"
#include "io/part_notes.h"
#include "support/catch.h"
#include "support/compressed.h"
#include "support/folder_bytes.h"
#include "support/shard_files.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;
using faults::Kind;
using Arguments = std::vector<std::string>;
using Bytes = std::map<std::string, std::string>;

constexpr const char* kKindNames[] = {
    "none", "error", "disk full", "read-only file system", "kill", "power cut", "power cut before renames", "short transfers"};

/// A command with an output folder, and how its file system is.
struct Scenario {
  std::string name;
  Arguments command, old_command;  // without the output; the old one has made what stands there; empty = nothing does
  bool resumable = false;
  bool can_exchange = true, has_unnamed = true;
};

/// Inputs and what is run on them. Small, for the number of calls is the number of runs; but with several partitions, shards,
/// plans and removed sequences.
struct Inputs {
  Inputs() {
    std::vector<Sequences> files(2);
    std::string lines;
    for (std::uint32_t i = 0; i < 60; ++i) {
      std::vector<std::uint32_t> ids;
      for (std::uint32_t t = 0; t < 1 + i * 7919 % 50; ++t) ids.push_back(1 + (i * 31 + t) % 5000);
      std::string line;
      for (const std::uint32_t id : ids) line += (line.empty() ? "" : ",") + std::to_string(id);
      lines += "{\"input_ids\":[" + line + "]}\n";
      files[i / 40].push_back(ids);
    }
    const std::string a = write_npy<std::uint16_t>(folder, "a", "<u2", files[0]),
                      b = write_npy<std::uint16_t>(folder, "b", "<u2", files[1]);
    const std::string json = folder.write("c.jsonl.gz", gzip_member(lines));
    const Arguments pack{"pack",  a,
                         b,       "-L",
                         "32",    "--overlong",
                         "split", "--split-min-tokens",
                         "5",     "--rows-multiple",
                         "3",     "--shard-bytes",
                         "4096",  "--partition-tokens",
                         "700"};
    const auto with = [](Arguments arguments, const Arguments& more) {
      arguments.insert(arguments.end(), more.begin(), more.end());
      return arguments;
    };
    const Arguments forced = with(pack, {"--force"}), old = with(pack, {"--seed", "1", "--compress", "zstd"});
    const Arguments batch{"batch", a, b, "--batch-size", "4", "--force"};
    const Arguments batch_shards{"batch",    a,
                                 b,          "--batch-size",
                                 "6",        "--world",
                                 "3",        "--max-length",
                                 "40",       "--overlong",
                                 "truncate", "--write-shards",
                                 "padded",   "--shard-bytes",
                                 "700"};
    const Arguments ltd{"ltd",    "-L",
                        "64",     "--layers",
                        "4",      "--kept-start",
                        "16",     "--ramp-steps",
                        "3",      "--total-steps",
                        "4",      "--global-batch",
                        "2",      "--write-indices",
                        "--force"};
    scenarios = {
        {"pack", pack, {}, true},
        {"pack --force", forced, old, true},
        {"pack --force of the same", forced, pack, true},
        {"pack --force by renames", with(forced, {"--compress", "zstd"}), pack, true, false},
        {"pack of lines", {"pack", json, "-L", "64", "--shard-bytes", "2048"}, {}, true, true, false},
        {"batch", batch, {}},
        {"batch --force", batch, with(batch, {"--seed", "5"})},
        {"batch --write-shards", batch_shards, {}, true},
        {"batch --write-shards --force", with(batch_shards, {"--force", "--compress", "zstd"}), batch_shards, true},
        {"ltd --force", ltd, with(ltd, {"--seed", "5"})},
    };
  }
  TempFolder folder;
  std::vector<Scenario> scenarios;
};

struct Run {
  int exit_code = 0;  // or -signal
  faults::Counts counts;
  std::string errors;
};

/// The command in a process of its own.
Run run(Arguments arguments, const std::string& output, const faults::Plan& plan, int threads) {
  if (arguments.front() != "join") arguments.emplace_back("-o");
  arguments.insert(arguments.end(), {output, "--threads", std::to_string(threads), "--progress", "never"});
  void* const shared = ::mmap(nullptr, sizeof(faults::Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  std::FILE* const errors = std::tmpfile();
  REQUIRE(errors != nullptr);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(60);  // a run that hangs
    ::dup2(::fileno(errors), STDERR_FILENO);
    ::dup2(::fileno(errors), STDOUT_FILENO);
    std::vector<const char*> argv{"shardpack"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    faults::begin(plan);
    const int code = run_application(static_cast<int>(argv.size()), argv.data(), {});
    *static_cast<faults::Counts*>(shared) = faults::counts();
    ::_exit(code);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  Run result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  result.counts = *static_cast<faults::Counts*>(shared);
  ::munmap(shared, sizeof(faults::Counts));
  std::rewind(errors);
  char buffer[4096];
  while (const std::size_t bytes = std::fread(buffer, 1, sizeof buffer, errors)) result.errors.append(buffer, bytes);
  std::fclose(errors);
  return result;
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

Bytes output_bytes(const std::string& output) {
  Bytes bytes = folder_bytes(output);
  bytes.erase(std::string(kOwnerMarker));  // means nothing in an output
  return bytes;
}

/// Shards that an interrupted run noted as finished.
std::set<std::string> journaled(const std::string& partial) {
  std::set<std::string> names;
  const std::string marker = partial + "/" + std::string(kOwnerMarker);
  if (!fs::exists(marker)) return names;
  const File file(marker, File::Mode::read);
  const Journal journal(file);
  for (const ManifestShard& shard : journal.shards()) names.insert(shard.folder);
  return names;
}

/// Runs a scenario with one fault after the other.
class Driver {
 public:
  Driver(const Inputs& inputs, const Scenario& scenario) : inputs_(inputs), scenario_(scenario) {
    const Run undisturbed = run(scenario.command, inputs.folder.path("new/out"), prepare("new", {}), 1);
    INFO(undisturbed.errors);
    REQUIRE(undisturbed.exit_code == 0);
    new_ = output_bytes(inputs.folder.path("new/out"));
    shards_ = undisturbed.counts.shard_folders;
    if (!scenario.old_command.empty()) {
      REQUIRE(run(scenario.old_command, inputs.folder.path("old/out"), prepare("old", {}), 1).exit_code == 0);
      old_ = output_bytes(inputs.folder.path("old/out"));
    }
    calls_ = disturbed({}).counts.calls;
    check_clean("run", "an undisturbed run");
  }

  std::int64_t calls() const { return calls_; }
  std::int64_t runs() const { return runs_; }
  std::int64_t resumed() const { return resumed_; }

  /// The fault, then everything that must hold.
  void drive(const faults::Plan& fault) {
    ++runs_;
    const Run found = disturbed(fault);
    const std::string what =
        scenario_.name + ", " + kKindNames[static_cast<int>(fault.kind)] + " at call " + std::to_string(fault.at);
    INFO(what << ": exit " << found.exit_code << "\n" << found.errors);
    const bool process_ends =
        fault.kind == Kind::kill || fault.kind == Kind::power_cut || fault.kind == Kind::power_cut_before_renames;
    if (process_ends) {
      REQUIRE((found.exit_code == -SIGKILL || found.exit_code == 0));  // 0: threads took turns otherwise, and made fewer calls
    } else {
      REQUIRE((found.exit_code == 0 || found.exit_code == kExitIo));
    }

    const std::string run_folder = path("run");
    const Bytes output = output_bytes(path("run/out"));
    const bool is_new = output == new_;
    INFO("not as new: " << differing(output));
    REQUIRE((is_new || output == old_ || (output.empty() && stands_aside())));
    if (found.exit_code == 0) REQUIRE(is_new);
    for (const std::string& name : names_in(run_folder)) {
      INFO("left behind: " << name);
      REQUIRE((name == "out" || name == "out.partial" || (name == "out.replaced" && !scenario_.can_exchange)));
    }
    const std::set<std::string> finished = journaled(path("run/out.partial"));
    if (found.exit_code == kExitIo && !is_new) REQUIRE((found.errors.find("--resume") != std::string::npos) == !finished.empty());
    if (!scenario_.resumable) REQUIRE(finished.empty());

    // The next run: gone on with, and begun again.
    fs::copy(run_folder, path("again"), fs::copy_options::recursive);
    follow_up("again", {}, what + ", then the next run", is_new);
    if (scenario_.resumable) {
      const Run resumed = follow_up("run", {"--resume"}, what + ", then --resume", is_new);
      if (!finished.empty() && !is_new) {
        INFO(finished.size() << " of " << shards_ << " shards were finished, " << resumed.counts.shard_folders << " made\n"
                             << resumed.errors);
        REQUIRE(resumed.counts.shard_folders == shards_ - static_cast<std::int64_t>(finished.size()));
        ++resumed_;
      }
    }
  }

 private:
  std::string path(const std::string& name) const { return inputs_.folder.path(name); }

  /// A folder of that name that is empty, or holds the old output.
  faults::Plan prepare(const std::string& name, faults::Plan plan) const {
    fs::remove_all(path(name));
    fs::create_directory(path(name));
    if (!old_.empty()) fs::copy(path("old/out"), path(name + "/out"), fs::copy_options::recursive);
    plan.root = path(name);
    return on_file_system(plan);
  }
  faults::Plan on_file_system(faults::Plan plan) const {
    plan.can_exchange = scenario_.can_exchange;
    plan.has_unnamed = scenario_.has_unnamed;
    return plan;
  }

  Run disturbed(const faults::Plan& fault) {
    fs::remove_all(path("again"));
    const faults::Plan plan = prepare("run", fault);
    return run(scenario_.command, path("run/out"), plan, threads());
  }

  /// Files that are not as in the new output, for whoever reads a failure.
  std::string differing(const Bytes& output) const {
    std::string names;
    for (const auto& [name, bytes] : new_) {
      const auto found = output.find(name);
      if (found == output.end() || found->second != bytes) names += name + " ";
    }
    for (const auto& [name, bytes] : output) {
      if (new_.find(name) == new_.end()) names += name + " ";
    }
    return names;
  }

  bool stands_aside() const {
    return old_.empty() || (!scenario_.can_exchange && output_bytes(path("run/out.replaced")) == old_);
  }

  Run follow_up(const std::string& folder, const Arguments& more, const std::string& what, bool is_published) {
    Arguments arguments = scenario_.command;
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Run found = run(arguments, path(folder + "/out"), on_file_system({}), threads());
    INFO(what << ": exit " << found.exit_code << "\n" << found.errors);
    const bool forced = std::find(arguments.begin(), arguments.end(), "--force") != arguments.end();
    REQUIRE(found.exit_code == (is_published && !forced ? kExitUsage : 0));
    check_clean(folder, what);
    return found;
  }

  /// The new output, and nothing else of ours.
  void check_clean(const std::string& folder, const std::string& what) const {
    INFO(what);
    REQUIRE(names_in(path(folder)) == std::set<std::string>{"out"});
    REQUIRE(folder_bytes(path(folder + "/out")) == new_);
  }

  int threads() { return 1 + static_cast<int>(turn_++ % 3); }

  const Inputs& inputs_;
  const Scenario& scenario_;
  Bytes new_, old_;
  std::int64_t shards_ = 0, calls_ = 0, runs_ = 0, resumed_ = 0;
  std::uint64_t turn_ = 0;
};

constexpr Kind kKinds[] = {Kind::error, Kind::disk_full, Kind::read_only,
                           Kind::kill,  Kind::power_cut, Kind::power_cut_before_renames};

/// Each scenario is a section (`-c NAME` runs one alone): every kind at each `stride`-th call, the kinds at different ones.
void drive_all(std::int64_t stride) {
  const Inputs inputs;
  for (const Scenario& scenario : inputs.scenarios) {
    DYNAMIC_SECTION(scenario.name) {
      Driver driver(inputs, scenario);
      driver.drive({.kind = Kind::short_transfers});
      std::int64_t first = 0;
      for (const Kind kind : kKinds) {
        for (std::int64_t at = first++ % stride; at < driver.calls(); at += stride) driver.drive({.kind = kind, .at = at});
      }
      std::printf("%s: %lld calls, %lld faults, %lld runs with finished shards resumed\n", scenario.name.c_str(),
                  static_cast<long long>(driver.calls()), static_cast<long long>(driver.runs()),
                  static_cast<long long>(driver.resumed()));
      std::fflush(stdout);  // or the next child prints it once more
      CHECK((driver.resumed() > 0) == (scenario.resumable && scenario.name != "pack --force of the same"));
    }
  }
}

/// Parts of one output, and the joining of them: each step with one fault after the other. A step that failed is done again, with
/// --resume, and at the end there are the bytes of one machine's pack, and nothing else.
void drive_parts(std::int64_t stride) {
  const Inputs inputs;
  const auto path = [&](const std::string& name) { return inputs.folder.path(name); };
  const Arguments& pack = inputs.scenarios.front().command;
  fs::create_directory(path("one"));
  REQUIRE(run(pack, path("one/out"), {}, 1).exit_code == 0);
  const Bytes expected = output_bytes(path("one/out"));
  const Arguments scan{"scan", pack[1], pack[2], "--partition-tokens", "700", "--save", path("scan")};
  fs::create_directory(path("histogram"));
  REQUIRE(run(scan, path("histogram/lengths.csv"), {}, 1).exit_code == 0);
  const auto part = [&](const std::string& which) {
    Arguments arguments = pack;
    arguments.insert(arguments.end(), {"--scan", path("scan"), "--part", which, "--resume"});
    return arguments;
  };
  const std::vector<Arguments> steps{part("2/2"), part("1/2"), {"join"}};

  std::int64_t faults = 0, calls = 0;
  for (std::size_t failing = 0; failing < steps.size(); ++failing) {
    // What the steps before leave is made once.
    fs::remove_all(path("before"));
    fs::create_directory(path("before"));
    for (std::size_t s = 0; s < failing; ++s) REQUIRE(run(steps[s], path("before/out"), {}, 1).exit_code == 0);
    const auto begin_again = [&] {
      fs::remove_all(path("run"));
      fs::copy(path("before"), path("run"), fs::copy_options::recursive);
    };
    begin_again();
    const Run undisturbed = run(steps[failing], path("run/out"), {.root = path("run")}, 1);
    REQUIRE(undisturbed.exit_code == 0);
    calls += undisturbed.counts.calls;
    std::int64_t first = 0;
    for (const Kind kind : kKinds) {
      for (std::int64_t at = first++ % stride; at < undisturbed.counts.calls; at += stride) {
        begin_again();
        const Run found = run(steps[failing], path("run/out"), {.kind = kind, .at = at, .root = path("run")}, 1);
        ++faults;
        INFO("step " << failing << ", " << kKindNames[static_cast<int>(kind)] << " at call " << at << ": exit " << found.exit_code
                     << "\n"
                     << found.errors);
        REQUIRE((found.exit_code == 0 || found.exit_code == kExitIo || found.exit_code == -SIGKILL));
        const Bytes output = output_bytes(path("run/out"));
        const auto notes = [](const auto& file) { return file.first.find(kPartsFolder) != std::string::npos; };
        Bytes published = output;
        std::erase_if(published, notes);  // mean nothing in an output
        REQUIRE((output.empty() || published == expected));
        if (failing + 1 < steps.size()) REQUIRE(output.empty());
        if (!output.empty()) continue;
        for (std::size_t s = failing; s < steps.size(); ++s) {
          const Run again = run(steps[s], path("run/out"), {}, 1);
          INFO("step " << s << " after it: exit " << again.exit_code << "\n" << again.errors);
          REQUIRE(again.exit_code == 0);
        }
        REQUIRE(names_in(path("run")) == std::set<std::string>{"out"});
        REQUIRE(folder_bytes(path("run/out")) == expected);
      }
    }
  }
  std::printf("parts and join: %lld calls, %lld faults\n", static_cast<long long>(calls), static_cast<long long>(faults));
  std::fflush(stdout);
}

}  // namespace

TEST_CASE("whichever call fails, outputs are whole and runs go on") { drive_all(97); }
TEST_CASE("whichever call fails, parts go on and are joined") { drive_parts(53); }
TEST_CASE("whichever call fails, parts go on and are joined: every call", "[.][every]") { drive_parts(1); }
TEST_CASE("whichever call fails, outputs are whole and runs go on: every call", "[.][every]") { drive_all(1); }

}  // namespace shardpack
