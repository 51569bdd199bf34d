// Frames, their table, and reading at any place of them.
#include "io/zstd_seekable.h"

#include <zstd.h>
#include <algorithm>
#include <span>

#include <string>
#include <vector>

#include "base/rng.h"
#include "shardpack/error.h"
#include "support/catch.h"
#include "support/compressed.h"
#include "support/temp_folder.h"

using namespace shardpack;

namespace {

std::string text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// `blocks` as a seekable file's bytes.
std::string seekable(const std::vector<std::string>& blocks) {
  ZstdCompressor compressor(3);
  ZstdSeekTable table;
  std::string file;
  for (const std::string& block : blocks) {
    const ByteBuffer frame = compressor.frame(std::as_bytes(std::span(block)));
    CHECK(table.add(frame) == static_cast<std::int64_t>(block.size()));
    file += text_of(frame);
  }
  return file + text_of(table.bytes());
}

/// Blocks of 0 to 5,000 bytes, some of them compressible.
std::vector<std::string> sample_blocks() {
  const RandomStream random(3, RandomPurpose::sample);
  std::vector<std::string> blocks{""};
  std::uint64_t draw = 0;
  for (const std::size_t bytes : {1, 5000, 17, 0, 4096, 0, 0, 333, 1}) {
    std::string block;
    const std::uint64_t letters = draw % 2 == 0 ? 256 : 3;
    for (std::size_t i = 0; i < bytes; ++i) block += static_cast<char>(random.bounded(draw++, letters));
    blocks.push_back(block);
  }
  blocks.push_back("");
  return blocks;
}

std::string join(const std::vector<std::string>& blocks) {
  std::string all;
  for (const std::string& block : blocks) all += block;
  return all;
}

ZstdSeekableReader open(const TempFolder& folder, const std::string& bytes) {
  return ZstdSeekableReader(File(folder.write("data.zst", bytes), File::Mode::read));
}

std::string read(const ZstdSeekableReader& reader, std::int64_t offset, std::size_t bytes) {
  std::string out(bytes, '?');
  reader.read_at(offset, std::as_writable_bytes(std::span(out)));
  return out;
}

/// As a decoder that knows nothing of the table reads the whole file.
std::string plain_decode(const std::string& file) {
  ZSTD_DCtx* const context = ZSTD_createDCtx();
  std::string out;
  ZSTD_inBuffer in{file.data(), file.size(), 0};
  std::string block(1000, '\0');
  std::size_t result = 0;
  while (in.pos < in.size) {
    ZSTD_outBuffer to{block.data(), block.size(), 0};
    result = ZSTD_decompressStream(context, &to, &in);
    REQUIRE_FALSE(ZSTD_isError(result));
    out.append(block, 0, to.pos);
  }
  ZSTD_freeDCtx(context);
  CHECK(result == 0);
  return out;
}

}  // namespace

TEST_CASE("a seekable file is an ordinary zstd stream and is read at any place") {
  const TempFolder folder;
  const std::vector<std::string> blocks = sample_blocks();
  const std::string all = join(blocks), file = seekable(blocks);
  CHECK(plain_decode(file) == all);

  const ZstdSeekableReader reader = open(folder, file);
  CHECK(reader.size() == static_cast<std::int64_t>(all.size()));
  CHECK(reader.frames() == static_cast<std::int64_t>(blocks.size()));
  CHECK(read(reader, 0, all.size()) == all);
  const RandomStream random(4, RandomPurpose::sample);
  for (std::uint64_t i = 0; i < 500; ++i) {
    const std::size_t begin = random.bounded(2 * i, all.size() + 1);
    const std::size_t bytes = random.bounded(2 * i + 1, all.size() - begin + 1);
    REQUIRE(read(reader, static_cast<std::int64_t>(begin), bytes) == all.substr(begin, bytes));
  }
  CHECK_THROWS_AS(read(reader, 0, all.size() + 1), Error);
  CHECK_THROWS_AS(read(reader, -1, 1), Error);
  CHECK_THROWS_AS(read(reader, static_cast<std::int64_t>(all.size()) + 1, 0), Error);
}

TEST_CASE("the table is laid out byte by byte as the format says") {
  const std::string file = seekable({"abc", std::string(1000, 'x')});
  const std::string table = file.substr(file.size() - 8 - 16 - 9);
  const auto u32 = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<unsigned char>(table[at + i])} << (8 * i);
    return value;
  };
  CHECK(u32(0) == 0x184D2A5E);
  CHECK(u32(4) == 16 + 9);
  CHECK(u32(8) + u32(16) == file.size() - table.size());
  CHECK(u32(12) == 3);
  CHECK(u32(20) == 1000);
  CHECK(u32(24) == 2);
  CHECK(table[28] == 0);
  CHECK(u32(29) == 0x8F92EAB1);
}

TEST_CASE("a table with checksums, as other writers make it, is read too") {
  const TempFolder folder;
  const std::string frame = zstd_frame("hello");
  const auto le32 = [](std::size_t value) {
    std::string bytes;
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift & 0xFF);
    return bytes;
  };
  const std::string entries = le32(frame.size()) + le32(5) + "sum!";
  const std::string file = frame + zstd_skippable_frame(entries + le32(1) + '\x80' + le32(0x8F92EAB1));
  CHECK(read(open(folder, file), 0, 5) == "hello");
}

TEST_CASE("a file that was cut, or any changed byte, is refused or changes nothing") {
  const TempFolder folder;
  const std::vector<std::string> blocks{"head", std::string(500, 'a') + "tail", "0123456789"};
  const std::string all = join(blocks), file = seekable(blocks);
  for (std::size_t bytes = 0; bytes < file.size(); ++bytes) {
    CHECK_THROWS_AS(open(folder, file.substr(0, bytes)), Error);
  }
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit);
      try {
        const ZstdSeekableReader reader = open(folder, damaged);
        REQUIRE(reader.size() >= 0);
        const std::string text = read(reader, 0, static_cast<std::size_t>(std::min<std::int64_t>(reader.size(), 1 << 20)));
        INFO("byte " << at << " bit " << bit);
        CHECK(text == all);
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::bad_data);
        CHECK_FALSE(error.path().empty());
      }
    }
  }
}

TEST_CASE("levels are those of the library") {
  CHECK(ZstdCompressor::max_level() >= 19);
  ZstdCompressor low(1), high(19);
  const std::string text(20'000, 'z');
  const auto bytes = std::as_bytes(std::span(text));
  CHECK(low.frame(bytes) == low.frame(bytes));
  CHECK(ZstdCompressor(1).frame(bytes) == low.frame(bytes));
}
