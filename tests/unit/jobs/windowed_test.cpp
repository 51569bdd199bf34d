// Rows in windows: of any number of threads, parts and interruptions the bytes are the same, they hold what the sources do, and
// plans are those of every other order. Rows of three sequences of a few tokens, in 16 Ki slots, make many windows of few tokens.
#include <algorithm>
#include <filesystem>
#include <map>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "io/arrow_support.h"
#include "io/packed_dataset.h"
#include "jobs/pack_options.h"
#include "shardpack/assignment.h"
#include "shardpack/error.h"
#include "shardpack/jobs.h"
#include "shardpack/presets.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/folder_bytes.h"
#include "support/open_shards.h"
#include "support/shard_files.h"
#include "support/stop_after.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

/// Three files; what is written holds no tokens, so that empty slots cost nothing.
struct Corpus {
  explicit Corpus(bool grouped = false) {
    for (std::uint32_t f = 0; f < 3; ++f) {
      Sequences file;
      std::string lines;
      for (std::uint32_t i = 0; i < 501 + 3 * f; ++i) {
        std::vector<std::uint32_t> ids;
        for (std::uint32_t t = 0; t < 1 + (i * i * 7 + i) % 24; ++t) ids.push_back(1 + (i * 31 + t * 7 + f) % 5000);
        file.push_back(ids);
        std::string text;
        for (const std::uint32_t id : ids) text += (text.empty() ? "" : ",") + std::to_string(id);
        lines += "{\"input_ids\":[" + text + "],\"topic\":" + std::to_string(i / 3 % 3) + "}\n";
      }
      const std::string name = "in/part-" + std::to_string(f);
      inputs.push_back(grouped ? folder.write(name + ".jsonl", lines) : write_npy<std::uint16_t>(folder, name, "<u2", file));
      sequences.insert(sequences.end(), file.begin(), file.end());
    }
    if (grouped) options.read.group_column = "topic";
    options.policy.row_tokens = options.packing.row_tokens = 1 << 14;  // 128 rows to a window
    options.packing.max_segments = 3;
    options.packer = "lpfhp";
    options.order = RowOrder::windowed;
    options.container = Container::index;
    options.read.columns.which = ColumnChoice::Which::none;
    options.shard_bytes = 16'000;  // 150 rows or so: windows straddle shards
    options.seed = 11;
  }

  RunContext context(ThreadPool& pool, ProgressSink& progress, std::stop_token stop = {}) {
    return {.pool = pool, .stop = std::move(stop), .progress = progress, .diagnostics = diagnostics, .temp_dir = {}};
  }
  PackResult pack(const std::string& name, int threads = 2, std::int64_t stop_after_rows = kUndisturbed) {
    ThreadPool pool(threads);
    std::stop_source stop;
    StopAfter progress(stop_after_rows, stop);
    return shardpack::pack(inputs, folder.path(name), options, context(pool, progress, stop.get_token()));
  }
  void check_against_sources(const std::string& name) {
    ThreadPool pool(2);
    NoProgress progress;
    const VerifyResult verdict = verify(folder.path(name), {.against = inputs}, context(pool, progress));
    std::string issues;
    for (const Issue& issue : verdict.issues) issues += issue.file + ": " + issue.message + "\n";
    CHECK(issues.empty());
  }
  std::map<std::string, std::string> bytes(const std::string& name) const { return folder_bytes(folder.path(name)); }

  TempFolder folder;
  std::vector<std::string> inputs;
  Sequences sequences;
  PackOptions options;
  KeptDiagnostics diagnostics;
};

std::string recorded_order(const Manifest& manifest) {
  for (const auto& [name, value] : manifest.options) {
    if (name == "order") return value;
  }
  return "";
}

/// By row: of its segments the source files, on average.
std::vector<double> files_of_rows(const std::string& folder) {
  const PackedDataset dataset(folder);
  std::vector<double> files;
  for (const ManifestShard& shard : dataset.shards()) {
    const auto offsets = dataset.open_array(shard, "row_offsets").read_all<std::int64_t>();
    const auto source = dataset.open_array(shard, "seq_source").read_all<std::int64_t>();  // file, record, token
    for (std::size_t r = 0; r + 1 < offsets.size(); ++r) {
      double sum = 0;
      for (std::int64_t s = offsets[r]; s < offsets[r + 1]; ++s)
        sum += static_cast<double>(source[static_cast<std::size_t>(3 * s)]);
      files.push_back(sum / static_cast<double>(offsets[r + 1] - offsets[r]));
    }
  }
  return files;
}

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

TEST_CASE("rows are windowed where the preset's trainer shuffles them, and not where they are asked for otherwise") {
  for (const Preset& preset : presets()) {
    INFO(preset.name);
    PackOptions options;
    options.preset = std::string(preset.name);
    const bool reader_decides = preset.name == "native" || preset.name == "bert";
    CHECK(row_order(options) == (reader_decides ? RowOrder::shuffled : RowOrder::windowed));
    options.packer = "sequential";
    CHECK(row_order(options) == RowOrder::input);
    options.order = RowOrder::balanced;
    CHECK(row_order(options) == RowOrder::balanced);
  }
}

TEST_CASE("rows of several windows: any number of threads gives the same bytes, of the plan of every order") {
  const std::string what = GENERATE("as it is", "groups", "balanced rows", "balanced rows of groups", "repeated rows",
                                    "rows left out", "units of sequences", "rows that are made in input order");
  INFO(what);
  Corpus corpus(what.find("groups") != std::string::npos);
  if (what.find("balanced") == 0) {
    corpus.options.balance_attention = true;
    corpus.options.shape.world = 2;
  }
  if (what == "repeated rows" || what == "rows left out") corpus.options.rows_multiple = 64;
  if (what == "rows left out") corpus.options.tail = Tail::drop;
  if (what == "units of sequences") corpus.options.policy.keep_together = 3;
  if (what == "rows that are made in input order") corpus.options.packer = "sequential";
  const PackResult one = corpus.pack("one", 1);
  const std::map<std::string, std::string> expected = corpus.bytes("one");
  CHECK(recorded_order(one.manifest) == "\"windowed\"");
  CHECK(one.manifest.shards.size() > 2);
  REQUIRE(window_count(one.manifest.planned_rows(), 1 << 14) >= 3);
  CHECK(one.shuffle_window_tokens < one.manifest.tokens / 2);
  for (const int threads : {2, 3}) {
    corpus.pack("more", threads);
    CHECK(corpus.bytes("more") == expected);
    fs::remove_all(corpus.folder.path("more"));
  }
  corpus.check_against_sources("one");

  corpus.options.order = RowOrder::shuffled;
  const PackResult shuffled = corpus.pack("shuffled");
  CHECK(shuffled.manifest.rows == one.manifest.rows);
  CHECK(shuffled.manifest.plan.bound == one.manifest.plan.bound);
  CHECK(shuffled.manifest.packed_fingerprint == one.manifest.packed_fingerprint);
  // The plan is that of every order, unless exchanges or left-out rows change it after that.
  const bool changed = corpus.options.balance_attention || corpus.options.tail == Tail::drop;
  if (!changed) CHECK(corpus.bytes("shuffled").at("plan-00000.json") == expected.at("plan-00000.json"));
  CHECK(corpus.bytes("shuffled") != expected);
}

TEST_CASE("rows of windows follow the sources as rows of a shuffle do not") {
  Corpus corpus;
  const auto thirds = [&](const std::string& name) {
    const std::vector<double> files = files_of_rows(corpus.folder.path(name));
    const std::size_t third = files.size() / 3;
    return std::pair(mean(std::span(files).first(third)), mean(std::span(files).last(third)));
  };
  corpus.pack("windowed");
  const auto [first, last] = thirds("windowed");
  CHECK(first < 0.4);
  CHECK(last > 1.6);
  corpus.options.order = RowOrder::shuffled;
  corpus.pack("shuffled");
  const auto [mixed_first, mixed_last] = thirds("shuffled");
  CHECK(mixed_first > 0.8);
  CHECK(mixed_last < 1.2);
}

TEST_CASE("rows of one window are those of the shuffle") {
  Corpus corpus;
  corpus.options.policy.row_tokens = corpus.options.packing.row_tokens = 64;
  const PackResult windowed = corpus.pack("windowed");
  CHECK(windowed.shuffle_window_tokens == windowed.manifest.tokens);
  corpus.options.order = RowOrder::shuffled;
  corpus.pack("shuffled");
  auto found = corpus.bytes("windowed"), expected = corpus.bytes("shuffled");
  CHECK(found["manifest.json"] != expected["manifest.json"]);  // what was asked for
  found.erase("manifest.json");
  expected.erase("manifest.json");
  CHECK(found.size() > 5);
  CHECK(found == expected);
}

TEST_CASE("an interrupted run in windows goes on to the same bytes") {
  Corpus corpus;
  corpus.pack("out");
  const auto expected = corpus.bytes("out");
  int interrupted = 0;
  for (const std::int64_t rows : {1, 130, 300, 430}) {
    fs::remove_all(corpus.folder.path("out"));
    corpus.options.resume = false;
    try {
      corpus.pack("out", 1 + static_cast<int>(rows % 3), rows);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::cancelled);
      ++interrupted;
    }
    if (fs::exists(corpus.folder.path("out"))) continue;
    corpus.options.resume = true;
    corpus.pack("out", 2);
    CHECK(corpus.bytes("out") == expected);
  }
  CHECK(interrupted > 2);
}

TEST_CASE("parts in windows make the bytes of one machine") {
  Corpus corpus(true);
  corpus.options.partition_tokens = 9'000;
  const PackResult one = corpus.pack("one");
  REQUIRE(one.partitions == 2);
  CHECK(one.shuffle_window_tokens < 9'000 / 2);
  ThreadPool pool(2);
  NoProgress progress;
  const ScanResult scanned = scan(corpus.inputs, corpus.options.read, corpus.context(pool, progress),
                                  {.save = SaveOptions{.cut = {.tokens = 9'000, .seed = corpus.options.seed}}});
  corpus.options.scan = corpus.folder.write("scan", scanned.saved);
  for (const std::int64_t index : {2, 1}) {
    corpus.options.part = PackOptions::Part{.index = index, .of = 2};
    corpus.pack("out", static_cast<int>(index));
  }
  const PackResult joined = join(corpus.folder.path("out"), {}, corpus.context(pool, progress));
  CHECK(corpus.bytes("out") == corpus.bytes("one"));
  CHECK(joined.shuffle_window_tokens == one.shuffle_window_tokens);
  corpus.check_against_sources("out");
}

TEST_CASE("full rows in windows hold their tokens and columns, and give the sources back") {
  Corpus corpus;
  corpus.options.container.reset();
  corpus.options.derived = false;
  corpus.options.shard_bytes = 6 << 20;
  corpus.options.read.columns = {};
  std::size_t at = 0;
  for (const std::string& input : corpus.inputs) {
    std::vector<std::uint8_t> mask;
    for (const std::size_t end = at + 501 + 3 * static_cast<std::size_t>(&input - corpus.inputs.data()); at < end; ++at) {
      for (const std::uint32_t id : corpus.sequences[at]) mask.push_back(id % 3 == 0 ? 0 : 1);
    }
    const std::string stem = fs::path(input).stem().string();
    corpus.folder.write("in/" + stem + ".loss_mask.npy", npy_file("|u1", {std::ssize(mask)}, mask));
  }
  SECTION("uncompressed") {}
  SECTION("compressed") { corpus.options.zstd_level = 1; }
  const PackResult one = corpus.pack("one", 1);
  CHECK(one.manifest.columns.size() == 1);
  corpus.pack("three", 3);
  CHECK(corpus.bytes("three") == corpus.bytes("one"));
  corpus.check_against_sources("one");
  ThreadPool pool(2);
  NoProgress progress;
  unpack(corpus.folder.path("one"), corpus.folder.path("back"), {}, corpus.context(pool, progress));
  CHECK(ShardOpener().sequences({corpus.folder.path("back")}) == corpus.sequences);
}

TEST_CASE("a preset's rows in windows hold what the sources do") {
  Corpus corpus;
  const std::string preset = GENERATE("megatron", "trl", "bridge");
  if (preset != "megatron" && !has_arrow()) return;
  corpus.options.container.reset();
  corpus.options.order.reset();
  corpus.options.preset = preset;
  corpus.options.read.eos_id = 6000;
  corpus.options.shard_bytes = 6 << 20;
  const PackResult one = corpus.pack("one", 1);
  CHECK(recorded_order(one.manifest) == "\"windowed\"");
  REQUIRE(window_count(one.manifest.planned_rows(), 1 << 14) >= 3);
  corpus.pack("three", 3);
  CHECK(corpus.bytes("three") == corpus.bytes("one"));
  corpus.check_against_sources("one");
}

}  // namespace
}  // namespace shardpack
