// pack after an interruption: what was finished is kept, the rest is done again, and the bytes are those of an undisturbed run.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/units.h"
#include "io/file.h"
#include "io/journal.h"
#include "io/npy.h"
#include "io/owned_folder.h"
#include "io/staged_output.h"
#include "shardpack/error.h"
#include "shardpack/jobs.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/folder_bytes.h"
#include "support/shard_files.h"
#include "support/stop_after.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

class Notes final : public Diagnostics {
 public:
  void warn(std::string_view line) override { text.append(line).append("\n"); }
  void info(std::string_view line) override { text.append(line).append("\n"); }
  void debug(std::string_view) override {}
  std::string text;
};

constexpr std::int64_t kMostRows = 21;  // of 384 bytes, in a shard of 8 KiB

/// Sequences with over-long ones, in two files, and what is done with them: shards of a few rows, several partitions, a tail.
struct Corpus {
  Corpus() {
    std::vector<Sequences> files(2);
    for (std::uint32_t i = 0; i < 300; ++i) {
      std::vector<std::uint32_t> ids;
      for (std::uint32_t t = 0; t < 1 + i * 7919 % 90; ++t) ids.push_back(1 + (i * 31 + t) % 5000);
      files[i / 200].push_back(ids);
    }
    inputs = {write_npy<std::uint32_t>(folder, "a", "<u4", files[0]), write_npy<std::uint32_t>(folder, "b", "<u4", files[1])};
    options.policy.row_tokens = options.packing.row_tokens = 64;
    options.policy.overlong = Overlong::split;
    options.policy.split_min_tokens = 5;
    options.shard_bytes = 8 << 10;
    options.partition_tokens = 5000;
    options.rows_multiple = 7;
  }

  /// \return what was said; errors are thrown
  std::string pack(std::int64_t stop_after_rows = kUndisturbed, int threads = 1) {
    ThreadPool pool(threads);
    std::stop_source stop;
    StopAfter progress(stop_after_rows, stop);
    Notes notes;
    result =
        shardpack::pack(inputs, out(), options,
                        {.pool = pool, .stop = stop.get_token(), .progress = progress, .diagnostics = notes, .temp_dir = {}});
    return notes.text;
  }
  std::string error(const std::function<void()>& action, ErrorCode expected) {
    try {
      action();
    } catch (const Error& found) {
      CHECK(found.code() == expected);
      return found.what();
    }
    FAIL("no error");
    return {};
  }
  void interrupt(std::int64_t rows, int threads = 1) {
    options.resume = false;
    message = error([&] { pack(rows, threads); }, ErrorCode::cancelled);
    options.resume = true;
  }

  std::string out() const { return folder.path("out"); }
  std::string partial() const { return out() + ".partial"; }
  std::vector<std::string> shards_in(const std::string& place) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(place)) {
      if (entry.is_directory()) names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  /// One token in five takes no part in the loss.
  void write_masks() const {
    for (const std::string& input : inputs) {
      const std::int64_t tokens = read_npy_header(File(input, File::Mode::read)).elements();
      std::vector<std::uint8_t> mask;
      for (std::int64_t t = 0; t < tokens; ++t) mask.push_back(t % 5 == 0 ? 0 : 1);
      folder.write(fs::path(input).stem().string() + ".loss_mask.npy", npy_file("|u1", {tokens}, mask));
    }
  }
  /// Of an undisturbed run.
  std::map<std::string, std::string> reference() {
    options.resume = false;
    pack();
    std::map<std::string, std::string> bytes = folder_bytes(out());
    fs::remove_all(out());
    return bytes;
  }

  TempFolder folder;
  std::vector<std::string> inputs;
  PackOptions options;
  std::string message;  // of the interruption
  PackResult result;    // of the last run that came to its end
};

bool says(const std::string& text, const std::string& part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a run that is gone on with tells the loss tokens of steps as an undisturbed one") {
  Corpus corpus;
  corpus.write_masks();
  corpus.options.shape = {2, 3, 1};
  corpus.pack();
  const StepLoss expected = corpus.result.steps.value().loss.value();
  CHECK(expected.least > 0);
  for (const std::int64_t rows : {20, 60}) {
    fs::remove_all(corpus.out());
    corpus.interrupt(rows);
    REQUIRE(fs::exists(corpus.partial()));
    corpus.pack(kUndisturbed, 2);
    const StepLoss found = corpus.result.steps.value().loss.value();
    CHECK((found.mean == expected.mean && found.least == expected.least && found.most == expected.most));
    CHECK(found.least_of_rank == expected.least_of_rank);
  }
}

TEST_CASE("finished shards between those that are made again stay, and tell their loss tokens in their turn") {
  Corpus corpus;
  corpus.write_masks();
  corpus.options.shape = {2, 1, 1};
  const bool tells_losses = GENERATE(true, false);
  if (!tells_losses) corpus.options.shape = {};
  const auto expected = corpus.reference();
  const auto figures = corpus.result.steps;
  REQUIRE(figures.has_value() == tells_losses);
  for (const int threads : {1, 2, 5}) {
    corpus.interrupt(140);
    const std::vector<std::string> shards = corpus.shards_in(corpus.partial());
    REQUIRE(shards.size() > 5);
    const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(48);
    for (std::size_t shard = 0; shard < 5; ++shard) {
      const std::string ids = "/" + shards[shard] + "/input_ids.npy";
      if (shard % 2 == 1) {
        fs::last_write_time(corpus.partial() + ids, long_ago);
      } else {
        fs::remove(corpus.partial() + ids);
      }
    }
    corpus.pack(kUndisturbed, threads);
    CHECK(folder_bytes(corpus.out()) == expected);
    for (std::size_t shard = 0; shard < 5; ++shard)
      CHECK((fs::last_write_time(corpus.out() + "/" + shards[shard] + "/input_ids.npy") == long_ago) == (shard % 2 == 1));
    if (tells_losses) {
      const StepLoss &found = corpus.result.steps->loss.value(), &whole = figures->loss.value();
      CHECK((found.mean == whole.mean && found.least == whole.least && found.most == whole.most));
      CHECK(found.least_of_rank == whole.least_of_rank);
    }
    fs::remove_all(corpus.out());
  }
}

TEST_CASE("stopped after any shard and resumed with any number of threads, pack gives the same bytes") {
  Corpus corpus;
  corpus.options.zstd_level = GENERATE(0, 3);
  const auto expected = corpus.reference();
  REQUIRE(expected.count("removed.csv") == 1);
  REQUIRE(expected.count("plan-00002.json") == 1);
  int with_kept_shards = 0;
  for (std::int64_t rows = 1;; rows += 11) {
    corpus.options.resume = false;
    try {
      corpus.pack(rows, 1 + static_cast<int>(rows % 3));
      break;  // it asked for a stop that came too late
    } catch (const Error& error) {
      REQUIRE(error.code() == ErrorCode::cancelled);
      const bool kept = fs::exists(corpus.partial());
      CHECK(says(error.what(), "--resume goes on from there") == kept);
      with_kept_shards += kept ? 1 : 0;
    }
    corpus.options.resume = true;
    const std::string notes = corpus.pack(kUndisturbed, 1 + static_cast<int>(rows / 3 % 3));
    REQUIRE(folder_bytes(corpus.out()) == expected);
    CHECK_FALSE(fs::exists(corpus.partial()));
    fs::remove_all(corpus.out());
  }
  CHECK(with_kept_shards > 5);
}

TEST_CASE("a run may be interrupted and resumed many times") {
  Corpus corpus;
  const auto expected = corpus.reference();
  corpus.interrupt(60);
  int rounds = 0;
  for (;; ++rounds) {
    try {
      const File marker(corpus.partial() + "/" + std::string(kOwnerMarker), File::Mode::read);
      corpus.pack(kMostRows * (std::ssize(Journal(marker).shards()) + 1), 2);
      break;
    } catch (const Error& error) {
      REQUIRE(error.code() == ErrorCode::cancelled);
      REQUIRE(rounds < 100);
    }
  }
  CHECK(rounds > 1);
  CHECK(folder_bytes(corpus.out()) == expected);
}

TEST_CASE("shards that are finished are not written again") {
  Corpus corpus;
  const auto expected = corpus.reference();
  corpus.interrupt(100);
  const std::vector<std::string> shards = corpus.shards_in(corpus.partial());
  REQUIRE(shards.size() > 2);
  const std::string first = "/" + shards.front() + "/input_ids.npy";
  const auto long_ago = fs::last_write_time(corpus.partial() + first) - std::chrono::hours(48);
  fs::last_write_time(corpus.partial() + first, long_ago);
  CHECK(says(corpus.pack(), "finished shards of an interrupted run, checked by hash"));
  CHECK(fs::last_write_time(corpus.out() + first) == long_ago);
  CHECK(folder_bytes(corpus.out()) == expected);
}

TEST_CASE("a shard that was damaged since, or has something beside it, is made good") {
  Corpus corpus;
  const auto expected = corpus.reference();
  corpus.interrupt(100);
  const std::vector<std::string> shards = corpus.shards_in(corpus.partial());
  REQUIRE(shards.size() > 3);
  const auto path = [&](std::size_t shard, const std::string& file) { return "out.partial/" + shards[shard] + "/" + file; };
  std::string bytes = read_small_file(corpus.folder.path(path(0, "input_ids.npy")));
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  corpus.folder.write(path(0, "input_ids.npy"), bytes);
  fs::remove(corpus.folder.path(path(1, "seq_source.npy")));
  corpus.folder.write(path(2, "stray.npy"), "x");
  corpus.folder.write("out.partial/stray", "x");
  corpus.folder.write("out.partial/stray folder/file", "x");
  corpus.pack();
  CHECK(folder_bytes(corpus.out()) == expected);
}

TEST_CASE("resume with other options or inputs is refused and says what differs") {
  Corpus corpus;
  const auto expected = corpus.reference();
  corpus.interrupt(100);
  const auto kept = folder_bytes(corpus.partial());
  const auto refused = [&](const std::string& text) {
    CHECK(says(corpus.error([&] { corpus.pack(); }, ErrorCode::usage), text));
    CHECK(folder_bytes(corpus.partial()) == kept);
  };
  corpus.options.seed = 5;
  refused("option seed was 0 and is 5; give what was given then, or leave out --resume");
  corpus.options.seed = 0;
  corpus.options.packer = "ffd";
  refused("option packer was \"auto\" and is \"ffd\"");
  corpus.options.packer = "auto";
  corpus.options.shard_bytes *= 2;
  refused("option shard_bytes was 8192 and is 16384");
  corpus.options.shard_bytes /= 2;

  const std::string input = read_small_file(corpus.inputs[0]), lengths = read_small_file(corpus.folder.path("a.lengths.npy"));
  std::string changed = input;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  corpus.folder.write("a.npy", changed);
  refused("the hash of input 1 was " + hash_hex(input + lengths) + " and is " + hash_hex(changed + lengths) + "; give");
  corpus.folder.write("a.npy", input);
  std::string other_lengths = lengths;  // a token goes from the first sequence to the second
  other_lengths[128] = static_cast<char>(other_lengths[128] - 1);
  other_lengths[132] = static_cast<char>(other_lengths[132] + 1);
  corpus.folder.write("a.lengths.npy", other_lengths);
  refused("the hash of input 1 was " + hash_hex(input + lengths) + " and is " + hash_hex(input + other_lengths) +
          ", the plan was ");
  std::vector<std::int32_t> more(201, 1);  // of other sequences
  for (std::size_t i = 0; i < 200; ++i) more[i] = static_cast<unsigned char>(lengths[128 + 4 * i]);
  more[0] -= 1;
  corpus.folder.write("a.lengths.npy", npy_file("<i4", {201}, more));
  refused(fmt::format("input 1 was a.npy (npy, {} bytes, 200 sequences) and is a.npy (npy, {} bytes, 201 sequences), ",
                      with_commas(std::ssize(input + lengths)), with_commas(std::ssize(input + lengths) + 4)));
  corpus.folder.write("a.lengths.npy", lengths);
  std::swap(corpus.inputs[0], corpus.inputs[1]);
  refused("input 1 was a.npy (npy, ");
  std::swap(corpus.inputs[0], corpus.inputs[1]);
  const std::string second = corpus.inputs[1];
  corpus.inputs.pop_back();
  refused("the number of inputs was 2 and is 1");
  fs::rename(second, second + ".away");
  corpus.inputs.push_back(second);
  corpus.error([&] { corpus.pack(); }, ErrorCode::io);  // an input that has disappeared
  CHECK(folder_bytes(corpus.partial()) == kept);
  fs::rename(second + ".away", second);

  corpus.pack();
  CHECK(folder_bytes(corpus.out()) == expected);
}

TEST_CASE("shards of an input that was changed and changed back are found out") {
  Corpus corpus;
  const auto expected = corpus.reference();
  const std::string input = read_small_file(corpus.inputs[0]);
  std::string changed = input;
  for (std::size_t at = 128; at < 2128; at += 4) changed[at] = static_cast<char>(changed[at] ^ 1);  // ids of the first partition
  const std::string journal = corpus.partial() + "/" + std::string(kOwnerMarker);

  // As if the run had begun with the input, and read it when it was another.
  corpus.interrupt(100);
  const std::string begun = read_small_file(journal);
  fs::remove_all(corpus.partial());
  corpus.folder.write("a.npy", changed);
  corpus.interrupt(100);
  const std::string meanwhile = read_small_file(journal);
  corpus.folder.write("a.npy", input);
  corpus.folder.write("out.partial/" + std::string(kOwnerMarker),
                      begun.substr(0, begun.find('\n')) + meanwhile.substr(meanwhile.find('\n')));

  CHECK(says(corpus.error([&] { corpus.pack(); }, ErrorCode::bad_data),
             "one was changed since the interrupted run read it; they are removed, so run again"));
  CHECK_FALSE(fs::exists(corpus.partial()));
  corpus.pack();
  CHECK(folder_bytes(corpus.out()) == expected);
}

TEST_CASE("without --resume an interrupted run is begun again, and a note says so") {
  Corpus corpus;
  const auto expected = corpus.reference();
  corpus.interrupt(100);
  CHECK(says(corpus.message, "finished shards stay in " + corpus.partial()));
  corpus.options.resume = false;
  CHECK(says(corpus.pack(), "removed what an interrupted run had left"));
  CHECK(folder_bytes(corpus.out()) == expected);
}

TEST_CASE("resume with nothing to go on with begins at the beginning") {
  Corpus corpus;
  const auto expected = corpus.reference();
  corpus.options.resume = true;
  corpus.pack();
  CHECK(folder_bytes(corpus.out()) == expected);
  fs::remove_all(corpus.out());
  corpus.folder.write("out.partial/.shardpack-owner", "of a run that was killed early");
  corpus.folder.write("out.partial/shard-00000-00000/input_ids.npy", "x");
  corpus.pack();
  CHECK(folder_bytes(corpus.out()) == expected);
}

TEST_CASE("an interrupted replacement leaves the old output, and resumes") {
  Corpus corpus;
  corpus.options.seed = 9;
  corpus.pack();
  const auto old = folder_bytes(corpus.out());
  corpus.options.seed = 0;
  corpus.options.force = true;
  corpus.interrupt(100);
  CHECK(folder_bytes(corpus.out()) == old);
  corpus.pack();
  const auto replaced = folder_bytes(corpus.out());
  fs::remove_all(corpus.out());
  CHECK(replaced == corpus.reference());
  CHECK_FALSE(fs::exists(corpus.partial()));
}

TEST_CASE("bad data leave nothing, and a second run is refused while the first one lives") {
  Corpus corpus;
  corpus.options.policy.overlong = Overlong::error;
  corpus.options.policy.split_min_tokens = 0;
  corpus.error([&] { corpus.pack(); }, ErrorCode::bad_data);
  CHECK_FALSE(fs::exists(corpus.partial()));

  NoDiagnostics quiet;
  const StagedOutput living(corpus.out(), "shardpack-packed", false, quiet);
  corpus.options.resume = true;
  CHECK(says(corpus.error([&] { corpus.pack(); }, ErrorCode::usage), "wait for it, or choose another output"));
}

}  // namespace shardpack
