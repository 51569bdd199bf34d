// HashedFile: the bytes and their hash, and no more room on the disk than they take, whatever was reserved for them.
#include "io/hashed_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "shardpack/error.h"
#include "support/catch.h"
#include "support/temp_folder.h"

namespace shardpack {
namespace {

std::string some_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  std::uint32_t state = 1;
  for (char& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

struct stat status_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status;
}

/// On the disk, in bytes.
std::int64_t room_of(const std::string& path) { return std::int64_t{status_of(path).st_blocks} * 512; }

void append_in_steps(HashedFile& file, const std::string& bytes, std::size_t step) {
  for (std::size_t at = 0; at < bytes.size(); at += step)
    file.append(std::as_bytes(std::span(bytes).subspan(at, std::min(step, bytes.size() - at))));
}

TEST_CASE("a file is as long as its bytes, whatever was expected, and its hash is theirs") {
  const TempFolder folder;
  constexpr std::int64_t kMib = 1 << 20;
  const std::string bytes = some_bytes((20 << 20) + 12'345);
  const auto all = static_cast<std::int64_t>(bytes.size());
  for (const std::int64_t expected : {std::int64_t{0}, kMib, all - 1, all, all + 1, 9 * kMib, 60 * kMib}) {
    INFO(expected << " bytes were expected");
    const std::string path = folder.path("file-" + std::to_string(expected));
    HashedFile file(path, expected);
    append_in_steps(file, bytes, 700'001);
    CHECK(file.bytes() == all);
    const ManifestFile listed = file.finish("name");
    CHECK(listed.name == "name");
    CHECK(listed.bytes == all);
    CHECK(listed.hash == hash_hex(bytes));
    CHECK(status_of(path).st_size == all);
    CHECK(read_small_file(path) == bytes);
  }
}

TEST_CASE("room that was not needed is given back") {
  const TempFolder folder;
  const std::string bytes = some_bytes(3 << 20);
  const std::string plain = folder.path("plain"), reserved = folder.path("reserved"), unused = folder.path("unused");
  {
    HashedFile file(plain);
    append_in_steps(file, bytes, 1 << 18);
    file.finish("plain");
  }
  HashedFile file(reserved, 40 << 20), empty(unused, 40 << 20);
  if (room_of(reserved) < (40 << 20)) {
    WARN("not checked: this file system reserves no room, or does not say how much a file takes");
    return;
  }
  CHECK(status_of(reserved).st_size == 0);  // it grows as bytes come
  append_in_steps(file, bytes, 1 << 18);
  CHECK(status_of(reserved).st_size == std::ssize(bytes));
  file.finish("reserved");
  empty.finish("unused");
  const std::int64_t page = status_of(plain).st_blksize;
  CHECK(room_of(reserved) <= std::max(room_of(plain), std::ssize(bytes)) + 2 * page);
  CHECK(room_of(unused) <= 2 * page);
  CHECK(read_small_file(reserved) == bytes);
}

TEST_CASE("room that cannot be had is no failure") {
  const TempFolder folder;
  HashedFile file(folder.path("file"), std::int64_t{1} << 55);
  file.append(std::as_bytes(std::span(std::string_view("bytes"))));
  CHECK(file.finish("file").hash == hash_hex("bytes"));
  CHECK(status_of(folder.path("file")).st_size == 5);
}

TEST_CASE("a file that is there is not written over") {
  const TempFolder folder;
  const std::string path = folder.write("file", "there");
  CHECK_THROWS_AS(HashedFile(path, 9 << 20), Error);
  CHECK(read_small_file(path) == "there");
}

}  // namespace
}  // namespace shardpack
