// unpack: what policies removed is missing and said so, names, formats that cannot hold a column, damage.
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "io/column_choice.h"
#include "io/file.h"
#include "shardpack/error.h"
#include "shardpack/jobs.h"
#include "shardpack/progress.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/folder_bytes.h"
#include "support/open_shards.h"
#include "support/refusal.h"
#include "support/shard_files.h"

namespace shardpack {
namespace {

struct Case {
  Case() { options.policy.row_tokens = options.packing.row_tokens = 8; }

  RunContext context() { return {.pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .temp_dir = {}}; }
  Manifest pack(const std::vector<std::string>& inputs) {
    options.force = true;
    return shardpack::pack(inputs, folder.path("packed"), options, context()).manifest;
  }
  UnpackResult unpack(UnpackOptions how = {}) {
    how.force = true;
    return shardpack::unpack(folder.path("packed"), folder.path("out"), how, context());
  }
  std::string out(const std::string& name) const { return read_small_file(folder.path("out/" + name)); }

  TempFolder folder;
  PackOptions options;
  ThreadPool pool{2};
  NoProgress progress;
  KeptDiagnostics diagnostics;
};

bool contains(const std::string& text, const std::string& part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

const std::string kLines =
    "{\"input_ids\":[1,2,3],\"labels\":[-100,2,3],\"score\":0.5}\n"
    "{\"input_ids\":[],\"labels\":[],\"score\":1.0}\n"
    "{\"input_ids\":[4,5,6,7,8,9,10,11,12,13],\"labels\":[4,5,6,7,8,9,10,11,12,13],\"score\":2.0}\n"
    "{\"input_ids\":[14],\"labels\":[14],\"score\":-3.25}\n";

TEST_CASE("what a policy removed is missing, and removed.csv comes along") {
  Case is;
  const std::string input = is.folder.write("in/a.jsonl", kLines);
  is.options.policy.min_tokens = 2;
  is.options.policy.overlong = Overlong::truncate;
  is.pack({input});
  const UnpackResult result = is.unpack();
  CHECK(result.sequences == 3);
  CHECK(result.empty == 1);
  CHECK(result.tokens == 11);
  CHECK(is.out("a.jsonl") ==
        "{\"input_ids\":[1,2,3],\"labels\":[-100,2,3],\"score\":0.5}\n"
        "{\"input_ids\":[],\"labels\":[],\"score\":0.0}\n"
        "{\"input_ids\":[4,5,6,7,8,9,10,11],\"labels\":[4,5,6,7,8,9,10,11],\"score\":2.0}\n");
  CHECK(is.out("removed.csv") == read_small_file(is.folder.path("packed/removed.csv")));

  is.options.policy.truncate_side = TruncateSide::start;
  is.pack({input});
  is.unpack();
  CHECK(contains(is.out("a.jsonl"), "{\"input_ids\":[6,7,8,9,10,11,12,13],\"labels\":[6,7,8,9,10,11,12,13],\"score\":2.0}"));
}

TEST_CASE("a split sequence that lost a piece in the tail is joined of the others") {
  Case is;
  const std::string input = is.folder.write("in/a.jsonl", kLines);
  is.options.policy.overlong = Overlong::split;
  is.options.packer = "sequential";
  is.options.rows_multiple = 2;
  is.options.tail = Tail::drop;
  const Manifest manifest = is.pack({input});
  REQUIRE(manifest.removed[static_cast<std::size_t>(RemovalCause::tail)].tokens > 0);
  CHECK(is.unpack().tokens == manifest.tokens);
}

TEST_CASE("source files keep their relative names, with a suffix of the format, and none is lost to another") {
  Case is;
  const std::vector<std::string> inputs{is.folder.write("in/a.jsonl", kLines),   is.folder.write("in/deep/er/a.jsonl", kLines),
                                        is.folder.write("in/b.v2.json", kLines), is.folder.write("in/empty.jsonl", ""),
                                        is.folder.write("in/a.json", kLines),    is.folder.write("in/.hidden", kLines)};
  is.options.policy.overlong = Overlong::split;
  is.options.read.columns = parse_column_choice("none");
  is.pack(inputs);
  std::string names;
  for (const ManifestFile& file : is.unpack().files) names += file.name + " ";
  CHECK(names == "a.jsonl deep/er/a.jsonl b.v2.jsonl empty.jsonl a.json.jsonl .hidden.jsonl ");
  CHECK(is.out("empty.jsonl").empty());
  names.clear();
  for (const ManifestFile& file : is.unpack({.format = UnpackFormat::megatron}).files) names += file.name + " ";
  CHECK(names ==
        "a.bin a.idx deep/er/a.bin deep/er/a.idx b.v2.bin b.v2.idx empty.bin empty.idx a.json.bin a.json.idx .hidden.bin "
        ".hidden.idx ");
  CHECK(is.unpack({.zstd_level = 3}).files[3].name == "empty.jsonl.zst");
}

TEST_CASE("a column that the format cannot hold is refused before anything is written") {
  Case is;
  const std::string input = is.folder.write(
      "in/a.jsonl", "{\"input_ids\":[1],\"text\":\"x\",\"list\":[1,2],\"7\":1,\"a.b\":2,\"lengths\":3,\"nan\":0.5}\n");
  const auto refused = [&](const std::string& columns, UnpackFormat format) {
    is.options.read.columns = parse_column_choice(columns);
    is.pack({input});
    return refusal([&] { is.unpack({.format = format}); });
  };
  for (const char* column : {"text", "list", "7", "a.b", "lengths"}) {
    CHECK(contains(refused(column, UnpackFormat::npy), std::string("the column '") + column + "' cannot be written"));
    CHECK(contains(refused(column, UnpackFormat::megatron), "--as jsonl holds every column"));
    CHECK(refused(column, UnpackFormat::jsonl) == "no error");
  }
  CHECK(contains(refusal([&] { is.unpack({.format = UnpackFormat::npy, .zstd_level = 1}); }), "--compress"));

  is.options.read = {};
  const std::string wide = is.folder.write("in/wide.jsonl", "{\"input_ids\":[4294967295]}\n");
  is.pack({wide});
  CHECK(contains(refusal([&] { is.unpack({.format = UnpackFormat::megatron}); }), "4,294,967,295"));
  is.unpack({.format = UnpackFormat::npy});

  is.folder.write("nan/a.lengths.npy", npy_file<std::int64_t>("<i8", {1}, {1}));
  is.folder.write("nan/a.score.npy", npy_file<float>("<f4", {1}, {std::numeric_limits<float>::quiet_NaN()}));
  is.pack({is.folder.write("nan/a.npy", npy_file<std::uint16_t>("<u2", {1}, {5}))});
  CHECK(contains(refusal([&] { is.unpack(); }), "a column holds nan, which JSON cannot"));
  is.unpack({.format = UnpackFormat::npy});
  CHECK((is.out("a.score.npy") == read_small_file(is.folder.path("nan/a.score.npy"))));
}

TEST_CASE("a damaged dataset is not unpacked, and leaves nothing behind") {
  Case is;
  is.options.policy.overlong = Overlong::split;
  is.options.derived = false;
  is.pack({is.folder.write("in/a.jsonl", kLines)});
  const std::map<std::string, std::string> whole = folder_bytes(is.folder.path("packed"));
  for (const auto& [name, bytes] : whole) {
    if (!name.ends_with(".npy")) continue;
    INFO(name);
    std::string damaged = bytes;
    damaged[bytes.size() - 1] = static_cast<char>(damaged[bytes.size() - 1] ^ 0x41);
    if (name.ends_with("input_ids.npy") || name.ends_with("labels.npy")) damaged[128] = static_cast<char>(bytes[128] ^ 0x41);
    is.folder.write("packed/" + name, damaged);
    refusal([&] { is.unpack(); }, ErrorCode::bad_data);
    CHECK(refusal([&] { is.unpack(); }, ErrorCode::bad_data) != "no error");
    CHECK(folder_bytes(is.folder.path("out")).empty());
    CHECK(folder_bytes(is.folder.path("out.partial")).empty());
    is.folder.write("packed/" + name, bytes);
  }
  is.unpack();
}

TEST_CASE("only what unpack made is replaced, and a dry run writes nothing") {
  Case is;
  is.options.policy.overlong = Overlong::split;
  const Manifest manifest = is.pack({is.folder.write("in/a.jsonl", kLines)});
  UnpackOptions dry;
  dry.dry_run = true;
  const UnpackResult would = is.unpack(dry);
  CHECK(would.sequences == 4);
  CHECK(would.tokens == 14);
  CHECK(folder_bytes(is.folder.path("out")).empty());
  is.unpack();
  is.folder.write("out/mine.txt", "x");
  CHECK(contains(refusal([&] { is.unpack(); }), "mine.txt"));
  CHECK(contains(refusal([&] { shardpack::unpack(is.folder.path("packed"), is.folder.path("packed/out"), {}, is.context()); }),
                 "lies inside"));
}

}  // namespace
}  // namespace shardpack
