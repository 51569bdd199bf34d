// verify: valid datasets of every kind pass; whatever is damaged, missing, extra or untrue is found, by hashes where they are
// left alone and by logic where they were made to match.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <utility>

#include "shardpack/jobs.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/temp_folder.h"
#include "support/tiny_dataset.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

VerifyResult run_verify(const std::string& path, int threads = 1) {
  ThreadPool pool(threads);
  NoProgress progress;
  NoDiagnostics diagnostics;
  return verify(path, {}, {.pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .temp_dir = {}});
}

std::string show(const std::vector<Issue>& issues) {
  std::string text;
  for (const Issue& issue : issues) {
    text += issue.kind + " | " + issue.file + " | " + std::to_string(issue.row) + " | " + issue.message + "\n";
  }
  return text.empty() ? "no issue" : text;
}

bool names(const VerifyResult& result, const std::string& file) {
  for (const Issue& issue : result.issues) {
    if (issue.file == file) return true;
  }
  return false;
}

bool has(const VerifyResult& result, const std::string& kind, const std::string& file, const std::string& words = "",
         std::int64_t row = -2) {
  for (const Issue& issue : result.issues) {
    if (issue.kind == kind && issue.file == file && issue.message.find(words) != std::string::npos &&
        (row == -2 || issue.row == row)) {
      return true;
    }
  }
  return false;
}

/// Change the array in an uncompressed NPY file of ours, whose data begin at byte 128.
template <class T, class Change>
void change_array(const std::string& path, Change change) {
  std::string bytes = read_file(path);
  const std::size_t begin = bytes.find('\n') + 1;
  std::vector<T> values((bytes.size() - begin) / sizeof(T));
  std::memcpy(values.data(), bytes.data() + begin, values.size() * sizeof(T));
  change(values);
  std::memcpy(bytes.data() + begin, values.data(), values.size() * sizeof(T));
  write_file(path, bytes);
}

void replace_text(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = read_file(path);
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  write_file(path, text.replace(at, from.size(), to));
}

const std::string kShard = "shard-00000-00000";

/// The dataset of some options, written once: shards are synced to disk, and every section of a test begins anew.
struct Original {
  explicit Original(const TinyOptions& options_) : options(options_), manifest(write_tiny_dataset(folder.path(), options)) {}

  static const Original& of(const TinyOptions& options) {
    static std::vector<std::unique_ptr<Original>> all;
    for (const auto& original : all) {
      if (original->options == options) return *original;
    }
    return *all.emplace_back(std::make_unique<Original>(options));
  }

  TempFolder folder;
  TinyOptions options;
  Manifest manifest;
};

/// A copy that a test damages in one way, with hashes made to match.
struct Tampered {
  explicit Tampered(const TinyOptions& options = {}) : manifest(Original::of(options).manifest) {
    fs::copy(Original::of(options).folder.path(), folder.path(), fs::copy_options::recursive);
  }

  template <class T, class Change>
  VerifyResult array(const std::string& name, Change change, const std::string& shard = kShard) {
    change_array<T>(folder.path(shard + "/" + name + ".npy"), change);
    return verified();
  }
  template <class Change>
  VerifyResult stated(Change change) {
    Manifest changed = manifest;
    change(changed);
    write_manifest_of_what_is_there(folder.path(), changed);
    return run_verify(folder.path());
  }
  VerifyResult text(const std::string& file, const std::string& from, const std::string& to) {
    replace_text(folder.path(file), from, to);
    return verified();
  }
  VerifyResult verified() {
    write_manifest_of_what_is_there(folder.path(), manifest);
    return run_verify(folder.path());
  }

  TempFolder folder;
  Manifest manifest;
};

TEST_CASE("valid datasets of every kind pass") {
  TinyOptions options;
  SECTION("plain") {}
  SECTION("wide ids") {
    options.id_type = IdType::u32;
    options.first_id = 70'000;
  }
  SECTION("split, with EOS and BOS") {
    options.policy = {.row_tokens = 6, .overlong = Overlong::split, .append_eos = true, .prepend_bos = true};
  }
  SECTION("split, short last pieces dropped") {
    options.policy = {.row_tokens = 5, .overlong = Overlong::split, .split_min_tokens = 3};
  }
  SECTION("truncated at the end, short ones dropped") {
    options.policy = {.row_tokens = 8, .overlong = Overlong::truncate, .min_tokens = 3, .append_eos = true};
  }
  SECTION("truncated at the start") {
    options.policy = {.row_tokens = 8, .overlong = Overlong::truncate, .truncate_side = TruncateSide::start};
  }
  SECTION("over-long ones dropped") { options.policy = {.row_tokens = 8, .overlong = Overlong::drop}; }
  SECTION("everything dropped") { options.policy = {.row_tokens = 16, .min_tokens = 100}; }
  SECTION("no record at all") { options.lengths = {}; }
  SECTION("segment multiple") { options.policy = {.row_tokens = 16, .segment_multiple = 4}; }
  SECTION("a segment limit and positions from 2") {
    options.max_segments = 2;
    options.position_start = 2;
  }
  SECTION("positions beyond 16 bits") { options.position_start = 65'530; }
  SECTION("concat") {
    options.packer = "concat";
    options.policy = {.row_tokens = 5, .overlong = Overlong::split, .append_eos = true};
  }
  SECTION("no derived arrays") { options.derived = false; }
  SECTION("compressed") { options.zstd_level = 3; }
  SECTION("partitions and shards") {
    options.partition_sequences = 5;
    options.shard_rows = 1;
  }
  SECTION("repeated rows, more than there are rows") { options.repeated_rows = 11; }
  SECTION("repeated rows in several shards") {
    options.repeated_rows = 3;
    options.shard_rows = 2;
  }
  SECTION("fill rows") { options.fill_rows = 3; }
  SECTION("compressed, with a tail") {
    options.zstd_level = 1;
    options.repeated_rows = 2;
    options.shard_rows = 2;
  }

  const TempFolder folder;
  const Manifest manifest = write_tiny_dataset(folder.path(), options);
  for (const int threads : {1, 3}) {
    const VerifyResult result = run_verify(folder.path(), threads);
    INFO(show(result.issues));
    CHECK(result.ok());
    CHECK(result.rows == manifest.rows);
    CHECK(result.tokens == manifest.tokens);
    CHECK(result.segments == manifest.segments);
    std::int64_t bytes = 0;
    for (const std::string& file : files_below(folder.path()))
      bytes += static_cast<std::int64_t>(fs::file_size(folder.path(file)));
    CHECK(result.bytes == bytes);
    CHECK_FALSE(result.checked.empty());
  }
  CHECK(run_verify(folder.path("manifest.json")).ok());
}

TEST_CASE("a flipped bit anywhere names the file") {
  TinyOptions options;
  options.policy = {.row_tokens = 8, .overlong = Overlong::truncate, .append_eos = true, .segment_multiple = 2};
  SECTION("plain") {}
  SECTION("compressed") { options.zstd_level = 3; }
  const TempFolder folder;
  write_tiny_dataset(folder.path(), options);
  REQUIRE(run_verify(folder.path()).ok());
  std::int64_t missed = 0, flipped = 0;
  for (const std::string& file : files_below(folder.path())) {
    const std::string whole = read_file(folder.path(file));
    std::fstream stream(folder.path(file), std::ios::in | std::ios::out | std::ios::binary);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      const auto put = [&](char byte) {
        stream.seekp(static_cast<std::streamoff>(at));
        stream.put(byte);
        stream.flush();
      };
      put(static_cast<char>(whole[at] ^ (1 << (at % 8))));
      const VerifyResult result = run_verify(folder.path());
      if (!names(result, file)) {
        ++missed;
        UNSCOPED_INFO(file << " byte " << at << ": " << show(result.issues));
      }
      put(whole[at]);
      ++flipped;
    }
  }
  CHECK(missed == 0);
  CHECK(flipped > 3000);
  CHECK(run_verify(folder.path()).ok());
}

TEST_CASE("what is missing, cut short or too much is named") {
  TinyOptions options;
  options.policy = {.row_tokens = 8, .overlong = Overlong::truncate};
  options.shard_rows = 3;
  const TempFolder folder;
  write_tiny_dataset(folder.path(), options);

  SECTION("each file missing, cut and empty") {
    for (const std::string& file : files_below(folder.path())) {
      const std::string bytes = read_file(folder.path(file));
      INFO(file);
      fs::remove(folder.path(file));
      CHECK(names(run_verify(folder.path()), file));
      write_file(folder.path(file), bytes.substr(0, bytes.size() - 1));
      CHECK(names(run_verify(folder.path()), file));
      write_file(folder.path(file), bytes + '\0');
      CHECK(names(run_verify(folder.path()), file));
      write_file(folder.path(file), "");
      CHECK(names(run_verify(folder.path()), file));
      write_file(folder.path(file), bytes);
    }
    CHECK(run_verify(folder.path()).ok());
  }
  SECTION("a shard") {
    fs::remove_all(folder.path("shard-00000-00001"));
    const VerifyResult result = run_verify(folder.path());
    INFO(show(result.issues));
    CHECK(result.issues.size() == 1);
    CHECK(has(result, "missing", "shard-00000-00001"));
  }
  SECTION("extra files, hidden ones and folders too") {
    write_file(folder.path("notes.txt"), "");
    write_file(folder.path(".stamp"), "");
    write_file(folder.path(".shardpack-owner"), "");  // a killed run may leave it: it means nothing
    write_file(folder.path(kShard + "/.input_ids.npy.swp"), "");
    fs::create_directory(folder.path("shard-00007-00000"));
    const VerifyResult result = run_verify(folder.path());
    CHECK(has(result, "extra", "notes.txt"));
    CHECK(has(result, "extra", ".stamp"));
    CHECK(has(result, "extra", kShard + "/.input_ids.npy.swp"));
    CHECK(has(result, "extra", "shard-00007-00000"));
    CHECK(result.issues.size() == 4);
  }
  SECTION("a folder in the place of a file") {
    fs::remove(folder.path(kShard + "/input_ids.npy"));
    fs::create_directory(folder.path(kShard + "/input_ids.npy"));
    CHECK(has(run_verify(folder.path()), "missing", kShard + "/input_ids.npy"));
  }
  SECTION("a folder without a manifest") {
    fs::remove(folder.path("manifest.json"));
    CHECK(has(run_verify(folder.path()), "manifest", "manifest.json"));
  }
}

TEST_CASE("rows that hold something else are found by logic") {
  TinyOptions options;
  options.policy = {.row_tokens = 16, .append_eos = true, .prepend_bos = true, .segment_multiple = 2};
  options.lengths[6] = 13;
  Tampered dataset(options);
  REQUIRE(dataset.verified().ok());
  const std::int64_t row_tokens = options.policy.row_tokens;

  SECTION("two rows swapped") {
    const VerifyResult result = dataset.array<std::uint16_t>("input_ids", [&](std::vector<std::uint16_t>& ids) {
      std::swap_ranges(ids.begin(), ids.begin() + row_tokens, ids.begin() + row_tokens);
    });
    INFO(show(result.issues));
    CHECK(has(result, "fingerprint", kShard));
  }
  SECTION("one token") {
    const VerifyResult result = dataset.array<std::uint16_t>("input_ids", [&](std::vector<std::uint16_t>& ids) { ids[1] ^= 1; });
    CHECK(has(result, "fingerprint", kShard));
    CHECK(has(result, "fingerprint", "manifest.json", "fingerprint.packed"));
  }
  SECTION("an id that no source has") {
    CHECK(has(dataset.array<std::uint16_t>("input_ids", [&](std::vector<std::uint16_t>& ids) { ids[1] = 3; }), "ids", kShard,
              "the sources have 100 to", 0));
  }
  SECTION("an added BOS") {
    CHECK(has(dataset.array<std::uint16_t>("input_ids", [&](std::vector<std::uint16_t>& ids) { ids[16] = 100; }), "ids", kShard,
              "the added BOS is 100, expected 8", 1));
  }
  SECTION("an added EOS, and padding") {
    const auto result = dataset.array<std::uint16_t>("input_ids", [&](std::vector<std::uint16_t>& ids) {
      *std::find(ids.begin(), ids.end(), kTinyEos) = 101;
      *std::find(ids.begin(), ids.end(), kTinyPad) = 102;
    });
    CHECK(has(result, "ids", kShard, "the added EOS is 101, expected 9"));
    CHECK(has(result, "ids", kShard, "padding is 102, expected 7"));
    CHECK_FALSE(has(result, "fingerprint", kShard));
  }
  SECTION("segment ids, one by one") {
    for (std::size_t at = 0; at < 48; ++at) {
      const auto change = [&](std::vector<std::uint16_t>& ids) { ids[at] ^= 1; };
      CHECK(has(dataset.array<std::uint16_t>("segment_ids", change), "ids", kShard,
                "segment_ids: slot " + std::to_string(at % 16), static_cast<std::int64_t>(at / 16)));
      CHECK(dataset.array<std::uint16_t>("segment_ids", change).ok());
    }
  }
  SECTION("position ids, one by one") {
    for (std::size_t at = 0; at < 48; ++at) {
      const auto change = [&](std::vector<std::uint16_t>& ids) { ids[at] ^= 8; };
      CHECK(has(dataset.array<std::uint16_t>("position_ids", change), "ids", kShard,
                "position_ids: slot " + std::to_string(at % 16), static_cast<std::int64_t>(at / 16)));
      CHECK(dataset.array<std::uint16_t>("position_ids", change).ok());
    }
  }
  SECTION("lengths") {
    CHECK(has(dataset.array<std::int32_t>("seq_lengths", [](auto& lengths) { lengths[1] += 4; }), "row", kShard));
    CHECK(has(dataset.array<std::int32_t>("seq_lengths", [](auto& lengths) { lengths[1] = 0; }), "row", kShard, "length 0"));
    CHECK(has(dataset.array<std::int32_t>("seq_lengths", [](auto& lengths) { lengths[1] = -5; }), "row", kShard, "length -5"));
  }
  SECTION("slots that overflow the row") {
    dataset.array<std::int32_t>("seq_slots", [](auto& slots) { slots[0] = 18; });
    const auto result = dataset.array<std::int32_t>("seq_lengths", [](auto& lengths) { lengths[0] = 18; });
    CHECK(has(result, "row", kShard, "a row has 16", 0));
  }
  SECTION("slots that are no multiple") {
    CHECK(has(dataset.array<std::int32_t>("seq_slots", [](auto& slots) { --slots[0]; }), "row", kShard, "slots for", 0));
  }
  SECTION("added bits") {
    CHECK(
        has(dataset.array<std::uint8_t>("seq_added", [](auto& added) { added[0] = 1; }), "count", "manifest.json", "added.eos"));
    CHECK(has(dataset.array<std::uint8_t>("seq_added", [](auto& added) { added[0] = 4; }), "row", kShard, "seq_added is 4", 0));
  }
  SECTION("row offsets") {
    const std::string file = kShard + "/row_offsets.npy";
    CHECK(has(dataset.array<std::int64_t>("row_offsets", [](auto& offsets) { ++offsets[0]; }), "offsets", file));
    CHECK(has(dataset.array<std::int64_t>("row_offsets",
                                          [](auto& offsets) {
                                            --offsets[0];
                                            ++offsets.back();
                                          }),
              "offsets", file));
    CHECK(has(dataset.array<std::int64_t>("row_offsets",
                                          [](auto& offsets) {
                                            --offsets.back();
                                            offsets[1] = std::int64_t{1} << 62;
                                          }),
              "offsets", file, "is followed by", 1));
  }
  SECTION("a row more and a row less") {
    const auto result = dataset.array<std::int64_t>("row_offsets", [](auto& offsets) { --offsets[1]; });
    CHECK_FALSE(result.ok());
    CHECK(has(result, "cover", kShard));
  }
  SECTION("a row without a segment") {
    CHECK(has(dataset.array<std::int64_t>("row_offsets", [](auto& offsets) { offsets[1] = 0; }), "row", kShard,
              "no segment at all", 0));
  }
}

TEST_CASE("a source map that lies is found by logic") {
  TinyOptions options;
  options.policy = {.row_tokens = 6, .overlong = Overlong::split};
  Tampered dataset(options);
  REQUIRE(dataset.verified().ok());
  const auto change = [&](auto with) { return dataset.array<std::int64_t>("seq_source", with); };
  const auto segment_of = [](const std::vector<std::int64_t>& map, std::int64_t file, std::int64_t record, std::int64_t first) {
    for (std::size_t s = 0; s < map.size(); s += 3) {
      if (map[s] == file && map[s + 1] == record && map[s + 2] == first) return s;
    }
    throw std::runtime_error("no such segment");
  };

  SECTION("no such file, record or token") {
    for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{1} << 62, -(std::int64_t{1} << 62)}) {
      for (const std::size_t field : {0U, 1U, 2U}) {
        std::int64_t before = 0;
        const auto result = change([&](auto& map) { before = std::exchange(map[3 + field], wrong); });
        CHECK(has(result, "source", kShard, "no such"));
        CHECK(change([&](auto& map) { map[3 + field] = before; }).ok());
      }
    }
  }
  SECTION("another record") {
    const auto result = change([&](auto& map) { map[segment_of(map, 0, 2, 0) + 1] = 0; });
    INFO(show(result.issues));
    CHECK(has(result, "placement", "a.bin", "record 0: token 0 is there twice"));
    CHECK(has(result, "count", "manifest.json", "empty and null records"));
    CHECK(has(result, "fingerprint", kShard));
  }
  SECTION("two pieces of one record exchanged") {
    const auto result =
        change([&](auto& map) { std::swap(map[segment_of(map, 0, 3, 0) + 2], map[segment_of(map, 0, 3, 6) + 2]); });
    CHECK(has(result, "fingerprint", kShard));
  }
  SECTION("a piece one token further on") {
    const auto result = change([&](auto& map) { ++map[segment_of(map, 0, 3, 6) + 2]; });
    CHECK(has(result, "placement", "a.bin", "record 3: tokens 6 to 6 are neither in a row nor in removed.csv"));
  }
  SECTION("of another partition") {
    TinyOptions parts = options;
    parts.partition_sequences = 6;
    Tampered two(parts);
    CHECK(has(two.array<std::int64_t>("seq_source",
                                      [](auto& map) {
                                        map[0] = 1;
                                        map[1] = 7;
                                        map[2] = 0;
                                      }),
              "source", kShard, "another partition", 0));
  }
}

TEST_CASE("a plan that is not what the rows are is found by logic") {
  TinyOptions options;
  options.policy = {.row_tokens = 8, .overlong = Overlong::drop};
  Tampered dataset(options);
  REQUIRE(dataset.verified().ok());
  const std::string plan = "plan-00000.json";

  SECTION("a strategy") {
    const auto result = dataset.text(plan, "\"lengths\": [8], \"count\": 1", "\"lengths\": [7], \"count\": 1");
    INFO(show(result.issues));
    CHECK(has(result, "cover", plan, "length 8: 1 items without a place"));
    CHECK(has(result, "cover", kShard, "holds [8], which is no strategy"));
  }
  SECTION("a count") {
    replace_text(dataset.folder.path(plan), "\"rows\": 5", "\"rows\": 6");
    const auto result = dataset.text(plan, "\"lengths\": [8], \"count\": 1", "\"lengths\": [8], \"count\": 2");
    INFO(show(result.issues));
    CHECK(has(result, "cover", plan, "places more than there are items"));
    CHECK(has(result, "plan", plan, "the manifest says"));
    CHECK(has(result, "cover", plan, "1 rows of the plan are not there"));
  }
  SECTION("the bound") {
    const auto result = dataset.text(plan, "\"bound\": 5", "\"bound\": 4");
    CHECK(has(result, "bound", plan, "bound is 4"));
  }
  SECTION("a bound without a proof") {
    const auto result = dataset.text(plan, "\"bound_kind\": \"l", "\"bound_kind\": \"lp\", \"x\": \"l");
    CHECK_FALSE(result.ok());
    CHECK(names(result, plan));
  }
  SECTION("no plan at all") { CHECK(has(dataset.text(plan, "shardpack-plan", "shardpack-plum"), "plan", plan)); }
  SECTION("a plan that is no JSON") { CHECK(has(dataset.text(plan, "\"entries\"", "entries"), "plan", plan)); }
}

TEST_CASE("removed.csv that says something else is found by logic") {
  TinyOptions options;
  options.policy = {.row_tokens = 8, .overlong = Overlong::truncate, .min_tokens = 3};
  Tampered dataset(options);
  REQUIRE(dataset.verified().ok());
  const std::string file = "removed.csv";
  const std::string quoted = "\"b, \"\"quoted\"\".bin\"";

  SECTION("other tokens") {
    CHECK(has(dataset.text(file, "a.bin,1,8,1,", "a.bin,1,7,1,"), "placement", "a.bin", "record 1: token 7 is there twice"));
  }
  SECTION("another cause") {
    CHECK(has(dataset.text(file, quoted + ",3,0,1,short", quoted + ",3,0,1,dropped"), "count", "manifest.json", "removed.short"));
  }
  SECTION("a line less") {
    const auto result = dataset.text(file, quoted + ",3,0,1,short\n", "");
    CHECK(has(result, "count", "manifest.json", "tokens of b, \"quoted\".bin"));
    CHECK(has(result, "count", "manifest.json", "removed.short.sequences"));
  }
  SECTION("a line twice") {
    CHECK(has(dataset.text(file, quoted + ",3,0,1,short\n", quoted + ",3,0,1,short\n" + quoted + ",3,0,1,short\n"), "placement",
              "b, \"quoted\".bin", "record 3: token 0 is there twice"));
  }
  SECTION("nonsense") { CHECK(has(dataset.text(file, "a.bin,1,8,1,", "a.bin,1,8,-1,"), "removed", file, "line 2")); }
  SECTION("tokens that no file has") {
    CHECK(has(dataset.text(file, "a.bin,1,8,1,", "a.bin,1,800,1,"), "removed", file, "line 2"));
  }
  SECTION("an unknown source") { CHECK(has(dataset.text(file, "a.bin,1,", "z.bin,1,"), "removed", file, "line 2")); }
  SECTION("another header") { CHECK(has(dataset.text(file, "first_token", "last_token"), "removed", file, "line 1")); }
  SECTION("no last newline") {
    std::string text = read_file(dataset.folder.path(file));
    text.pop_back();
    write_file(dataset.folder.path(file), text);
    CHECK(has(dataset.verified(), "removed", file, "the last line has no end"));
  }
  SECTION("an open quote") { CHECK(has(dataset.text(file, quoted, "\"b"), "removed", file)); }
}

TEST_CASE("tail rows that do not repeat the first rows are found by logic") {
  TinyOptions options;
  SECTION("another row repeated") {
    options.repeated_rows = 2;
    Tampered dataset(options);
    const std::string tail = "shard-00000-00001";
    const auto swapped = [&](const std::string& file, auto zero) {
      change_array<decltype(zero)>(dataset.folder.path(tail + "/" + file),
                                   [&](auto& ids) { std::swap_ranges(ids.begin(), ids.begin() + 16, ids.begin() + 16); });
    };
    REQUIRE(dataset.verified().ok());
    // The tail's own arrays stay true to each other when all of a row moves; only the order is wrong then.
    std::int64_t first_of_second = 0;
    change_array<std::int64_t>(dataset.folder.path(tail + "/row_offsets.npy"), [&](auto& offsets) {
      first_of_second = offsets[1];
      offsets[1] = offsets[2] - offsets[1];
    });
    change_array<std::int32_t>(dataset.folder.path(tail + "/seq_lengths.npy"), [&](auto& lengths) {
      std::rotate(lengths.begin(), lengths.begin() + first_of_second, lengths.end());
    });
    change_array<std::int64_t>(dataset.folder.path(tail + "/seq_source.npy"),
                               [&](auto& map) { std::rotate(map.begin(), map.begin() + 3 * first_of_second, map.end()); });
    swapped("input_ids.npy", std::uint16_t{0});
    swapped("segment_ids.npy", std::uint16_t{0});
    swapped("position_ids.npy", std::uint16_t{0});
    const auto result = dataset.verified();
    INFO(show(result.issues));
    CHECK(has(result, "tail", tail, "expected row 0", 0));
    CHECK(has(result, "tail", tail, "expected row 1", 1));
    CHECK(result.issues.size() == 2);
  }
  SECTION("a fill row that is not all padding") {
    options.fill_rows = 2;
    Tampered dataset(options);
    const auto result = dataset.array<std::uint16_t>(
        "input_ids", [](std::vector<std::uint16_t>& ids) { ids[20] = 100; }, "shard-00000-00001");
    CHECK(has(result, "ids", "shard-00000-00001", "slot 4: padding is 100", 1));
  }
  SECTION("tail rows that are planned ones") {
    options.shard_rows = 1;
    Tampered dataset(options);
    CHECK_FALSE(dataset
                    .stated([](Manifest& m) {
                      m.repeated_rows = 1;
                      m.plan.rows -= 1;
                      m.partitions[0].rows -= 1;
                    })
                    .ok());
  }
}

TEST_CASE("a manifest with another figure is found, its checksum made to match") {
  TinyOptions options;
  options.policy = {.row_tokens = 8, .overlong = Overlong::truncate, .min_tokens = 2, .append_eos = true};
  options.partition_sequences = 6;
  options.repeated_rows = 2;
  Tampered dataset(options);
  REQUIRE(dataset.verified().ok());
  using Change = std::function<void(Manifest&)>;
  const std::vector<std::pair<std::string, Change>> changes{
      {"row_tokens", [](Manifest& m) { m.row_tokens *= 2; }},
      {"rows", [](Manifest& m) { ++m.rows; }},
      {"source_sequences", [](Manifest& m) { ++m.source_sequences; }},
      {"source_tokens", [](Manifest& m) { ++m.source_tokens; }},
      {"sequences", [](Manifest& m) { --m.sequences; }},
      {"segments", [](Manifest& m) { ++m.segments; }},
      {"tokens", [](Manifest& m) { ++m.tokens; }},
      {"padding_tokens", [](Manifest& m) { ++m.padding_tokens; }},
      {"max_segments_in_row", [](Manifest& m) { ++m.max_segments_in_row; }},
      {"packer", [](Manifest& m) { m.plan.packer = "spfhp"; }},
      {"bound_kind", [](Manifest& m) { m.plan.bound_kind = "cardinality"; }},
      {"max_segments", [](Manifest& m) { m.plan.max_segments = 9; }},
      {"segment_multiple", [](Manifest& m) { m.plan.segment_multiple = 2; }},
      {"plan.rows", [](Manifest& m) { ++m.plan.rows; }},
      {"plan.bound", [](Manifest& m) { --m.plan.bound; }},
      {"ids.dtype", [](Manifest& m) { m.id_type = IdType::u32; }},
      {"ids.min", [](Manifest& m) { ++m.id_min; }},
      {"ids.max", [](Manifest& m) { m.id_max = 120; }},
      {"pad_id", [](Manifest& m) { ++m.pad_id; }},
      {"eos_id", [](Manifest& m) { m.eos_id = 12; }},
      {"no eos_id", [](Manifest& m) { m.eos_id.reset(); }},
      {"position_start", [](Manifest& m) { ++m.position_start; }},
      {"derived", [](Manifest& m) { m.derived = false; }},
      {"compress", [](Manifest& m) { m.compress = "zstd:3"; }},
      {"source tokens of a file",
       [](Manifest& m) {
         ++m.sources[0].tokens;
         --m.sources[1].tokens;
       }},
      {"source records of a file",
       [](Manifest& m) {
         ++m.sources[0].sequences;
         --m.sources[1].sequences;
       }},
      {"fingerprint.source", [](Manifest& m) { ++m.source_fingerprint.low; }},
      {"fingerprint.packed",
       [](Manifest& m) {
         ++m.packed_fingerprint->high;
         --m.removed_fingerprint->high;
       }},
      {"removed.truncated", [](Manifest& m) { ++m.removed[2].sequences; }},
      {"removed tokens moved to another cause",
       [](Manifest& m) {
         --m.removed[2].tokens;
         ++m.removed[4].tokens;
       }},
      {"empty records moved", [](Manifest& m) { std::swap(m.removed[0], m.removed[5]); }},
      {"added.eos",
       [](Manifest& m) {
         --m.added_eos;
         ++m.added_bos;
       }},
      {"repeated.sequences", [](Manifest& m) { ++m.repeated_sequences; }},
      {"repeated.tokens", [](Manifest& m) { ++m.repeated_tokens; }},
      {"repeated rows as fill rows", [](Manifest& m) { std::swap(m.repeated_rows, m.fill_rows); }},
      {"a partition's sequences",
       [](Manifest& m) {
         const SequenceRanges a = m.partitions[0].sequences, b = m.partitions[1].sequences;
         m.partitions[0].sequences = SequenceRanges(a.first(), a.last() - 1);
         m.partitions[1].sequences = SequenceRanges(b.first() - 1, b.last());
       }},
      {"partitions with a hole",
       [](Manifest& m) { m.partitions[0].sequences = SequenceRanges(0, m.partitions[0].sequences.last() - 1); }},
      {"a partition beyond the end",
       [](Manifest& m) { m.partitions[1].sequences = SequenceRanges(m.partitions[1].sequences.first(), std::int64_t{1} << 40); }},
      {"partitions that share records",
       [](Manifest& m) { m.partitions[1].sequences = SequenceRanges(0, m.partitions[1].sequences.last()); }},
      {"a partition's rows",
       [](Manifest& m) {
         ++m.partitions[0].rows;
         --m.partitions[1].rows;
       }},
      {"a partition's bound",
       [](Manifest& m) {
         ++m.partitions[0].bound;
         --m.partitions[1].bound;
       }},
      {"a partition's plan", [](Manifest& m) { std::swap(m.partitions[0].plan, m.partitions[1].plan); }},
      {"a partition's shards", [](Manifest& m) { std::swap(m.partitions[0].shards, m.partitions[1].shards); }},
      {"a shard in no partition", [](Manifest& m) { m.partitions[1].shards.pop_back(); }},
      {"shards in another order", [](Manifest& m) { std::swap(m.shards[0], m.shards[1]); }},
      {"a shard's rows",
       [](Manifest& m) {
         ++m.shards[0].rows;
         --m.shards[1].rows;
       }},
      {"a shard's tokens", [](Manifest& m) { ++m.shards[0].tokens; }},
      {"a shard's segments", [](Manifest& m) { ++m.shards[0].segments; }},
      {"a shard's fingerprint", [](Manifest& m) { ++m.shards[0].fingerprint->low; }},
      {"a file not listed", [](Manifest& m) { m.shards[0].files.pop_back(); }},
      {"a shard not listed", [](Manifest& m) { m.shards.pop_back(); }},
      {"a file beside the manifest not listed", [](Manifest& m) { m.files.erase(m.files.begin()); }},
      {"a file listed twice", [](Manifest& m) { m.files.push_back(m.files.front()); }},
  };
  for (const auto& change : changes) {
    INFO(change.first);
    CHECK_FALSE(dataset.stated(change.second).ok());
  }
  CHECK(dataset.verified().ok());

  write_file(dataset.folder.path("notes.txt"), "not ours");
  const VerifyResult listed =
      dataset.stated([](Manifest& m) { m.files.push_back({.name = "notes.txt", .bytes = 0, .hash = ""}); });
  CHECK(has(listed, "manifest", "manifest.json", "notes.txt is listed"));
  CHECK(listed.issues.size() == 1);
}

TEST_CASE("claims of empty records cost nothing, and more than pack gives a partition are refused") {
  Tampered dataset;
  const auto with_more_empty = [&](std::int64_t records) {
    return dataset.stated([records](Manifest& m) {
      m.source_sequences += records;
      m.sources.back().sequences += records;
      m.removed[static_cast<std::size_t>(RemovalCause::empty)].sequences += records;
      SequenceRanges& last = m.partitions.back().sequences;
      last = SequenceRanges(last.first(), last.last() + records);
    });
  };
  CHECK(with_more_empty(3'900'000).ok());  // there may be as many
  const VerifyResult result = with_more_empty(60'000'000);
  CHECK(has(result, "manifest", "manifest.json", "sequences, and none has more than 4,000,000"));
  CHECK(result.issues.size() == 1);
}

TEST_CASE("partitions do not share a plan") {
  TinyOptions options;
  options.partition_sequences = 6;
  Tampered dataset(options);
  REQUIRE(dataset.manifest.partitions.size() > 1);
  const VerifyResult result = dataset.stated([](Manifest& m) { m.partitions[1].plan = m.partitions[0].plan; });
  CHECK(has(result, "manifest", "manifest.json", "it is another partition's plan as well"));
}

TEST_CASE("issues of one kind are listed up to a hundred and counted beyond") {
  TinyOptions options;
  options.lengths.assign(300, 10);
  Tampered dataset(options);
  const auto result = dataset.array<std::uint16_t>("segment_ids", [](std::vector<std::uint16_t>& ids) {
    for (auto& id : ids) id = 9;
  });
  CHECK(result.issues.size() == 101);
  CHECK(result.issues.back().message == "and 200 more of this kind");
  CHECK(result.issues.front().row == 0);
}

TEST_CASE("verify of a plan") {
  Tampered dataset;
  const std::string plan = dataset.folder.path("plan-00000.json");
  const VerifyResult good = run_verify(plan);
  CHECK(good.ok());
  CHECK(good.rows == dataset.manifest.rows);
  CHECK(good.segments == dataset.manifest.segments);

  SECTION("an item more") {
    replace_text(plan, "\"count\": 1", "\"count\": 2");
    CHECK(has(run_verify(plan), "plan", "plan-00000.json", "rows"));
    replace_text(plan, "\"rows\": 5", "\"rows\": 6");
    CHECK(has(run_verify(plan), "cover", "plan-00000.json"));
  }
  SECTION("damaged: bad data") {
    write_file(plan, read_file(plan).substr(0, 200));
    CHECK_THROWS_AS(run_verify(plan), Error);
  }
}

TEST_CASE("what is neither a dataset nor a plan") {
  const TempFolder folder;
  const auto code = [](const std::string& path) {
    try {
      run_verify(path);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  CHECK(code(folder.path("nothing-here")) == ErrorCode::io);
  CHECK(code(folder.write("other.json", "{\"format\": \"something\"}")) == ErrorCode::bad_data);
  CHECK(code(folder.write("list.json", "[1, 2]")) == ErrorCode::bad_data);
  CHECK(code(folder.write("text.txt", "hello")) == ErrorCode::bad_data);
}

TEST_CASE("a row that tears a unit is found") {
  Tampered dataset;
  const VerifyResult result = dataset.text("plan-00000.json", "\"keep_together\": 1", "\"keep_together\": 2");
  CHECK(has(result, "unit", kShard, "2 consecutive records are kept together"));
}

}  // namespace
}  // namespace shardpack
