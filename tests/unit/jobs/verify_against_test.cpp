// verify --against: packed shards compared with the sources read again.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/npy.h"
#include "jobs/verify_against.h"
#include "shardpack/jobs.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/temp_folder.h"
#include "support/tiny_dataset.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

/// Two NPY files with lengths beside them, packed with a bit of every policy that takes something out or adds something.
struct Packed {
  Packed() {
    write_source("a", {5, 900, 17, 0, 40, 64, 2});
    write_source("b", {64, 63, 1, 130, 33, 48, 12, 7, 9});
    options.policy = {.row_tokens = 64, .overlong = Overlong::truncate, .min_tokens = 3, .append_eos = true};
    options.packing.row_tokens = 64;
    options.packer = "lpfhp";
    options.read.eos_id = 60'000;
    options.partition_tokens = 700;
  }

  void write_source(const std::string& name, const std::vector<std::int64_t>& lengths) {
    std::int64_t tokens = 0;
    for (const std::int64_t length : lengths) tokens += length;
    std::vector<std::uint16_t> ids;
    for (std::int64_t t = 0; t < tokens; ++t)
      ids.push_back(static_cast<std::uint16_t>(100 + (t * 7 + static_cast<char>(name[0])) % 1000));
    folder.write("in/" + name + ".npy", make_npy_header("<u2", {tokens}) + bytes_of(ids));
    folder.write("in/" + name + ".lengths.npy",
                 make_npy_header("<i8", {static_cast<std::int64_t>(lengths.size())}) + bytes_of(lengths));
  }

  PackResult pack_it() { return pack({folder.path("in")}, folder.path("out"), options, context); }
  VerifyResult verify_it(std::vector<std::string> sources = {}) {
    if (sources.empty()) sources = {folder.path("in")};
    return verify(folder.path("out"), {.against = sources}, context);
  }
  void change_byte(const std::string& name, std::size_t from_end) {
    std::string bytes = read_file(folder.path(name));
    bytes[bytes.size() - from_end] ^= 1;
    write_file(folder.path(name), bytes);
  }

  TempFolder folder;
  PackOptions options;
  ThreadPool pool{2};
  NoProgress progress;
  NoDiagnostics diagnostics;
  RunContext context{.pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .temp_dir = {}};
};

std::string show(const VerifyResult& result) {
  std::string text;
  for (const Issue& issue : result.issues) text += issue.kind + " | " + issue.file + " | " + issue.message + "\n";
  return text;
}

bool has(const VerifyResult& result, const std::string& kind, const std::string& file, const std::string& words) {
  for (const Issue& issue : result.issues) {
    if (issue.kind == kind && issue.file == file && issue.message.find(words) != std::string::npos) return true;
  }
  return false;
}

TEST_CASE("what pack writes holds against its sources") {
  Packed packed;
  SECTION("as it is") {}
  SECTION("with rows left out, some of them truncated ones") {
    packed.options.rows_multiple = 3;
    packed.options.tail = Tail::drop;
  }
  SECTION("with repeated rows") { packed.options.rows_multiple = 7; }
  SECTION("with fill rows, compressed") {
    packed.options.rows_multiple = 7;
    packed.options.tail = Tail::fill;
    packed.options.zstd_level = 1;
  }
  SECTION("concatenated") { packed.options.packer = "concat"; }
  SECTION("the first sequences only") { packed.options.read.limit = 9; }
  const PackResult result = packed.pack_it();
  CHECK(result.manifest.partitions.size() > 1);
  const VerifyResult verdict = packed.verify_it();
  INFO(show(verdict));
  CHECK(verdict.ok());
  CHECK(verdict.checked.size() == 6);
}

TEST_CASE("sources that are no longer what was packed are named") {
  Packed packed;
  packed.pack_it();

  SECTION("another token") {
    packed.change_byte("in/b.npy", 2);
    const VerifyResult verdict = packed.verify_it();
    INFO(show(verdict));
    CHECK(has(verdict, "against", "b.npy", "XXH3-128"));
    CHECK(has(verdict, "against", "", "fingerprint"));
    CHECK_FALSE(has(verdict, "against", "a.npy", ""));
  }
  SECTION("boundaries moved, all totals the same") {
    packed.write_source("a", {5, 900, 16, 0, 41, 64, 2});
    const VerifyResult verdict = packed.verify_it();
    INFO(show(verdict));
    CHECK(has(verdict, "against", "a.npy", "XXH3-128"));
    CHECK(has(verdict, "placement", "a.npy", "record 2: 17 tokens are in rows or removed.csv, the source has 16"));
    CHECK(has(verdict, "placement", "a.npy", "record 4: 40 tokens are in rows or removed.csv, the source has 41"));
  }
  SECTION("a record more") {
    packed.write_source("a", {5, 900, 17, 0, 40, 64, 2, 1});
    CHECK(has(packed.verify_it(), "against", "a.npy", "records 8, packed from 7"));
  }
  SECTION("a file more, and a file less") {
    packed.write_source("c", {1});
    CHECK(has(packed.verify_it(), "against", "", "number of source files: 3, packed from 2"));
    CHECK(has(packed.verify_it({packed.folder.path("in/b.npy")}), "against", "b.npy", "name b.npy, packed from a.npy"));
  }
  SECTION("the same files in another order") {
    const VerifyResult verdict = packed.verify_it({packed.folder.path("in/b.npy"), packed.folder.path("in/a.npy")});
    INFO(show(verdict));
    CHECK(has(verdict, "against", "b.npy", "in another order: here the first file that differs was a.npy"));
    CHECK(verdict.issues.size() == 1);
  }
  SECTION("cut short") {
    const std::string bytes = read_file(packed.folder.path("in/a.npy"));
    write_file(packed.folder.path("in/a.npy"), bytes.substr(0, bytes.size() - 1));
    const VerifyResult verdict = packed.verify_it();
    INFO(show(verdict));
    CHECK(verdict.issues.size() == 1);
    CHECK(verdict.issues[0].kind == "against");
    CHECK(verdict.issues[0].file == "a.npy");
  }
  SECTION("gone") {
    fs::remove_all(packed.folder.path("in"));
    CHECK_THROWS_AS(packed.verify_it(), Error);
  }
}

TEST_CASE("removed tokens charged to a record that has no such tokens are found against the sources") {
  Packed packed;
  const PackResult result = packed.pack_it();
  std::string text = read_file(packed.folder.path("out/removed.csv"));
  const std::string line = "b.npy,3,63,67,truncated";
  REQUIRE(text.find(line) != std::string::npos);
  text.replace(text.find(line), line.size(), "b.npy,4,33,67,truncated");
  write_file(packed.folder.path("out/removed.csv"), text);
  write_manifest_of_what_is_there(packed.folder.path("out"), result.manifest);
  const VerifyResult verdict = packed.verify_it();
  INFO(show(verdict));
  CHECK(has(verdict, "placement", "b.npy", "record 3: 63 tokens are in rows or removed.csv, the source has 130"));
  CHECK(has(verdict, "placement", "b.npy", "record 4: 100 tokens are in rows or removed.csv, the source has 33"));
}

TEST_CASE("the recorded reading options come back") {
  Manifest manifest;
  manifest.options = {{"format", "\"raw\""}, {"ids_column", "\"ids\""}, {"unit", "\"sequence\""}, {"null_row", "\"drop\""},
                      {"dtype", "\"u32\""},  {"eos_id", "50256"},       {"bos_id", "null"},       {"limit", "12"}};
  const ReadOptions read = recorded_read_options(manifest.options);
  CHECK(read.format == "raw");
  CHECK(read.ids_column == "ids");
  CHECK(read.unit == Unit::sequence);
  CHECK(read.null_row == NullRow::drop);
  CHECK(read.dtype == IdType::u32);
  CHECK(read.eos_id == 50256);
  CHECK_FALSE(read.bos_id);
  CHECK(read.limit == 12);

  manifest.options = {{"unit", "\"page\""}};
  CHECK_THROWS_AS(recorded_read_options(manifest.options), Error);
  manifest.options.clear();
  CHECK(recorded_read_options(manifest.options).ids_column == "input_ids");
}

}  // namespace
}  // namespace shardpack
