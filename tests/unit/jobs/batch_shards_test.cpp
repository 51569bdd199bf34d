// Batches as shards: gone on with after any interruption, and each rule broken in shards whose hashes are right, so that only the
// rule itself can tell.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/hash.h"
#include "io/batch_folder.h"
#include "jobs/batch_shards.h"
#include "jobs/output_place.h"
#include "shardpack/error.h"
#include "shardpack/jobs.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/folder_bytes.h"
#include "support/shard_files.h"
#include "support/tiny_dataset.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

/// Asks to stop after so many batches were written.
class StopAfter final : public ProgressSink {
 public:
  StopAfter(std::int64_t batches, std::stop_source& stop) : left_(batches), stop_(stop) {}
  void begin_stage(std::string_view name, std::int64_t, std::string_view) override { counts_ = name == "writing"; }
  void advance(std::int64_t amount) override {
    if (counts_ && (left_ -= amount) <= 0) stop_.request_stop();
  }
  void end_stage() override { counts_ = false; }

 private:
  bool counts_ = false;
  std::int64_t left_;
  std::stop_source& stop_;
};

/// Sequences with labels in two files, some longer than a batch takes; two epochs in several shards.
struct Corpus {
  Corpus() {
    for (std::uint32_t f = 0; f < 2; ++f) {
      Sequences sequences;
      std::vector<std::int32_t> labels;
      for (std::uint32_t i = 0; i < 60; ++i) {
        std::vector<std::uint32_t> ids;
        for (std::uint32_t t = 0; t < 1 + (i + f) * 7919 % 40; ++t) {
          ids.push_back(1 + (i * 31 + t * 17 + f) % 5000);
          labels.push_back((i + t) % 3 == 0 ? -100 : static_cast<std::int32_t>(ids.back()));
        }
        sequences.push_back(ids);
      }
      const std::string name(1, static_cast<char>('a' + f));
      inputs.push_back(write_npy<std::uint16_t>(folder, name, "<u2", sequences));
      folder.write(name + ".labels.npy", npy_file("<i4", {static_cast<std::int64_t>(labels.size())}, labels));
    }
    options.plan.batch_size = 7;
    options.plan.world = 2;
    options.plan.pad.multiple = 4;
    options.epochs = 2;
    options.policy.row_tokens = 30;
    options.policy.overlong = Overlong::truncate;
    options.policy.min_tokens = 3;
    options.write_shards.emplace();
    options.write_shards->shard_bytes = 4000;
    options.write_shards->pad_id = 9;
    options.force = true;
  }

  void make(std::int64_t stop_after = std::int64_t{1} << 40, int threads = 1) {
    ThreadPool pool(threads);
    std::stop_source stop;
    StopAfter progress(stop_after, stop);
    NoDiagnostics quiet;
    batch(inputs, folder.path("out"), options,
          {.pool = pool, .stop = stop.get_token(), .progress = progress, .diagnostics = quiet, .temp_dir = {}});
  }

  /// Kinds of the issues found; with the sources where asked for.
  std::set<std::string> kinds(bool against = false) {
    ThreadPool pool(2);
    NoProgress progress;
    NoDiagnostics quiet;
    VerifyOptions verify_options;
    if (against) verify_options.against = inputs;
    std::set<std::string> found;
    for (const Issue& issue :
         verify(folder.path("out"), verify_options,
                {.pool = pool, .stop = {}, .progress = progress, .diagnostics = quiet, .temp_dir = folder.path()})
             .issues) {
      found.insert(issue.kind);
    }
    return found;
  }

  void change_manifest(const std::function<void(BatchManifest&)>& mutate) {
    BatchManifest manifest = BatchFolder(folder.path("out")).manifest();
    mutate(manifest);
    folder.write("out/manifest.json", to_json(manifest));
  }

  /// Change elements of a file of the first shard, and the manifest so that its hash fits.
  template <class T>
  void change(const std::string& file, const std::function<void(std::vector<T>&)>& mutate) {
    const std::string name = "out/shard-00000-00000/" + file;
    std::string bytes = read_file(folder.path(name));
    std::vector<T> elements((bytes.size() - 128) / sizeof(T));
    std::memcpy(elements.data(), bytes.data() + 128, elements.size() * sizeof(T));
    mutate(elements);
    std::memcpy(bytes.data() + 128, elements.data(), elements.size() * sizeof(T));
    folder.write(name, bytes);
    change_manifest([&](BatchManifest& manifest) {
      for (ManifestFile& listed : manifest.shards->shards.front().files) {
        if (listed.name == file) listed.hash = hash_hex(bytes);
      }
    });
  }

  TempFolder folder;
  std::vector<std::string> inputs;
  BatchJobOptions options;
};

}  // namespace

TEST_CASE("stopped after any shard and resumed with any number of threads, batch writes the same bytes") {
  Corpus corpus;
  corpus.options.force = false;
  corpus.options.write_shards->layout = GENERATE(BatchLayout::padded, BatchLayout::ragged);
  corpus.options.write_shards->zstd_level = corpus.options.write_shards->layout == BatchLayout::ragged ? 3 : 0;
  corpus.make();
  const std::map<std::string, std::string> expected = folder_bytes(corpus.folder.path("out"));
  REQUIRE(expected.contains("shard-00001-00001/"));
  REQUIRE(expected.contains("removed.csv"));
  int with_kept_shards = 0;
  for (std::int64_t batches = 1;; batches += 3) {
    fs::remove_all(corpus.folder.path("out"));
    corpus.options.resume = false;
    try {
      corpus.make(batches, 1 + static_cast<int>(batches % 3));
      break;  // it asked for a stop that came too late
    } catch (const Error& error) {
      REQUIRE(error.code() == ErrorCode::cancelled);
      const bool kept = fs::exists(corpus.folder.path("out.partial"));
      CHECK((std::string(error.what()).find("--resume goes on from there") != std::string::npos) == kept);
      with_kept_shards += kept ? 1 : 0;
    }
    corpus.options.resume = true;
    corpus.make(std::int64_t{1} << 40, 1 + static_cast<int>(batches % 2));
    CHECK((folder_bytes(corpus.folder.path("out")) == expected));
  }
  CHECK(with_kept_shards > 3);
}

TEST_CASE("batch goes on only with the same inputs and options") {
  Corpus corpus;
  try {
    corpus.make(20);
  } catch (const Error&) {
  }
  REQUIRE(fs::exists(corpus.folder.path("out.partial")));
  corpus.options.resume = true;
  const auto refused = [&](const std::string& what, const std::function<void(BatchJobOptions&)>& change) {
    const BatchJobOptions before = corpus.options;
    change(corpus.options);
    INFO(what);
    try {
      corpus.make();
      FAIL("went on");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::usage);
      CHECK(std::string(error.what()).find(what) != std::string::npos);
    }
    corpus.options = before;
  };
  refused("seed", [](BatchJobOptions& o) { o.plan.seed = 3; });
  refused("epochs", [](BatchJobOptions& o) { o.epochs = 3; });
  refused("world", [](BatchJobOptions& o) { o.plan.world = 4; });
  refused("write_shards", [](BatchJobOptions& o) { o.write_shards->layout = BatchLayout::ragged; });
  corpus.make();
  CHECK(corpus.kinds(true).empty());
}

TEST_CASE("verify: shards of batches hold, whatever the tail and layout") {
  Corpus corpus;
  for (const BatchTail tail : {BatchTail::short_step, BatchTail::repeat, BatchTail::drop}) {
    for (const BatchLayout layout : {BatchLayout::padded, BatchLayout::ragged}) {
      for (const TruncateSide side : {TruncateSide::end, TruncateSide::start}) {
        corpus.options.plan.tail = tail;
        corpus.options.write_shards->layout = layout;
        corpus.options.policy.truncate_side = side;
        corpus.make();
        CHECK(corpus.kinds().empty());
        CHECK(corpus.kinds(true).empty());
      }
    }
  }
}

TEST_CASE("verify: every broken rule of a batch's shards is told") {
  Corpus corpus;
  const auto broken = [&](const std::string& kind, const std::function<void()>& mutate) {
    corpus.make();
    mutate();
    INFO(kind);
    CHECK(corpus.kinds().contains(kind));
  };
  using Ids = std::vector<std::uint16_t>;
  using Ints = std::vector<std::int32_t>;
  using Longs = std::vector<std::int64_t>;
  const auto last_of_first_batch = [&] {  // a slot of padding, found by the shortest sequence there
    const BatchFolder plan(corpus.folder.path("out"));
    const std::int64_t pad = plan.open_array("pad_length").read<std::int32_t>(0, 1)[0];
    const std::int64_t size = plan.open_array("batch_offsets").read<std::int64_t>(1, 1)[0];
    const auto lengths = plan.open_array(plan.manifest().shards->shards.front(), "seq_lengths.npy").read<std::int32_t>(0, size);
    for (std::int64_t i = 0; i < size; ++i) {
      if (lengths[static_cast<std::size_t>(i)] < pad) return static_cast<std::size_t>((i + 1) * pad - 1);
    }
    FAIL("no padding in the first batch");
    return std::size_t{0};
  };
  broken("fingerprint", [&] { corpus.change<std::uint16_t>("input_ids.npy", [](Ids& ids) { ids[0] ^= 1; }); });
  broken("ids", [&] { corpus.change<std::uint16_t>("input_ids.npy", [&](Ids& ids) { ids[last_of_first_batch()] = 8; }); });
  broken("ids", [&] { corpus.change<std::uint16_t>("input_ids.npy", [](Ids& ids) { ids[0] = 60'000; }); });
  broken("column", [&] { corpus.change<std::int32_t>("labels.npy", [&](Ints& labels) { labels[last_of_first_batch()] = 5; }); });
  broken("tokens", [&] {
    corpus.change<std::int32_t>(
        "labels.npy", [](Ints& labels) { *std::find_if(labels.begin(), labels.end(), [](auto l) { return l > 0; }) = -100; });
  });
  broken("kept",
         [&] { corpus.change<std::int32_t>("seq_lengths.npy", [](Ints& lengths) { lengths[0] -= lengths[0] > 1 ? 1 : -1; }); });
  broken("pad", [&] { corpus.change<std::int32_t>("seq_lengths.npy", [](Ints& lengths) { lengths[0] = -5; }); });
  broken("pad", [&] { corpus.change<std::int32_t>("seq_lengths.npy", [](Ints& lengths) { lengths[0] = 31; }); });
  broken("cover", [&] { corpus.change<std::int64_t>("seq_source.npy", [](Longs& source) { std::swap(source[1], source[4]); }); });
  broken("source", [&] { corpus.change<std::int64_t>("seq_source.npy", [](Longs& source) { source[0] = 2; }); });
  broken("kept", [&] { corpus.change<std::int64_t>("seq_source.npy", [](Longs& source) { source[2] = 1; }); });
  broken("offsets", [&] { corpus.change<std::int64_t>("batch_slot_offsets.npy", [](Longs& slots) { slots[1] += 4; }); });
  broken("offsets", [&] { corpus.change<std::int64_t>("batch_slot_offsets.npy", [](Longs& slots) { slots[1] = -4; }); });
  broken("cover", [&] { corpus.change<std::int64_t>("batch_offsets.npy", [](Longs& begin) { begin[1] -= 1; }); });
  const auto of_manifest = [&](const std::string& kind, const std::function<void(BatchManifest&)>& mutate) {
    broken(kind, [&] { corpus.change_manifest(mutate); });
  };
  of_manifest("totals", [](BatchManifest& m) { m.shards->shards[0].tokens += 1; });
  of_manifest("totals", [](BatchManifest& m) { m.shards->shards[0].loss_tokens += 1; });
  of_manifest("totals", [](BatchManifest& m) { m.shards->loss_tokens += 1; });
  of_manifest("fingerprint", [](BatchManifest& m) { m.shards->shards[0].fingerprint->low ^= 1; });
  of_manifest("fingerprint", [](BatchManifest& m) { m.shards->batched.low ^= 1; });
  of_manifest("fingerprint", [](BatchManifest& m) { m.shards->removed.high ^= 1; });
  of_manifest("fingerprint", [](BatchManifest& m) { m.shards->repeated.high ^= 1; });
  of_manifest("cover", [](BatchManifest& m) { std::swap(m.shards->shards[0], m.shards->shards[1]); });
  of_manifest("ids", [](BatchManifest& m) { m.shards->options.pad_id = 8; });
  of_manifest("kept", [](BatchManifest& m) { m.policy.truncate_side = TruncateSide::start; });
  broken("removed", [&] {
    fs::remove(corpus.folder.path("out/removed.csv"));
    corpus.change_manifest(
        [](BatchManifest& m) { std::erase_if(m.files, [](const ManifestFile& f) { return f.name == "removed.csv"; }); });
  });
  broken("removed", [&] {
    const std::string name = "out/removed.csv";
    std::string text = read_file(corpus.folder.path(name));
    text = text.substr(0, text.size() - 1);
    text = text.substr(0, text.rfind('\n') + 1);  // less its last line
    corpus.folder.write(name, text);
    corpus.change_manifest([&](BatchManifest& m) {
      for (ManifestFile& file : m.files) {
        if (file.name == "removed.csv") file = {file.name, static_cast<std::int64_t>(text.size()), hash_hex(text)};
      }
    });
  });
}

TEST_CASE("batch: a disk without room is told before anything is written") {
  const TempFolder folder;
  CHECK_NOTHROW(check_free_space(folder.path("out"), 0, "less"));
  try {
    check_free_space(folder.path("out"), std::int64_t{1} << 60, "fewer --epochs");
    FAIL("an exabyte is free");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::io);
    CHECK(std::string(error.what()).find("or use fewer --epochs") != std::string::npos);
  }
  // The estimate is that of what comes out, but for the heads of the files.
  Corpus corpus;
  for (const BatchTail tail : {BatchTail::short_step, BatchTail::repeat, BatchTail::drop}) {
    for (const BatchLayout layout : {BatchLayout::padded, BatchLayout::ragged}) {
      corpus.options.plan.tail = tail;
      corpus.options.write_shards->layout = layout;
      corpus.make();
      const BatchManifest manifest = BatchFolder(corpus.folder.path("out")).manifest();
      std::int64_t bytes = 0, files = 0;
      for (const ManifestShard& shard : manifest.shards->shards) {
        for (const ManifestFile& file : shard.files) bytes += file.bytes, ++files;
      }
      const std::int64_t expected = expected_shard_bytes(manifest);
      CHECK(expected <= bytes);
      CHECK(bytes <= expected + files * 144);
    }
  }
}

TEST_CASE("batch: what cannot be written is refused before anything is read") {
  Corpus corpus;
  const auto refused = [&](const std::function<void(BatchJobOptions&)>& change) {
    const BatchJobOptions before = corpus.options;
    change(corpus.options);
    try {
      corpus.make();
      FAIL("was taken");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::usage);
    }
    corpus.options = before;
    CHECK_FALSE(fs::exists(corpus.folder.path("out")));
  };
  refused([](BatchJobOptions& o) { o.write_shards->pad_id = -1; });
  refused([](BatchJobOptions& o) { o.write_shards->pad_id = 70'000, o.write_shards->id_type = IdType::u16; });
  refused([](BatchJobOptions& o) { o.write_shards->shard_bytes = 0; });
  refused([](BatchJobOptions& o) { o.write_shards.reset(), o.resume = true; });
}

}  // namespace shardpack
