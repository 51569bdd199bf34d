// pack --as index: what is written and said, what is refused, what verify finds in a damaged one with and without the sources.
#include <cstring>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "io/column_choice.h"
#include "io/file.h"
#include "io/saved_scan.h"
#include "shardpack/error.h"
#include "shardpack/inspect.h"
#include "shardpack/jobs.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/folder_bytes.h"
#include "support/refusal.h"
#include "support/shard_files.h"
#include "support/stop_after.h"
#include "support/tiny_dataset.h"

namespace shardpack {
namespace {

const std::string kShard = "shard-00000-00000";

/// Two files whose tokens can be read where they lie, one that must be decoded; an over-long sequence, an empty one.
struct Index {
  Index() {
    write_npy<std::uint16_t>(folder, "in/a", "<u2", {{1, 2, 3}, {}, {4, 5, 6, 7}});
    write_npy<std::uint32_t>(folder, "in/b", "<u4", {{70'000, 9}, {10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, {20, 21, 22}});
    folder.write("in/c.jsonl", "{\"input_ids\":[30,31,32]}\n{\"input_ids\":[33,34]}\n");
    options.policy.row_tokens = options.packing.row_tokens = 8;
    options.policy.overlong = Overlong::truncate;
    options.container = Container::index;
  }

  RunContext context() { return {.pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .temp_dir = {}}; }
  Manifest pack(const std::string& inputs = "in") {
    options.force = true;
    return shardpack::pack({folder.path(inputs)}, out(), options, context()).manifest;
  }
  VerifyResult verify(bool against) {
    std::vector<std::string> sources;
    if (against) sources.push_back(folder.path("in"));
    return shardpack::verify(out(), {.against = sources}, context());
  }

  std::string out() const { return folder.path("out"); }
  std::string array(const std::string& name) const { return out() + "/" + kShard + "/" + name + ".npy"; }
  template <class T>
  std::vector<T> values(const std::string& name) const {
    const std::string bytes = read_file(array(name));
    std::vector<T> result((bytes.size() - 128) / sizeof(T));
    std::memcpy(result.data(), bytes.data() + 128, bytes.size() - 128);
    return result;
  }
  template <class T>
  void write_values(const std::string& name, const std::vector<T>& values) {
    write_file(array(name), read_file(array(name)).substr(0, 128) + bytes_of(values));
  }

  TempFolder folder;
  PackOptions options;
  ThreadPool pool{2};
  NoProgress progress;
  KeptDiagnostics diagnostics;
};

bool finds(const VerifyResult& result, const std::string& kind, const std::string& words) {
  std::string all;
  for (const Issue& issue : result.issues) {
    all += issue.kind + " | " + issue.file + " | " + issue.message + "\n";
    if (issue.kind == kind && issue.message.find(words) != std::string::npos) return true;
  }
  UNSCOPED_INFO((all.empty() ? "no issue" : all));
  return false;
}

bool contains(const std::string& text, const std::string& part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

TEST_CASE("an index holds boundaries and places, and no token") {
  Index index;
  index.options.packer = "sequential";
  const Manifest manifest = index.pack();
  const std::string in_shard = kShard + "/";
  CHECK(files_below(index.out()) == std::vector<std::string>{"manifest.json", "plan-00000.json", "removed.csv",
                                                             in_shard + "row_offsets.npy", in_shard + "seq_begin.npy",
                                                             in_shard + "seq_lengths.npy", in_shard + "seq_source.npy"});
  CHECK(manifest.container == "index");
  CHECK_FALSE(manifest.derived);
  CHECK(manifest.shards[0].files.size() == 4);
  CHECK_FALSE(manifest.packed_fingerprint.has_value());
  CHECK_FALSE(manifest.removed_fingerprint.has_value());
  CHECK_FALSE(manifest.shards[0].fingerprint.has_value());
  CHECK(manifest.sources[0].ids_dtype == "<u2");
  CHECK(manifest.sources[1].ids_dtype == "<u4");
  CHECK(manifest.sources[2].ids_dtype == "");
  CHECK(manifest.has_begins());

  // An NPY header of 128 bytes is 64 ids of 16 bits and 32 of 32; what must be decoded lies nowhere.
  CHECK(index.values<std::int64_t>("row_offsets") == std::vector<std::int64_t>{0, 2, 3, 4, 7});
  CHECK(index.values<std::int32_t>("seq_lengths") == std::vector<std::int32_t>{3, 4, 2, 8, 3, 3, 2});
  CHECK(index.values<std::int64_t>("seq_begin") == std::vector<std::int64_t>{64, 67, 32, 34, 44, -1, -1});
  CHECK(index.values<std::int64_t>("seq_source") ==
        std::vector<std::int64_t>{0, 0, 0, 0, 2, 0, 1, 0, 0, 1, 1, 0, 1, 2, 0, 2, 0, 0, 2, 1, 0});

  CHECK(index.verify(false).issues.empty());
  CHECK(index.verify(true).issues.empty());
  const InspectResult row = inspect(index.out(), {.row = 0}, index.context());
  REQUIRE(row.row->segments.size() == 2);
  CHECK(row.row->segments[1].begin == 3);
  CHECK(row.row->segments[1].first_ids.empty());
}

TEST_CASE("without a source that can be read where it lies there is no seq_begin") {
  Index index;
  const Manifest manifest = index.pack("in/c.jsonl");
  CHECK(manifest.sources[0].ids_dtype == "");
  CHECK_FALSE(manifest.has_begins());
  CHECK(manifest.shards[0].files.size() == 3);
  CHECK(index.verify(false).issues.empty());
}

TEST_CASE("a sequence with padding inside lies nowhere together, and ids may be big-endian") {
  Index index;
  write_npy<std::uint16_t>(index.folder, "holes/a", "<u2", {{1, 2, 3, 4}, {5, 6, 0}});
  index.folder.write("holes/a.attention_mask.npy", npy_file<std::uint8_t>("|u1", {7}, {1, 0, 1, 1, 1, 1, 0}));
  index.options.packer = "sequential";
  CHECK(index.pack("holes").tokens == 5);
  CHECK(index.values<std::int64_t>("seq_begin") == std::vector<std::int64_t>{-1, 68});
  CHECK(verify(index.out(), {.against = {index.folder.path("holes")}}, index.context()).issues.empty());

  index.folder.write("big/a.npy", npy_file<std::uint16_t>(">u2", {1, 2}, {0x0100, 0x0200}));
  CHECK(index.pack("big").sources[0].ids_dtype == ">u2");
  CHECK(verify(index.out(), {.against = {index.folder.path("big")}}, index.context()).issues.empty());
}

TEST_CASE("an interrupted index is gone on with, and has the bytes of an undisturbed one") {
  Index index;
  Sequences sequences;
  for (std::uint32_t i = 0; i < 200; ++i) sequences.emplace_back(1 + i % 7, i);
  write_npy<std::uint16_t>(index.folder, "many/a", "<u2", sequences);
  index.options.shard_bytes = 2000;
  index.options.partition_tokens = 300;
  index.pack("many");
  const auto expected = folder_bytes(index.out());
  const std::string again = index.folder.path("again");
  int kept = 0;
  for (const std::int64_t rows : {5, 30, 60}) {
    std::stop_source stop;
    StopAfter stopping(rows, stop);
    RunContext interrupted{
        .pool = index.pool, .stop = stop.get_token(), .progress = stopping, .diagnostics = index.diagnostics, .temp_dir = {}};
    index.options.resume = false;
    refusal([&] { shardpack::pack({index.folder.path("many")}, again, index.options, interrupted); }, ErrorCode::cancelled);
    kept += std::filesystem::exists(again + ".partial") ? 1 : 0;
    index.options.resume = true;
    shardpack::pack({index.folder.path("many")}, again, index.options, index.context());
    CHECK(folder_bytes(again) == expected);
    std::filesystem::remove_all(again);
  }
  CHECK(kept > 0);
}

TEST_CASE("options that speak of what an index does not hold are refused by name") {
  const auto refused = [](const std::function<void(PackOptions&)>& change) {
    Index index;
    change(index.options);
    return refusal([&] { index.pack(); });
  };
  CHECK(contains(refused([](PackOptions& o) { o.read.columns = parse_column_choice("labels"); }), "--as index: --columns"));
  CHECK(contains(refused([](PackOptions& o) { o.read.positions_columns = {"places"}; }), "--positions-columns"));
  CHECK(contains(refused([](PackOptions& o) { o.policy.drop_unlabeled = true; }), "--drop-unlabeled"));
  CHECK(contains(refused([](PackOptions& o) { o.zstd_level = 3; }), "--compress"));
  CHECK(contains(refused([](PackOptions& o) { o.derived = false; }), "--no-derived"));
  CHECK(contains(refused([](PackOptions& o) { o.id_type = IdType::u32; }), "--id-dtype"));
  CHECK(contains(refused([](PackOptions& o) { o.preset = "hf"; }), "--as index: --for hf is written as"));
}

TEST_CASE("a saved scan whose fingerprint takes columns in does not serve an index") {
  Index index;
  index.folder.write("labels/a.jsonl", "{\"input_ids\":[30,31,32],\"labels\":[30,31,32]}\n");
  const auto save = [&](const std::string& columns) {
    ReadOptions read;
    read.columns = parse_column_choice(columns);
    index.options.scan = index.folder.write(
        "scan",
        scan({index.folder.path("labels")}, read, index.context(), {.record_lengths = false, .save = SaveOptions{}}).saved);
  };
  save("aligned");
  CHECK(contains(refusal([&] { index.pack("labels"); }), "takes labels in; scan again with --columns none"));
  save("none");
  CHECK(index.pack("labels").not_carried == std::vector<std::string>{"labels"});
}

TEST_CASE("an input that was changed after its saved scan, at the same time, is found where its tokens are read") {
  Index index;
  index.options.scan =
      index.folder.write("scan", scan({index.folder.path("in")}, {}, index.context(), {.save = SaveOptions{}}).saved);
  const std::string path = index.folder.path("in/a.npy");
  const auto time = std::filesystem::last_write_time(path);
  std::string bytes = read_file(path);
  bytes[130] ^= 1;
  write_file(path, bytes);
  std::filesystem::last_write_time(path, time);
  index.pack();
  CHECK(index.verify(false).issues.empty());
  CHECK(finds(index.verify(true), "fingerprint", "rows and removed.csv give in the sources"));
  index.options.container = Container::npy;
  CHECK(contains(refusal([&] { index.pack(); }, ErrorCode::bad_data), "not those of the saved scan"));
}

TEST_CASE("a damaged index is found by its hashes, and most of it without them") {
  Index index;
  index.options.packer = "sequential";
  const Manifest manifest = index.pack();
  const auto change = [&](const std::string& name, std::size_t i, std::int64_t value, bool hashes_too) {
    std::vector<std::int64_t> values = index.values<std::int64_t>(name);
    values.at(i) = value;
    index.write_values(name, values);
    if (hashes_too) write_manifest_of_what_is_there(index.out(), manifest);
  };
  struct Fault {
    std::string array;
    std::size_t at;
    std::int64_t value;
    std::string kind, words;  // without hashes; kind "" where only the sources tell
  };
  const std::vector<Fault> faults{{"row_offsets", 1, 3, "cover", "no strategy of"},
                                  {"seq_source", 4, 0, "placement", "record 0"},  // the record is there twice, and another is not
                                  {"seq_source", 2, 1, "placement", "record 0"},  // its first token is missing
                                  {"seq_source", 12, 7, "source", "no such file"},                    //
                                  {"seq_begin", 0, 1'000'000, "source", "has no 3 ids there"},        //
                                  {"seq_begin", 0, -2, "source", "seq_begin is -2"},                  //
                                  {"seq_begin", 5, 0, "source", "c.jsonl has no 3 ids there"},        // which must be decoded
                                  {"seq_begin", 0, 65, "", "seq_begin is 65: its tokens lie at 64"},  // other tokens
                                  {"seq_begin", 2, -1, "", "seq_begin is -1: its tokens lie at 32"}};
  for (const Fault& fault : faults) {
    INFO(fault.array << "[" << fault.at << "] = " << fault.value);
    change(fault.array, fault.at, fault.value, false);
    CHECK(finds(index.verify(false), "checksum", "XXH3-128"));
    write_manifest_of_what_is_there(index.out(), manifest);
    if (fault.kind.empty()) {
      CHECK(index.verify(false).issues.empty());
      CHECK(finds(index.verify(true), "source", fault.words));
    } else {
      CHECK(finds(index.verify(false), fault.kind, fault.words));
      CHECK_FALSE(index.verify(true).issues.empty());
    }
    index.pack();
  }

  // Sequences of one length may change places in rows that then hold each other's: it is another packing, but for seq_begin.
  change("seq_source", 1, 2, false);
  change("seq_source", 4, 0, false);
  std::vector<std::int32_t> lengths = index.values<std::int32_t>("seq_lengths");
  std::swap(lengths[0], lengths[1]);
  index.write_values("seq_lengths", lengths);
  write_manifest_of_what_is_there(index.out(), manifest);
  CHECK(index.verify(false).issues.empty());
  CHECK(finds(index.verify(true), "source", "seq_begin is 64: its tokens lie at 67"));
}

TEST_CASE("changed sources are found against an index") {
  Index index;
  index.pack();
  std::string bytes = read_file(index.folder.path("in/a.npy"));
  bytes[130] ^= 1;
  write_file(index.folder.path("in/a.npy"), bytes);
  CHECK(index.verify(false).issues.empty());
  CHECK(finds(index.verify(true), "against", "fingerprint of all sources"));
  CHECK(finds(index.verify(true), "fingerprint", "rows and removed.csv give in the sources"));
  CHECK(contains(
      refusal([&] { unpack(index.out(), index.folder.path("back"), {.against = {index.folder.path("in")}}, index.context()); },
              ErrorCode::bad_data),
      "a.npy: XXH3-128"));
}

TEST_CASE("unpack asks for the sources of an index, and of nothing else") {
  Index index;
  index.pack();
  const auto unpacked = [&](const std::vector<std::string>& against) {
    return unpack(index.out(), index.folder.path("back"), {.against = against, .force = true}, index.context());
  };
  CHECK(contains(refusal([&] { unpacked({}); }), "with --against SOURCE"));
  CHECK(unpacked({index.folder.path("in")}).sequences == 8);
  CHECK(read_file(index.folder.path("back/b.jsonl")) ==
        "{\"input_ids\":[70000,9]}\n{\"input_ids\":[10,11,12,13,14,15,16,17]}\n{\"input_ids\":[20,21,22]}\n");
  index.options.container = Container::npy;
  index.pack();
  CHECK(contains(refusal([&] { unpacked({index.folder.path("in")}); }), "leave it out"));
}

TEST_CASE("a manifest that promises a fingerprint of rows without tokens is refused") {
  Index index;
  Manifest manifest = index.pack();
  manifest.packed_fingerprint = manifest.source_fingerprint;
  CHECK(contains(refusal([&] { manifest_from_json(to_json(manifest), "m"); }, ErrorCode::bad_data), "expected null"));
  manifest.packed_fingerprint.reset();
  manifest.sources[0].ids_dtype = "<f4";
  CHECK(contains(refusal([&] { manifest_from_json(to_json(manifest), "m"); }, ErrorCode::bad_data), "an integer type"));
  manifest.sources[0].ids_dtype = "<u2";
  manifest.container = "npy";
  CHECK(contains(refusal([&] { manifest_from_json(to_json(manifest), "m"); }, ErrorCode::bad_data), "found null"));
}

}  // namespace
}  // namespace shardpack
