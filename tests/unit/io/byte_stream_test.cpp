#include "io/byte_stream.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "shardpack/error.h"
#include "shardpack/thread_pool.h"
#include "support/catch.h"
#include "support/compressed.h"
#include "support/standard_input.h"
#include "support/temp_folder.h"

using namespace shardpack;

namespace {

std::string read_all(ByteStream& stream, std::size_t step) {
  std::string all, piece(step, '\0');
  while (true) {
    const std::size_t n = stream.read(std::as_writable_bytes(std::span(piece)));
    all.append(piece, 0, n);
    if (n < step) return all;
  }
}

std::string read_all(const std::string& path, std::size_t step = 1 << 16) {
  ByteStream stream(path);
  return read_all(stream, step);
}

/// Text that compresses, but not to nothing: more than one buffer of stored bytes.
std::string long_text(std::size_t lines) {
  std::string text;
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < lines; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    text += std::to_string(state >> 20) + "\n";
  }
  return text;
}

struct Refusal {
  ErrorCode code = ErrorCode::internal;
  std::string message = "no error", path, position;
};
bool operator==(const Refusal& a, const Refusal& b) { return a.code == b.code && a.message == b.message && a.path == b.path; }
Refusal refusal(const std::string& path, const std::string& shown = "x.gz") {
  try {
    ByteStream stream(path, shown);
    read_all(stream, 1 << 12);
  } catch (const Error& error) {
    return {error.code(), error.message(), error.path(), error.position()};
  }
  return {};
}

}  // namespace

TEST_CASE("compression is told by the first bytes") {
  CHECK(compression_of(gzip_member("x")) == Compression::gzip);
  CHECK(compression_of(zstd_frame("x")) == Compression::zstd);
  CHECK(compression_of(zstd_skippable_frame("")) == Compression::zstd);
  CHECK(compression_of("{\"input_ids\": []}") == Compression::none);
  CHECK(compression_of("") == Compression::none);
  CHECK(compression_of("\x1F") == Compression::none);
}

TEST_CASE("every member and every frame is read, whatever the size of the reads") {
  const TempFolder folder;
  const std::string a = long_text(40'000), b = "second\n", c = long_text(3);
  const std::string gzip =
      folder.write("x.gz", gzip_member(a) + gzip_member("") + gzip_member(b) + gzip_member(c) + gzip_member(""));
  const std::string zstd =
      folder.write("x.zst", zstd_skippable_frame("head") + zstd_frame(a) + zstd_skippable_frame("") + zstd_frame("") +
                                zstd_frame(b) + zstd_frame(c) + zstd_skippable_frame(std::string(300'000, 's')));
  const std::string plain = folder.write("x", a + b + c);
  for (const std::string& path : {gzip, zstd, plain}) {
    for (const std::size_t step : {std::size_t{7}, std::size_t{4096}, std::size_t{1} << 20, std::size_t{1} << 24}) {
      CAPTURE(path, step);
      CHECK(read_all(path, step) == a + b + c);
    }
  }
}

TEST_CASE("the stored bytes are counted and hashed, and an ended stream stays ended") {
  const TempFolder folder;
  const std::string text = long_text(50'000);
  for (const std::string& stored : {text, gzip_member(text), zstd_frame(text) + zstd_skippable_frame("end")}) {
    ByteStream stream(folder.write("x", stored));
    CHECK(read_all(stream, 1 << 16).size() == text.size());
    std::byte more[8];
    CHECK(stream.read(more) == 0);
    CHECK(stream.stored_bytes() == static_cast<std::int64_t>(stored.size()));
    CHECK(stream.stored_hash() == hash_hex(stored));

    ByteStream skipped(folder.path("x"));
    CHECK(skipped.read(more) == 8);
    skipped.skip_rest();
    CHECK(skipped.stored_bytes() == static_cast<std::int64_t>(stored.size()));
    CHECK(skipped.stored_hash() == hash_hex(stored));
  }
}

TEST_CASE("an empty file holds nothing, but not under the name of a compressed one") {
  const TempFolder folder;
  CHECK(read_all(folder.write("x.jsonl", "")).empty());
  for (const char* name : {"x.jsonl.gz", "x.zst", "x.zstd"}) {
    const Refusal found = refusal(folder.write(name, ""), name);
    CHECK(found.code == ErrorCode::bad_data);
    CHECK(found.path == name);
    CHECK(found.position == "byte 0");
    CHECK(found.message.find("the file is empty") == 0);
  }
}

TEST_CASE("compressed data cut anywhere but between two parts are refused with the place") {
  const TempFolder folder;
  const std::string text = "{\"input_ids\": [1, 2, 3]}\n";
  struct Case {
    std::vector<std::string> parts;
    std::string part_name;
  };
  for (const Case& c : {Case{{gzip_member(text), gzip_member(""), gzip_member(text)}, "gzip member"},
                        Case{{zstd_frame(text), zstd_skippable_frame("skip"), zstd_frame(text)}, "zstd frame"}}) {
    std::string whole;
    std::size_t boundaries = 0;
    for (const std::string& part : c.parts) {
      for (std::size_t cut = 0; cut < part.size(); ++cut) {
        CAPTURE(c.part_name, whole.size(), cut);
        const std::string path = folder.write("x", whole + part.substr(0, cut));
        // Shorter than a magic number, a first part is not known as one: the next layer refuses it as JSON.
        if (whole.empty() && cut < (c.part_name == "gzip member" ? 2u : 4u)) {
          CHECK(read_all(path).size() == cut);
        } else if (cut == 0) {
          ++boundaries;
          CHECK(refusal(path).message == "no error");
        } else {
          const Refusal found = refusal(path);
          CHECK(found.code == ErrorCode::bad_data);
          CHECK(found.path == "x.gz");
          CHECK(found.position == "byte " + std::to_string(whole.size() + cut));
          const std::string number = std::to_string(boundaries + 1);
          CHECK(found.message == "the file is cut short: it ends inside " + c.part_name + " " + number);
        }
      }
      whole += part;
    }
  }
}

TEST_CASE("what follows the last part must be another one") {
  const TempFolder folder;
  const std::string gzip = gzip_member("x\n"), zstd = zstd_frame("x\n");
  const std::string at_gzip = "byte " + std::to_string(gzip.size()), at_zstd = "byte " + std::to_string(zstd.size());
  for (const std::string& tail : {std::string("garbage"), std::string(512, '\0'), std::string("{\"input_ids\": []}\n")}) {
    Refusal found = refusal(folder.write("x", gzip + tail));
    CHECK(found.code == ErrorCode::bad_data);
    CHECK(found.message == "other data follow the last gzip member");
    CHECK(found.position == at_gzip);
    found = refusal(folder.write("x", zstd + tail));
    CHECK(found.code == ErrorCode::bad_data);
    CHECK(found.message == "other data follow the last zstd frame");
    CHECK(found.position == at_zstd);
  }
  CHECK(refusal(folder.write("x", gzip + "g")).code == ErrorCode::bad_data);
  CHECK(refusal(folder.write("x", zstd + "g")).code == ErrorCode::bad_data);
}

TEST_CASE("a flipped bit anywhere in the data or checksum of a part is found") {
  const TempFolder folder;
  const std::string text = long_text(8);
  const std::string gzip = gzip_member(text), zstd = zstd_frame(text);
  for (std::size_t i = 10; i < gzip.size(); ++i) {  // the header's time and system are not covered by anything
    std::string damaged = gzip;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    CAPTURE(i);
    const Refusal found = refusal(folder.write("x", damaged));
    CHECK(found.code == ErrorCode::bad_data);
    CHECK(found.position.find("byte ") == 0);
  }
  for (std::size_t i = 6; i < zstd.size(); ++i) {
    std::string damaged = zstd;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    CAPTURE(i);
    CHECK(refusal(folder.write("x", damaged)).code == ErrorCode::bad_data);
  }
}

TEST_CASE("a zstd window above the budget is refused, and read when the budget allows it") {
  const TempFolder folder;
  const std::string path = folder.write("x.zst", zstd_frame("x\n", 28));
  const Refusal found = refusal(path);
  CHECK(found.code == ErrorCode::limit);
  CHECK(found.message.find("--memory") != std::string::npos);
  ByteStream stream(path, "x.zst", std::int64_t{1} << 28);
  CHECK(read_all(stream, 100) == "x\n");
}

TEST_CASE("standard input is read through a pipe, compressed or not, and a peek leaves it whole") {
  const std::string text = long_text(60'000);
  for (const std::string& stored : {text, gzip_member(text), zstd_frame(text)}) {
    const StandardInput input(stored);
    CHECK(peek_plain("-", 5) == stored.substr(0, 5));
    CHECK(peek_plain("-", 100'000) == stored.substr(0, 100'000));
    CHECK(peek_plain("-", 8) == stored.substr(0, 8));
    ByteStream stream("-");
    CHECK(read_all(stream, 1 << 16) == text);
    CHECK(stream.stored_hash() == hash_hex(stored));
  }
  const StandardInput input(gzip_member(text).substr(0, 1000));
  try {
    read_all("-");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.path() == "standard input");
    CHECK(error.position() == "byte 1,000");
  }
}

TEST_CASE("a peek gives the plain bytes as far as they can be had") {
  const TempFolder folder;
  const std::string text = long_text(20'000);
  for (const std::string& stored : {text, gzip_member(text), zstd_frame(text)}) {
    const std::string path = folder.write("x", stored);
    CHECK(peek_plain(path, 5'000) == text.substr(0, 5'000));
    CHECK(peek_plain(path, 1'000'000) == text);
  }
  CHECK(peek_plain(folder.write("x", gzip_member(text).substr(0, 12)), 10).empty());
  CHECK(peek_plain(folder.write("x.gz", ""), 10).empty());
  CHECK_THROWS_AS(peek_plain(folder.path("absent"), 10), Error);
}

TEST_CASE("what is not a readable file is an I/O error") {
  const TempFolder folder;
  CHECK(refusal(folder.path()).code == ErrorCode::io);
  CHECK(refusal(folder.path("absent")).code == ErrorCode::io);
}

namespace {

struct Outcome {
  std::string text;
  Refusal refusal;
  std::int64_t stored_bytes = 0;
  std::string hash;
};

/// With a pool, parts are decoded ahead of the reader.
Outcome outcome(const std::string& path, ThreadPool* pool, std::size_t step) {
  Outcome result;
  try {
    ByteStream stream(path, "x", kDefaultWindowBytes, pool == nullptr ? DecodeAhead{} : DecodeAhead{pool, {}, 5});
    std::string piece(step, '\0');
    for (std::size_t n = step; n == step;) {
      n = stream.read(std::as_writable_bytes(std::span(piece)));
      result.text.append(piece, 0, n);
    }
    stream.skip_rest();
    result.stored_bytes = stream.stored_bytes();
    result.hash = stream.stored_hash();
  } catch (const Error& error) {
    result.refusal = {error.code(), error.message(), error.path(), error.position()};
  }
  return result;
}

/// Frames of all sizes, some with nothing to decode, one too long to be decoded ahead, one that becomes very long.
std::string many_frames(const std::string& text) {
  std::string all;
  std::size_t at = 0;
  for (std::size_t bytes = 1; at < text.size(); bytes = bytes * 3 + 1) {
    all += zstd_frame(text.substr(at, bytes));
    at += bytes;
    if (bytes % 2 == 0) all += zstd_skippable_frame("not data") + zstd_frame("");
  }
  return all;
}

}  // namespace

TEST_CASE("parts that are decoded ahead give the bytes of one after the other") {
  const TempFolder folder;
  ThreadPool pool(3);
  const std::string text = long_text(400'000), zeros(40 << 20, '0');
  const std::vector<std::string> files{
      many_frames(text),
      bgzf(text),
      zstd_frame(text) + zstd_frame(text),                 // one unit each
      zstd_frame(zeros) + zstd_frame("after them"),        // more plain bytes than are made ahead
      zstd_frame(long_text(1'500'000)) + zstd_frame("x"),  // more stored bytes than are looked through for an end
      gzip_member(text) + gzip_member("x"),                // no ends to be found
      bgzf(text) + gzip_member("an ordinary one") + bgzf(text),
      zstd_frame(""),
  };
  for (const std::string& stored : files) {
    const std::string path = folder.write("x", stored);
    const Outcome alone = outcome(path, nullptr, 1 << 16), ahead = outcome(path, &pool, 100'003);
    CHECK(alone.refusal.message == "no error");
    CHECK(ahead.refusal.message == "no error");
    CHECK(ahead.text == alone.text);
    CHECK(ahead.stored_bytes == static_cast<std::int64_t>(stored.size()));
    CHECK(ahead.hash == hash_hex(stored));
  }
}

TEST_CASE("damage is found ahead as it is without") {
  const TempFolder folder;
  ThreadPool pool(3);
  const std::string text = long_text(60'000), frames = many_frames(text), blocks = bgzf(text);
  std::uint64_t state = 5;
  for (int i = 0; i < 200; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const bool gzip = i % 2 == 1;
    std::string stored = gzip ? blocks : frames;
    const std::size_t at = (state >> 20) % stored.size();
    if (i % 5 == 0) {
      stored.resize(at);
    } else {
      stored[at] = static_cast<char>(stored[at] ^ (1 << (state >> 50) % 8));
    }
    const std::string path = folder.write("x", stored);
    const Outcome alone = outcome(path, nullptr, 1 << 16), ahead = outcome(path, &pool, 1 << 16);
    INFO("byte " << at << " of " << (gzip ? "BGZF" : "zstd") << ": " << alone.refusal.message << " | " << ahead.refusal.message);
    CHECK(ahead.refusal.message == alone.refusal.message);
    CHECK(ahead.refusal.code == alone.refusal.code);
    if (alone.refusal.message == "no error") CHECK(ahead.text == alone.text);
    if (!gzip && i % 5 == 0) CHECK(ahead.refusal == alone.refusal);
  }
}

TEST_CASE("a gzip member whose header lies about its length is read as any other, by however many threads") {
  const TempFolder folder;
  ThreadPool pool(3);
  const std::string text = long_text(200'000);
  const std::string whole = bgzf(text, 3'000);  // many units of some blocks each
  std::vector<std::size_t> blocks;
  for (std::size_t at = 0; at < whole.size();) {
    blocks.push_back(at);
    const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(whole[at + i])); };
    at += (byte(16) | byte(17) << 8) + 1;
  }
  REQUIRE(blocks.size() > 100);
  const auto with_length = [&](std::string stored, std::size_t block, std::size_t length) {
    stored[blocks[block] + 16] = static_cast<char>((length - 1) & 0xFF);
    stored[blocks[block] + 17] = static_cast<char>((length - 1) >> 8);
    return stored;
  };
  std::vector<std::string> files;
  for (const std::size_t block : {std::size_t{0}, std::size_t{1}, blocks.size() / 2, blocks.size() - 2, blocks.size() - 1}) {
    const std::size_t end = block + 1 < blocks.size() ? blocks[block + 1] : whole.size(), length = end - blocks[block];
    for (const std::size_t false_length : {std::size_t{18}, length - 1, length + 1, std::size_t{60'000}, std::size_t{65'536}})
      files.push_back(with_length(whole, block, false_length));
    // A false length that leads to where another block begins.
    if (block + 2 < blocks.size()) files.push_back(with_length(whole, block, blocks[block + 2] - blocks[block]));
  }
  std::string everywhere = whole;
  for (std::size_t block = 0; block < blocks.size(); ++block) everywhere = with_length(everywhere, block, 40 + block % 7);
  files.push_back(everywhere);
  for (const std::string& stored : files) {
    const std::string path = folder.write("x", stored);
    for (ThreadPool* const ahead : {static_cast<ThreadPool*>(nullptr), &pool}) {
      const Outcome read = outcome(path, ahead, 10'007);
      CHECK(read.refusal.message == "no error");
      CHECK(read.text == text);
      CHECK(read.stored_bytes == static_cast<std::int64_t>(stored.size()));
      CHECK(read.hash == hash_hex(stored));
    }
  }
  // Damage behind a false length has the verdict that it has without.
  std::string damaged = with_length(whole, 3, 18);
  damaged[blocks[blocks.size() / 2] + 40] = static_cast<char>(damaged[blocks[blocks.size() / 2] + 40] ^ 1);
  for (const std::string& stored : {damaged, damaged.substr(0, blocks[blocks.size() / 3] + 30)}) {
    const std::string path = folder.write("x", stored);
    const Outcome alone = outcome(path, nullptr, 1 << 16), ahead = outcome(path, &pool, 1 << 16);
    CHECK(alone.refusal.code == ErrorCode::bad_data);
    CHECK(ahead.refusal == alone.refusal);
    CHECK(ahead.text == alone.text);
  }
}

TEST_CASE("what is decoded ahead keeps to the memory budget") {
  ThreadPool pool(8), one(1);
  CHECK(DecodeAhead::within(pool, {}, 0).in_flight == 16);
  CHECK(DecodeAhead::within(pool, {}, std::int64_t{256} << 20).in_flight == 6);
  CHECK(DecodeAhead::within(pool, {}, std::int64_t{32} << 20).in_flight == 0);
  CHECK(DecodeAhead::within(one, {}, 0).in_flight == 1);  // one after the other
}
