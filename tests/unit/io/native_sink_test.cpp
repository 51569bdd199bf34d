// The files of a shard against arrays made slot by slot from the same rows.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/npy.h"
#include "io/packed_dataset.h"
#include "shardpack/error.h"
#include "support/catch.h"
#include "support/packed_sample.h"
#include "support/temp_folder.h"

using namespace shardpack;

namespace {

using Numbers = std::vector<std::int64_t>;

/// The arrays of a shard by the words of the format's description.
std::map<std::string, Numbers> expected_arrays(const SampleRows& rows, Length row_tokens, std::uint32_t position_start) {
  std::map<std::string, Numbers> arrays;
  arrays["row_offsets"].push_back(0);
  for (const std::vector<RowSegment>& row : rows) {
    std::int64_t slots = 0, number = 0;
    for (const RowSegment& segment : row) {
      ++number;
      for (std::int64_t place = 0; place < segment.slots; ++place) {
        const bool token = place < segment.length();
        arrays["input_ids"].push_back(token ? sample_id(segment, place) : 0);
        arrays["segment_ids"].push_back(token ? number : 0);
        arrays["position_ids"].push_back(token ? position_start + place : 0);
      }
      slots += segment.slots;
      arrays["seq_lengths"].push_back(segment.length());
      arrays["seq_slots"].push_back(segment.slots);
      arrays["seq_added"].push_back(segment.added);
      for (const std::int64_t value : {std::int64_t{segment.file}, segment.record, segment.first_token}) {
        arrays["seq_source"].push_back(value);
      }
    }
    for (; slots < row_tokens; ++slots) {
      for (const char* name : {"input_ids", "segment_ids", "position_ids"}) arrays[name].push_back(0);
    }
    arrays["row_offsets"].push_back(arrays["row_offsets"].back() + number);
  }
  return arrays;
}

std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files[entry.path().filename().string()] = read_small_file(entry.path().string());
  }
  return files;
}

std::vector<std::string> names(const std::vector<ManifestFile>& files) {
  std::vector<std::string> result;
  for (const ManifestFile& file : files) result.push_back(file.name);
  return result;
}

}  // namespace

TEST_CASE("a shard's arrays are what the format says, whatever the blocks, compressed or not") {
  const TempFolder folder;
  const SampleOptions options{.segment_multiple = 4};
  const SampleRows rows = sample_rows(50, options);
  const auto expected = expected_arrays(rows, options.row_tokens, 2);
  for (const IdType id_type : {IdType::u16, IdType::u32}) {
    std::map<std::string, std::string> plain;
    for (const std::size_t block_rows : {1, 7, 50}) {
      for (const int level : {0, 3}) {
        INFO(info(id_type).name << ", blocks of " << block_rows << " rows, level " << level);
        const std::string shard = folder.path(fmt::format("{}-{}-{}", info(id_type).name, block_rows, level));
        ShardPlan plan = sample_plan(shard, rows, options);
        plan.id_type = id_type;
        plan.position_start = 2;
        plan.zstd_level = level;
        const std::vector<ManifestFile> files = write_sample(plan, rows, block_rows);

        const std::string suffix = level > 0 ? ".npy.zst" : ".npy";
        std::vector<std::string> expected_names;
        for (const auto& [stem, values] : expected) expected_names.push_back(stem + suffix);
        CHECK(names(files) == expected_names);
        for (const auto& [stem, values] : expected) {
          const PackedArray array(shard + "/" + stem + suffix);
          INFO(stem);
          CHECK(array.read_all<std::int64_t>() == values);
          CHECK(array.rows() * array.row_elements() == static_cast<std::int64_t>(values.size()));
        }
        const std::map<std::string, std::string> bytes = contents(shard);
        CHECK(bytes.size() == files.size());
        for (const ManifestFile& file : files) {
          CHECK(file.bytes == static_cast<std::int64_t>(bytes.at(file.name).size()));
          CHECK(file.hash == hash_hex(bytes.at(file.name)));
        }
        if (level == 0 && plain.empty()) plain = bytes;
        if (level == 0) CHECK(bytes == plain);
      }
    }
  }
}

TEST_CASE("types follow from what must fit") {
  const TempFolder folder;
  const SampleRows rows = sample_rows(3, {});
  const auto type_of = [&](const char* shard, const char* stem) {
    return PackedArray(folder.path(std::string(shard) + "/" + stem + ".npy")).type();
  };
  ShardPlan plan = sample_plan(folder.path("small"), rows, {});
  plan.max_segments_in_row = 65'535;
  plan.position_start = 65'535 - 63;
  write_sample(plan, rows, 3);
  CHECK(type_of("small", "segment_ids") == ValueType::u16);
  CHECK(type_of("small", "position_ids") == ValueType::u16);
  CHECK(type_of("small", "input_ids") == ValueType::u16);
  CHECK(type_of("small", "row_offsets") == ValueType::i64);
  CHECK(type_of("small", "seq_lengths") == ValueType::i32);
  CHECK(type_of("small", "seq_source") == ValueType::i64);
  CHECK(type_of("small", "seq_added") == ValueType::u8);
  CHECK(PackedArray(folder.path("small/seq_source.npy")).shape() == std::vector<std::int64_t>{plan.segments, 3});

  plan.folder = folder.path("large");
  plan.max_segments_in_row = 65'536;
  plan.position_start = 65'535 - 62;
  plan.id_type = IdType::u32;
  write_sample(plan, rows, 3);
  CHECK(type_of("large", "segment_ids") == ValueType::u32);
  CHECK(type_of("large", "position_ids") == ValueType::u32);
  CHECK(type_of("large", "input_ids") == ValueType::u32);
}

TEST_CASE("what is not asked for or says nothing is left out") {
  const TempFolder folder;
  const SampleRows rows = sample_rows(5, {.added = false});
  ShardPlan plan = sample_plan(folder.path("shard"), rows, {});
  plan.derived = false;
  CHECK(names(write_sample(plan, rows, 2)) ==
        std::vector<std::string>{"input_ids.npy", "row_offsets.npy", "seq_lengths.npy", "seq_source.npy"});
}

TEST_CASE("the data of every file begin on a multiple of 64 bytes") {
  const TempFolder folder;
  const SampleRows rows = sample_rows(5, {});
  for (const ManifestFile& file : write_sample(sample_plan(folder.path("shard"), rows, {}), rows, 2)) {
    const std::string bytes = read_small_file(folder.path("shard/" + file.name));
    CHECK(bytes.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
    CHECK(parse_npy_header(bytes, file.bytes, file.name).data_begin % 64 == 0);
  }
}

TEST_CASE("a shard without segments is whole: rows of padding only") {
  const TempFolder folder;
  const SampleRows rows(4);
  for (const int level : {0, 1}) {
    ShardPlan plan = sample_plan(folder.path("shard" + std::to_string(level)), rows, {});
    plan.zstd_level = level;
    const std::vector<ManifestFile> files = write_sample(plan, rows, 3);
    const std::string suffix = level > 0 ? ".npy.zst" : ".npy";
    CHECK(PackedArray(plan.folder + "/row_offsets" + suffix).read_all<std::int64_t>() == Numbers(5));
    CHECK(PackedArray(plan.folder + "/input_ids" + suffix).read_all<std::int64_t>() == Numbers(4 * 64));
    CHECK(PackedArray(plan.folder + "/seq_source" + suffix).rows() == 0);
  }
}

TEST_CASE("a sink refuses a folder that is there, and rows that its plan does not have") {
  const TempFolder folder;
  const SampleRows rows = sample_rows(6, {});
  ShardPlan plan = sample_plan(folder.path("shard"), rows, {});
  write_sample(plan, rows, 6);
  try {
    make_native_sink(plan);
    FAIL("a folder that exists");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::io);
    CHECK(error.path() == plan.folder);
  }
  plan.folder = folder.path("short");
  plan.rows = 7;
  CHECK_THROWS_AS(write_sample(plan, rows, 6), Error);
  plan.folder = folder.path("few");
  plan.rows = 6;
  plan.segments += 1;
  CHECK_THROWS_AS(write_sample(plan, rows, 6), Error);
}
