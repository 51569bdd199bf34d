// pack of presets with windows on a few threads: the tokens are read on while rows are written. The bytes, the errors and what is
// left behind are those of a run that reads all of them before.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/rng.h"
#include "io/arrow_support.h"
#include "io/file.h"
#include "io/packed_dataset.h"
#include "shardpack/assignment.h"
#include "shardpack/error.h"
#include "shardpack/jobs.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/folder_bytes.h"
#include "support/open_shards.h"
#include "support/shard_files.h"
#include "support/stop_after.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

std::int64_t threads_of_process() { return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()); }
/// Without those that have ended and are not quite gone.
std::int64_t living_threads_of_process() {
  std::int64_t least = threads_of_process();
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    least = std::min(least, threads_of_process());
  }
  return least;
}

/// Holds the scanning up until the plans are there, that is, until the thread that makes them has ended; so that what is read
/// before does not depend on who is faster. Counts what is scanned, stops after some rows, and does something at the first row.
class Sink final : public ProgressSink {
 public:
  Sink(std::int64_t stop_after_rows, std::stop_source& stop) : stop_after_(stop_after_rows, stop) {}

  void begin_stage(std::string_view name, std::int64_t total, std::string_view unit) override {
    packs_ = name == "packing";
    scans_ = name == "scanning" && !wrote;  // and not the rest of the pass, behind the rows
    if (scans_) to_scan = total;
    wrote = wrote || packs_;
    stop_after_.begin_stage(name, total, unit);
  }
  void advance(std::int64_t amount) override {
    if (scans_) {
      scanned += amount;
      await_plans();
    }
    if (packs_ && at_first_row) std::exchange(at_first_row, {})();
    stop_after_.advance(amount);
  }
  void end_stage() override {
    scans_ = packs_ = false;
    stop_after_.end_stage();
  }

  std::atomic<std::int64_t> scanned{0};  // bytes
  std::int64_t to_scan = 0;
  bool wrote = false;                      // rows were begun
  std::int64_t threads_without_plans = 0;  // of the process; 0 = nothing to wait for
  std::function<void()> at_first_row;

 private:
  void await_plans() const {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (threads_without_plans > 0 && threads_of_process() > threads_without_plans) {
      REQUIRE(std::chrono::steady_clock::now() < limit);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  bool scans_ = false, packs_ = false;
  StopAfter stop_after_;
};

/// Three files of ids as different types, 2.6 million tokens. Rows of three sequences of a thousand tokens or so in 16 Ki slots
/// make several windows of them.
struct Corpus {
  Corpus() {
    const RandomStream stream(3, RandomPurpose::members);
    std::uint64_t draw = 0;
    sequences.resize(3);
    for (std::size_t f = 0; f < sequences.size(); ++f) {
      for (int i = 0; i < 800; ++i) {
        std::vector<std::uint32_t>& ids = sequences[f].emplace_back(i % 50 == 7 ? 0 : stream.bounded(draw++, 2200));
        const std::uint64_t first = stream.bounded(draw++, 40'000);
        for (std::size_t t = 0; t < ids.size(); ++t) ids[t] = 5 + static_cast<std::uint32_t>((first + t * 17) % 40'000);
      }
    }
    sequences[1][400].assign(20'000, 77);  // longer than a row
    sequences[2][300].assign(40'000, 78);
    inputs = {write_npy<std::uint16_t>(folder, "a", "<u2", sequences[0]),
              write_npy<std::int32_t>(folder, "b", "<i4", sequences[1]),
              write_npy<std::int64_t>(folder, "c", "<i8", sequences[2])};
    options.preset = "trl";
    options.policy.row_tokens = options.packing.row_tokens = 1 << 14;
    options.policy.overlong = Overlong::truncate;
    options.packing.max_segments = 3;
    options.packer = "lpfhp";
    options.shard_bytes = 3 << 20;
    options.seed = 5;
  }

  void pack(const std::string& name, int threads, std::int64_t stop_after_rows = kUndisturbed) {
    ThreadPool pool(threads);
    std::stop_source stop;
    Sink progress(stop_after_rows, stop);
    progress.threads_without_plans = living_threads_of_process();
    progress.at_first_row = at_first_row;
    const auto note = [&] {
      wrote = progress.wrote;
      scanned = progress.scanned;
      to_scan = progress.to_scan;
    };
    try {
      result = shardpack::pack(
          inputs, folder.path(name), options,
          {.pool = pool, .stop = stop.get_token(), .progress = progress, .diagnostics = diagnostics, .temp_dir = {}});
    } catch (...) {
      note();
      throw;
    }
    note();
  }
  std::map<std::string, std::string> bytes(const std::string& name) const { return folder_bytes(folder.path(name)); }
  std::map<std::string, std::string> packed(int threads) {
    pack("out", threads);
    std::map<std::string, std::string> all = bytes("out");
    fs::remove_all(folder.path("out"));
    return all;
  }

  /// Of the last run: was the rest of the pass left to the writing?
  bool in_passing() const {
    REQUIRE(to_scan > 0);
    REQUIRE(scanned <= to_scan);
    return scanned < to_scan;
  }

  struct Failure {
    ErrorCode code = ErrorCode::internal;
    std::string what;
    friend bool operator==(const Failure&, const Failure&) = default;
  };
  /// It leaves nothing behind.
  Failure failure(int threads) {
    Failure found{ErrorCode::internal, "no error"};
    try {
      pack("out", threads);
    } catch (const Error& error) {
      found = {error.code(), error.what()};
    }
    CHECK_FALSE(fs::exists(folder.path("out")));
    CHECK_FALSE(fs::exists(folder.path("out.partial")));
    return found;
  }
  /// The failure of one thread, which finds it before it writes, and of two, which do not unless it is one of `planning`.
  Failure same_failure(bool planning = false) {
    const Failure expected = failure(1);
    CHECK_FALSE(wrote);
    const Failure found = failure(2);
    CHECK(wrote == !planning);
    CHECK(found.what == expected.what);
    CHECK(found.code == expected.code);
    return expected;
  }

  /// Change one id of `input`.
  template <class Id>
  void set_id(std::size_t input, std::size_t record, std::size_t token, Id id) {
    std::size_t at = token;
    for (std::size_t i = 0; i < record; ++i) at += sequences[input][i].size();
    REQUIRE(token < sequences[input][record].size());
    std::string bytes = read_small_file(inputs[input]);
    std::memcpy(bytes.data() + 128 + at * sizeof id, &id, sizeof id);
    folder.write(fs::path(inputs[input]).filename().string(), bytes);
  }

  TempFolder folder;
  std::vector<Sequences> sequences;  // by file
  std::vector<std::string> inputs;
  PackOptions options;
  KeptDiagnostics diagnostics;
  std::function<void()> at_first_row;  // of the next runs
  PackResult result;                   // of the last run
  std::int64_t scanned = 0, to_scan = 0;
  bool wrote = false;
};

bool says(const std::string& text, const std::string& part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

// ---- what is written ----------------------------------------------------------------------------------------------------------

TEST_CASE("rows that are written while tokens are read on are those of a pass before them") {
  if (!has_arrow()) return;
  Corpus corpus;
  bool passes = true, of_many_threads = false;
  SECTION("truncated") { of_many_threads = true; }
  SECTION("split") {
    corpus.options.policy.overlong = Overlong::split;
    corpus.options.policy.split_min_tokens = 5000;  // what is removed of the second file is asked for first
  }
  SECTION("dropped") {
    corpus.options.policy.overlong = Overlong::drop;
    corpus.options.policy.min_tokens = 300;
  }
  SECTION("the last rows left out") {
    corpus.options.rows_multiple = 64;
    corpus.options.tail = Tail::drop;
  }
  SECTION("the first rows repeated") { corpus.options.rows_multiple = 500; }
  SECTION("several partitions") {
    corpus.options.partition_tokens = 900'000;
    of_many_threads = true;
  }
  SECTION("full rows with labels and positions") {
    corpus.options.preset = "hf";
    corpus.options.shard_bytes = 30 << 20;
    corpus.options.policy.row_tokens = corpus.options.packing.row_tokens = 1 << 12;
    corpus.options.packing.max_segments = 0;
  }
  SECTION("ids of 64 bits") {
    corpus.options.preset = "torchtune";
    corpus.options.policy.row_tokens = corpus.options.packing.row_tokens = 1 << 12;
    corpus.options.packing.max_segments = 0;
  }
  SECTION("masked language models, Parquet") {
    corpus.options.preset = "mlm";
    corpus.options.container = Container::parquet;
    corpus.options.policy.row_tokens = corpus.options.packing.row_tokens = 1 << 12;
    corpus.options.packing.max_segments = 0;
  }
  SECTION("the first sequences alone") { corpus.options.read.limit = 2000; }
  SECTION("a file of JSON lines among them") {
    corpus.inputs.insert(corpus.inputs.begin() + 1,
                         corpus.folder.write("aa.jsonl", "{\"input_ids\":[5,6,7]}\n{\"input_ids\":[]}\n{\"input_ids\":[8]}\n"));
  }
  SECTION("partitions in a shuffled order, which is never in passing") {
    corpus.options.partition_tokens = 900'000;
    corpus.options.partition_order = PartitionOrder::shuffled;
    passes = false;
  }
  SECTION("added EOS, which is never in passing") {
    corpus.options.policy.append_eos = true;
    corpus.options.read.eos_id = 3;
    passes = false;
  }
  SECTION("shuffled rows, which are never in passing") {
    corpus.options.order = RowOrder::shuffled;
    passes = false;
  }
  const std::map<std::string, std::string> expected = corpus.packed(1);
  const std::string json = to_json(corpus.result.manifest);
  CHECK_FALSE(corpus.in_passing());
  REQUIRE(expected.size() > 4);

  CHECK(corpus.packed(2) == expected);
  CHECK(corpus.in_passing() == passes);
  if (passes) CHECK(corpus.scanned <= 4 << 20);  // the plans were there after the first piece
  CHECK(to_json(corpus.result.manifest) == json);
  if (!of_many_threads) return;
  CHECK(corpus.packed(4) == expected);
  CHECK(corpus.in_passing() == passes);
  CHECK(corpus.packed(5) == expected);
  CHECK_FALSE(corpus.in_passing());
}

TEST_CASE("what is written in passing is what the sources hold") {
  if (!has_arrow()) return;
  Corpus corpus;
  corpus.options.policy.overlong = Overlong::split;
  corpus.pack("out", 3);
  REQUIRE(corpus.in_passing());
  CHECK(window_count(corpus.result.manifest.planned_rows(), 1 << 14) >= 3);
  ThreadPool pool(2);
  NoProgress progress;
  const VerifyResult verdict =
      verify(corpus.folder.path("out"), {.against = corpus.inputs},
             {.pool = pool, .stop = {}, .progress = progress, .diagnostics = corpus.diagnostics, .temp_dir = {}});
  CHECK(verdict.issues.empty());
  const std::vector<ManifestSource>& sources = corpus.result.manifest.sources;
  REQUIRE(sources.size() == 3);
  for (std::size_t f = 0; f < 3; ++f) {
    const std::string stem = corpus.inputs[f].substr(0, corpus.inputs[f].size() - 4);
    CHECK(sources[f].hash == hash_hex(read_small_file(corpus.inputs[f]) + read_small_file(stem + ".lengths.npy")));
  }
  CHECK(corpus.result.manifest.id_min == 5);
  CHECK(corpus.result.manifest.id_max == 40'004);
}

TEST_CASE("tokens of files that carry columns are read before") {
  if (!has_arrow()) return;
  Corpus corpus;
  std::vector<std::uint8_t> mask;
  for (const auto& sequence : corpus.sequences[2]) {
    for (const std::uint32_t id : sequence) mask.push_back(id % 3 == 0 ? 0 : 1);
  }
  corpus.folder.write("c.loss_mask.npy", npy_file("|u1", {std::ssize(mask)}, mask));
  corpus.inputs.erase(corpus.inputs.begin(), corpus.inputs.begin() + 2);
  const std::map<std::string, std::string> expected = corpus.packed(1);
  CHECK(corpus.packed(2) == expected);
  CHECK_FALSE(corpus.in_passing());
}

// ---- faults of the input ------------------------------------------------------------------------------------------------------

TEST_CASE("a fault that is found while rows are written reads as one that is found before") {
  if (!has_arrow()) return;
  Corpus corpus;
  SECTION("a negative id") {
    corpus.set_id<std::int32_t>(1, 798, 0, -5);
    CHECK(says(corpus.same_failure().what, "b.npy: token "));
  }
  SECTION("a negative id in what is left out") {
    corpus.options.policy.overlong = Overlong::drop;
    corpus.set_id<std::int64_t>(2, 300, 39'999, -5);
    CHECK(says(corpus.same_failure().what, "c.npy: token "));
  }
  SECTION("several, of which the first is told") {
    corpus.options.policy.overlong = Overlong::drop;
    corpus.set_id<std::int64_t>(2, 300, 10, -5);
    corpus.set_id<std::int64_t>(2, 799, 0, std::int64_t{1} << 40);
    corpus.set_id<std::int32_t>(1, 500, 3, -6);
    corpus.set_id<std::int32_t>(1, 501, 3, -7);
    CHECK(says(corpus.same_failure().what, "id -6"));
  }
  SECTION("an id above 32 bits") {
    corpus.set_id<std::int64_t>(2, 799, 0, std::int64_t{1} << 32);
    CHECK(says(corpus.same_failure().what, "4294967296"));
  }
  SECTION("an id above 31 bits") {
    corpus.inputs.push_back(write_npy<std::uint32_t>(corpus.folder, "d", "<u4", {{1, 2}, {3'000'000'000}, {2'147'483'648}}));
    CHECK(says(corpus.same_failure().what,
               "the token id 3,000,000,000 takes more than the 31 bits that --for trl has for it; --for native has 32"));
  }
  SECTION("an id above --id-dtype u16") {
    corpus.options.id_type = IdType::u16;
    corpus.set_id<std::int64_t>(2, 799, 0, 65'536);
    CHECK(says(corpus.same_failure().what, "the largest token id is 65,536, which --id-dtype u16 cannot hold"));
  }
  SECTION("over-long sequences, where they are refused") {
    corpus.options.policy.overlong = Overlong::error;
    CHECK(says(corpus.same_failure(true).what, "--overlong"));
  }
  SECTION("over-long sequences and a negative id, which comes first") {
    corpus.options.policy.overlong = Overlong::error;
    corpus.set_id<std::int64_t>(2, 799, 0, -5);
    CHECK(says(corpus.same_failure(true).what, "id -5"));
  }
}

TEST_CASE("the largest ids that a preset holds are written in passing") {
  if (!has_arrow()) return;
  Corpus corpus;
  corpus.inputs.push_back(write_npy<std::uint32_t>(corpus.folder, "d", "<u4", {{1, 2}, {2'147'483'647}}));
  const std::map<std::string, std::string> expected = corpus.packed(1);
  CHECK(corpus.packed(2) == expected);
  CHECK(corpus.in_passing());
  CHECK(corpus.result.manifest.id_max == 2'147'483'647);
}

TEST_CASE("an input that changes while rows are written is named for it") {
  if (!has_arrow()) return;
  Corpus corpus;
  const std::string path = corpus.inputs[2];
  const std::string input = read_small_file(path);
  std::string expected;
  SECTION("cut short") {
    corpus.at_first_row = [&] { fs::resize_file(path, 1'000'000); };
    expected = "c.npy: the file changed while it was in use: it had ";
  }
  SECTION("longer") {
    corpus.at_first_row = [&] { corpus.folder.write("c.npy", input + "more"); };
    expected = "c.npy: the file changed while it was in use: it had ";
  }
  SECTION("other ids at another time") {
    corpus.at_first_row = [&] {
      corpus.set_id<std::int64_t>(2, 799, 0, -5);
      fs::last_write_time(path, fs::last_write_time(path) + std::chrono::hours(1));
    };
    expected = "c.npy: the file changed while it was in use: its modification time is another";
  }
  for (const int threads : {1, 2}) {
    INFO(threads << " threads");
    corpus.folder.write("c.npy", input);
    const Corpus::Failure failure = corpus.failure(threads);
    CHECK(corpus.in_passing() == (threads == 2));
    CHECK(failure.code == ErrorCode::bad_data);
    CHECK(says(failure.what, expected));
  }
}

// ---- interruptions ------------------------------------------------------------------------------------------------------------

/// A corpus of which a run in passing was interrupted after half its rows, with some shards finished.
struct Interrupted : Corpus {
  Interrupted() {
    reference = packed(1);
    rows = result.manifest.rows;
    interrupt();
  }
  void interrupt() {
    options.resume = false;
    try {
      pack("out", 2, rows / 2);
      FAIL("it was not interrupted");
    } catch (const Error& error) {
      REQUIRE(error.code() == ErrorCode::cancelled);
      REQUIRE(says(error.what(), "finished shards stay in "));
    }
    REQUIRE(in_passing());
    options.resume = true;
  }
  bool is_kept() const { return fs::exists(folder.path("out.partial")); }
  std::string refused(ErrorCode code) {
    try {
      pack("out", 2);
    } catch (const Error& error) {
      CHECK(error.code() == code);
      CHECK_FALSE(in_passing());
      CHECK_FALSE(fs::exists(folder.path("out")));
      return error.what();
    }
    FAIL("no error");
    return {};
  }
  std::map<std::string, std::string> reference;
  std::int64_t rows = 0;
};

TEST_CASE("a run in passing that was interrupted goes on to the same bytes, and reads its inputs first") {
  if (!has_arrow()) return;
  Interrupted corpus;
  const int threads = GENERATE(1, 2, 5);
  corpus.pack("out", threads);
  CHECK_FALSE(corpus.in_passing());
  CHECK(corpus.bytes("out") == corpus.reference);
}

TEST_CASE("a run in passing may be interrupted again, and be begun again") {
  if (!has_arrow()) return;
  Interrupted corpus;
  try {
    corpus.pack("out", 2, corpus.rows * 3 / 4);
    FAIL("it was not interrupted");
  } catch (const Error& error) {
    REQUIRE(error.code() == ErrorCode::cancelled);
  }
  REQUIRE(corpus.is_kept());
  SECTION("and resumed") {
    corpus.pack("out", 2);
    CHECK_FALSE(corpus.in_passing());
  }
  SECTION("and begun again") {
    corpus.options.resume = false;
    corpus.pack("out", 2);
    CHECK(corpus.in_passing());
  }
  CHECK(corpus.bytes("out") == corpus.reference);
}

TEST_CASE("a run in passing with --resume from the first time on") {
  if (!has_arrow()) return;
  Corpus corpus;
  const std::map<std::string, std::string> expected = corpus.packed(1);
  corpus.options.resume = true;
  CHECK(corpus.packed(2) == expected);
  CHECK(corpus.in_passing());
}

TEST_CASE("an input that was changed after a run in passing was interrupted is found out at the end") {
  if (!has_arrow()) return;
  Interrupted corpus;
  const auto time = fs::last_write_time(corpus.inputs[0]);
  // Ids at its beginning, where the rows of the first shards come from; lengths stay.
  for (std::size_t record = 0; record < 40; ++record) {
    if (!corpus.sequences[0][record].empty()) corpus.set_id<std::uint16_t>(0, record, 0, 4);
  }
  SECTION("with its time") { fs::last_write_time(corpus.inputs[0], time + std::chrono::hours(1)); }
  SECTION("with its time restored") {
    fs::last_write_time(corpus.inputs[0], time);
    REQUIRE(fs::last_write_time(corpus.inputs[0]) == time);
  }
  const std::string expected =
      "the finished shards are not of these inputs: one was changed since the interrupted run read it; they are removed, so run "
      "again";
  CHECK(says(corpus.refused(ErrorCode::bad_data), expected));
  CHECK_FALSE(corpus.is_kept());
  corpus.pack("out", 2);
  CHECK(corpus.in_passing());
  const auto again = corpus.bytes("out");
  fs::remove_all(corpus.folder.path("out"));
  CHECK(again == corpus.packed(1));
  CHECK(again != corpus.reference);
}

TEST_CASE("a change after the interruption that finished shards hold nothing of is in the rows that follow") {
  if (!has_arrow()) return;
  Interrupted corpus;
  Corpus whole;
  whole.pack("out", 1);
  const PackedDataset dataset(whole.folder.path("out"));
  const auto places = dataset.open_array(dataset.shards().back(), "seq_source").read_all<std::int64_t>();  // file, record, token
  REQUIRE(places.back() == 0);
  const auto record = static_cast<std::size_t>(places[places.size() - 2]);
  if (places[places.size() - 3] == 0) corpus.set_id<std::uint16_t>(0, record, 0, 4);
  if (places[places.size() - 3] == 1) corpus.set_id<std::int32_t>(1, record, 0, 4);
  if (places[places.size() - 3] == 2) corpus.set_id<std::int64_t>(2, record, 0, 4);
  corpus.pack("out", 2);
  const auto resumed = corpus.bytes("out");
  fs::remove_all(corpus.folder.path("out"));
  corpus.options.resume = false;
  CHECK(resumed == corpus.packed(1));
  CHECK(resumed != corpus.reference);
}

TEST_CASE("other lengths after the interruption of a run in passing are refused at once, and nothing is lost") {
  if (!has_arrow()) return;
  Interrupted corpus;
  const auto kept = corpus.bytes("out.partial");
  std::string expected;
  SECTION("as many sequences") {
    std::swap(corpus.sequences[1][10], corpus.sequences[1][11]);
    corpus.sequences[1][10].push_back(9);
    corpus.sequences[1][11].pop_back();
    write_npy<std::int32_t>(corpus.folder, "b", "<i4", corpus.sequences[1]);
    expected = "the plan was of hash ";
  }
  SECTION("a sequence more") {
    corpus.sequences[1].push_back({9});
    write_npy<std::int32_t>(corpus.folder, "b", "<i4", corpus.sequences[1]);
    expected = "input 2 was b.npy (npy, ";
  }
  CHECK(says(corpus.refused(ErrorCode::usage), expected));
  CHECK(corpus.bytes("out.partial") == kept);
}

TEST_CASE("an id that cannot be packed stays an error when the run is resumed") {
  if (!has_arrow()) return;
  Corpus corpus;
  corpus.inputs.push_back(write_npy<std::uint32_t>(corpus.folder, "d", "<u4", {{1, 2}, {3'000'000'000}}));
  try {
    corpus.pack("out", 2, 300);
    FAIL("it was not interrupted");
  } catch (const Error& error) {
    REQUIRE(error.code() == ErrorCode::cancelled);
  }
  REQUIRE(fs::exists(corpus.folder.path("out.partial")));
  corpus.options.resume = true;
  for (const int threads : {1, 2}) {
    try {
      corpus.pack("out", threads);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_data);
      CHECK(says(error.what(), "the token id 3,000,000,000 takes more than the 31 bits"));
    }
    CHECK_FALSE(fs::exists(corpus.folder.path("out")));
  }
}

}  // namespace
}  // namespace shardpack
