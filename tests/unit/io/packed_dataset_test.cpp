// Reading back, and refusing whatever is not whole or leads elsewhere.
#include "io/packed_dataset.h"

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/npy.h"
#include "shardpack/error.h"
#include "support/catch.h"
#include "support/packed_sample.h"
#include "support/temp_folder.h"

using namespace shardpack;
namespace fs = std::filesystem;

namespace {

template <class T>
std::string npy(std::string_view descr, const std::vector<std::int64_t>& shape, const std::vector<T>& values) {
  return make_npy_header(descr, shape) + bytes_of(values);
}

ErrorCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    INFO(error.what());
    CHECK_FALSE(error.path().empty());
    return error.code();
  }
  FAIL("no error");
  return ErrorCode::internal;
}

}  // namespace

TEST_CASE("an array is read in any rows and any integer type that holds it") {
  const TempFolder folder;
  const std::vector<std::int32_t> values{1, 2, 3, 4, 5, 70'000, -1, 0};
  const PackedArray array(folder.write("a.npy", npy<std::int32_t>("<i4", {4, 2}, values)));
  CHECK(array.rows() == 4);
  CHECK(array.row_elements() == 2);
  CHECK(array.type() == ValueType::i32);
  CHECK(array.read_all<std::int32_t>() == values);
  CHECK(array.read<std::int64_t>(1, 2) == std::vector<std::int64_t>{3, 4, 5, 70'000});
  CHECK(array.read<std::uint8_t>(0, 2) == std::vector<std::uint8_t>{1, 2, 3, 4});
  CHECK(array.read<std::uint16_t>(4, 0).empty());
  CHECK(code_of([&] { array.read<std::uint16_t>(2, 1); }) == ErrorCode::bad_data);
  CHECK(code_of([&] { array.read<std::uint32_t>(3, 1); }) == ErrorCode::bad_data);
  CHECK(code_of([&] { array.read<std::int32_t>(3, 2); }) == ErrorCode::bad_data);
  CHECK(code_of([&] { array.read<std::int32_t>(0, std::int64_t{1} << 62); }) == ErrorCode::bad_data);
  CHECK(code_of([&] { array.read<std::int32_t>(-1, 1); }) == ErrorCode::bad_data);
  CHECK(code_of([&] { array.read<std::int32_t>(5, 0); }) == ErrorCode::bad_data);
  CHECK(code_of([&] { array.read<std::int32_t>(0, -1); }) == ErrorCode::bad_data);
  std::vector<std::byte> bytes(16);
  array.read_bytes(1, bytes);
  CHECK(std::memcmp(bytes.data(), values.data() + 2, 16) == 0);
}

TEST_CASE("every stored type is converted with its sign") {
  const TempFolder folder;
  const auto read_one = [&](std::string_view descr, const std::string& bytes) {
    return PackedArray(folder.write("one.npy", make_npy_header(descr, {1}) + bytes)).read_all<std::int64_t>().front();
  };
  const std::string ones(8, '\xFF');
  CHECK(read_one("|u1", ones.substr(0, 1)) == 255);
  CHECK(read_one("|i1", ones.substr(0, 1)) == -1);
  CHECK(read_one("<u2", ones.substr(0, 2)) == 65'535);
  CHECK(read_one("<i2", ones.substr(0, 2)) == -1);
  CHECK(read_one("<u4", ones.substr(0, 4)) == 4'294'967'295);
  CHECK(read_one("<i4", ones.substr(0, 4)) == -1);
  CHECK(read_one("<i8", ones) == -1);
  CHECK(code_of([&] { read_one("<u8", ones); }) == ErrorCode::bad_data);
}

TEST_CASE("what is not a whole array of numbers is refused") {
  const TempFolder folder;
  const std::string good = npy<std::uint16_t>("<u2", {3, 2}, {1, 2, 3, 4, 5, 6});
  const auto opening = [&](const std::string& bytes) { return code_of([&] { PackedArray(folder.write("x.npy", bytes)); }); };
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) REQUIRE(opening(good.substr(0, bytes)) == ErrorCode::bad_data);
  CHECK(opening(good + "x") == ErrorCode::bad_data);
  CHECK(opening(make_npy_header("<c8", {0})) == ErrorCode::bad_data);
  CHECK(opening(make_npy_header("<f4", {1})) == ErrorCode::bad_data);  // no data follow
  CHECK(opening(make_npy_header(">u2", {0, 2})) == ErrorCode::bad_data);
  CHECK(opening(make_npy_header("<u2", {}) + "ab") == ErrorCode::bad_data);
  CHECK(opening(make_npy_header("<u2", {0, std::int64_t{1} << 40, std::int64_t{1} << 40})) == ErrorCode::bad_data);
  CHECK(code_of([&] { PackedArray(folder.path("none.npy")); }) == ErrorCode::io);
  CHECK(code_of([&] { PackedArray(folder.path()); }) == ErrorCode::io);
}

TEST_CASE("a dataset is opened by its folder or its manifest") {
  const TempFolder folder;
  for (const int level : {0, 3}) {
    const std::string path = folder.path("packed" + std::to_string(level));
    fs::create_directory(path);
    const Manifest written = write_sample_dataset(path, level);
    for (const std::string& given : {path, path + "/", path + "/manifest.json"}) {
      const PackedDataset dataset(given);
      REQUIRE(dataset.shards().size() == 1);
      CHECK(to_json(dataset.manifest()) == to_json(written));
      const ManifestShard& shard = dataset.shards().front();
      CHECK(dataset.has_array(shard, "segment_ids"));
      CHECK_FALSE(dataset.has_array(shard, "segment"));
      CHECK_FALSE(dataset.has_array(shard, "labels"));
      CHECK(dataset.open_array(shard, "input_ids").rows() == 40);
      CHECK(dataset.open_array(shard, "seq_lengths").rows() == shard.segments);
      CHECK(code_of([&] { dataset.open_array(shard, "labels"); }) == ErrorCode::bad_data);
    }
  }
}

TEST_CASE("what is not a dataset is told from what is not there") {
  const TempFolder folder;
  CHECK(code_of([&] { PackedDataset(folder.path("none")); }) == ErrorCode::io);
  CHECK(code_of([&] { PackedDataset{folder.path()}; }) == ErrorCode::bad_data);
  CHECK(code_of([&] { PackedDataset(folder.write("notes.txt", "hello")); }) == ErrorCode::bad_data);
  CHECK(code_of([&] { PackedDataset(folder.write("manifest.json", "{}")); }) == ErrorCode::bad_data);
}

TEST_CASE("no name leads out of the folder") {
  const TempFolder folder;
  const std::string secret = folder.write("secret.npy", "secret"), path = folder.path("packed");
  fs::create_directory(path);
  write_sample_dataset(path);
  const PackedDataset dataset(path);
  CHECK(dataset.file_path("", "manifest.json") == path + "/manifest.json");
  for (const char* name : {"", ".", "..", "../secret.npy", "/etc/passwd", "shard-00000-00000/input_ids.npy"}) {
    CHECK(code_of([&] { dataset.file_path("", name); }) == ErrorCode::bad_data);
    CHECK(code_of([&] { dataset.file_path("shard-00000-00000", name); }) == ErrorCode::bad_data);
  }
  CHECK(code_of([&] { dataset.file_path("..", "secret.npy"); }) == ErrorCode::bad_data);
  CHECK(code_of([&] { dataset.file_path("shard-00000-00000", "none.npy"); }) == ErrorCode::io);

  const std::string ids = path + "/shard-00000-00000/input_ids.npy";
  fs::rename(ids, path + "/kept.npy");
  fs::create_symlink("../kept.npy", ids);  // within the folder: as some storage tools do
  CHECK(dataset.open_array(dataset.shards().front(), "input_ids").rows() == 40);
  fs::remove(ids);
  fs::create_symlink(secret, ids);
  CHECK(code_of([&] { dataset.open_array(dataset.shards().front(), "input_ids"); }) == ErrorCode::bad_data);
  fs::remove(ids);
  fs::create_symlink(ids, ids);
  CHECK(code_of([&] { dataset.open_array(dataset.shards().front(), "input_ids"); }) == ErrorCode::io);
}
