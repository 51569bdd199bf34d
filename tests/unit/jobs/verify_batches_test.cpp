// verify on a batch plan: each rule broken in a plan whose hashes are right, so that only the rule itself can tell.
#include "jobs/verify_batches.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "base/hash.h"
#include "io/batch_folder.h"
#include "io/npy.h"
#include "shardpack/inspect.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/temp_folder.h"
#include "support/tiny_dataset.h"

namespace shardpack {
namespace {

struct Plan {
  Plan() {
    std::string list;
    for (int i = 0; i < 83; ++i) list += std::to_string(1 + i * 37 % 50) + "\n";
    folder.write("lengths.txt", list);
    options.plan.batch_size = 4;
    options.plan.world = 2;
    options.plan.pad.multiple = 8;
    options.epochs = 2;
    options.force = true;
    options.policy.row_tokens = 45;
    options.policy.overlong = Overlong::truncate;
  }

  void make() { batch({folder.path("lengths.txt")}, folder.path("out"), options, context); }

  /// Change elements of a file, and the manifest so that sizes and hashes fit.
  template <class T>
  void change(const std::string& stem, const std::function<void(std::vector<T>&)>& mutate) {
    const std::string path = folder.path("out/" + stem + ".npy");
    std::string bytes = read_file(path);
    std::vector<T> elements((bytes.size() - 128) / sizeof(T));
    std::memcpy(elements.data(), bytes.data() + 128, elements.size() * sizeof(T));
    mutate(elements);
    const char* descr = sizeof(T) == 8 ? "<i8" : std::is_floating_point_v<T> ? "<f4" : "<i4";
    bytes = make_npy_header(descr, {static_cast<std::int64_t>(elements.size())});
    bytes.append(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T));
    folder.write("out/" + stem + ".npy", bytes);
    change_manifest([&](BatchManifest& manifest) {
      for (ManifestFile& file : manifest.files) {
        if (file.name == stem + ".npy") file = {file.name, static_cast<std::int64_t>(bytes.size()), hash_hex(bytes)};
      }
    });
  }
  void change_manifest(const std::function<void(BatchManifest&)>& mutate) {
    BatchManifest manifest = BatchFolder(folder.path("out")).manifest();
    mutate(manifest);
    folder.write("out/manifest.json", to_json(manifest));
  }

  /// Kinds of the issues found; with the sources where asked for.
  std::set<std::string> kinds(bool against = false) {
    VerifyOptions verify_options;
    if (against) verify_options.against = {folder.path("lengths.txt")};
    std::set<std::string> found;
    for (const Issue& issue : verify(folder.path("out"), verify_options, context).issues) found.insert(issue.kind);
    return found;
  }

  TempFolder folder;
  BatchJobOptions options;
  ThreadPool pool{2};
  NoProgress progress;
  NoDiagnostics diagnostics;
  RunContext context{.pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .temp_dir = {}};
};

}  // namespace

TEST_CASE("verify: whole batch plans hold, with every tail") {
  Plan plan;
  for (const BatchTail tail : {BatchTail::short_step, BatchTail::repeat, BatchTail::drop}) {
    for (const char* strategy : {"sorted", "dynamic", "tokens:200"}) {
      plan.options.plan.tail = tail;
      plan.options.plan.strategy = parse_batch_strategy(strategy);
      plan.options.plan.batch_size = plan.options.plan.strategy.has_budget() ? 0 : 4;
      plan.make();
      CHECK(plan.kinds().empty());
      CHECK(plan.kinds(true).empty());
    }
  }
}

TEST_CASE("verify: every broken rule of a batch plan is told") {
  Plan plan;
  const auto broken = [&](const std::string& kind, bool against, const std::function<void()>& mutate) {
    plan.make();
    mutate();
    INFO(kind);
    CHECK(plan.kinds(against).contains(kind));
  };
  using Longs = std::vector<std::int64_t>;
  using Ints = std::vector<std::int32_t>;
  // Told from the files alone.
  broken("cover", false, [&] { plan.change<std::int64_t>("members", [](Longs& m) { m[1] = m[0]; }); });
  broken("cover", false, [&] { plan.change<std::int64_t>("members", [](Longs& m) { m[5] = 83; }); });
  broken("offsets", false, [&] { plan.change<std::int64_t>("batch_offsets", [](Longs& o) { o[3] = o[2]; }); });
  broken("offsets", false, [&] { plan.change<std::int64_t>("batch_offsets", [](Longs& o) { o.back() += 1; }); });
  broken("budget", false, [&] { plan.change<std::int64_t>("batch_offsets", [](Longs& o) { o[1] += 1; }); });
  broken("pad", false, [&] { plan.change<std::int32_t>("pad_length", [](Ints& p) { p[0] += 1; }); });
  broken("pad", false, [&] { plan.change<std::int32_t>("kept_tokens", [](Ints& k) { k[0] = 900; }); });
  broken("totals", false, [&] { plan.change<std::int32_t>("pad_length", [](Ints& p) { p[0] += 8; }); });
  broken("totals", false, [&] { plan.change<std::int64_t>("real_tokens", [](Longs& t) { t[0] -= 1; }); });
  broken("group", false, [&] { plan.change<std::int32_t>("group", [](Ints& g) { g[2] = 0; }); });
  broken("shape", false, [&] { plan.change<std::int32_t>("group", [](Ints& g) { g.pop_back(); }); });
  broken("ranks", false, [&] { plan.change_manifest([](BatchManifest& m) { m.plan.world = 3; }); });
  broken("totals", false, [&] { plan.change_manifest([](BatchManifest& m) { m.repeated.items = 1; }); });
  broken("totals", false, [&] { plan.change_manifest([](BatchManifest& m) { m.imbalance += 0.1; }); });
  broken("totals", false, [&] { plan.change_manifest([](BatchManifest& m) { m.padded_squares += 64; }); });
  broken("lengths", false, [&] { plan.change<std::int64_t>("lengths", [](Longs& l) { l[3] += 1; }); });
  broken("lengths", false, [&] { plan.change_manifest([](BatchManifest& m) { m.source_sequences += 1; }); });
  // Told by the lengths, those of the folder or of the sources: one pad length for another batch's, real tokens moved, other
  // lengths.
  for (const bool against : {false, true}) {
    broken("pad", against, [&] {
      plan.change<std::int32_t>(
          "pad_length", [](Ints& p) { std::swap(*std::min_element(p.begin(), p.end()), *std::max_element(p.begin(), p.end())); });
    });
    broken("tokens", against, [&] { plan.change<std::int64_t>("real_tokens", [](Longs& t) { t[0] -= 1, t[1] += 1; }); });
    broken("kept", against, [&] { plan.change<std::int32_t>("kept_tokens", [](Ints& k) { k[0] -= k[0] > 1 ? 1 : -1; }); });
  }
  broken("sources", true, [&] { plan.folder.write("lengths.txt", read_file(plan.folder.path("lengths.txt")) + "7\n"); });
}

TEST_CASE("verify: files of a batch plan") {
  Plan plan;
  plan.make();
  plan.folder.write("out/stray", "x");
  CHECK(plan.kinds() == std::set<std::string>{"extra"});
  std::filesystem::remove(plan.folder.path("out/stray"));
  std::filesystem::remove(plan.folder.path("out/group.npy"));
  CHECK(plan.kinds() == std::set<std::string>{"missing"});
  plan.make();
  std::string bytes = read_file(plan.folder.path("out/members.npy"));
  bytes.back() ^= 1;
  plan.folder.write("out/members.npy", bytes);
  CHECK(plan.kinds() == std::set<std::string>{"checksum"});
  plan.folder.write("out/members.npy", bytes + "x");
  CHECK(plan.kinds() == std::set<std::string>{"size"});
  plan.make();
  std::string text = read_file(plan.folder.path("out/manifest.json"));
  text.replace(text.find("\"epochs\": 2"), 11, "\"epochs\": 3");
  plan.folder.write("out/manifest.json", text);
  CHECK(plan.kinds() == std::set<std::string>{"manifest"});
}

TEST_CASE("inspect: a batch by its number") {
  Plan plan;
  plan.make();
  InspectOptions options;
  const InspectResult whole = inspect(plan.folder.path("out"), options, plan.context);
  REQUIRE(whole.batch_plan.has_value());
  const std::int64_t batches = whole.batch_plan->manifest.batches_per_epoch;
  CHECK(whole.batch_plan->pad_lengths.sequences() == batches);
  options.row = batches + 3;
  const InspectResult one = inspect(plan.folder.path("out"), options, plan.context);
  REQUIRE(one.batch.has_value());
  CHECK((one.batch->epoch == 1 && one.batch->step == 1 && one.batch->rank == 1 && one.batch->micro == 0));
  CHECK(one.batch->members.size() <= 4);
  options.row = 2 * batches;
  CHECK_THROWS_AS(inspect(plan.folder.path("out"), options, plan.context), Error);
}

}  // namespace shardpack
