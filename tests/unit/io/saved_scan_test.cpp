// A saved scan is read back as it was, and whatever else the file holds is refused before anything of its size is allocated.
#include "io/saved_scan.h"

#include <cstring>
#include <string>

#include "base/hash.h"
#include "io/saved_inputs.h"
#include "shardpack/error.h"
#include "support/catch.h"
#include "support/open_shards.h"
#include "support/shard_files.h"

namespace shardpack {
namespace {

struct Saved {
  Saved() {
    const Sequences first{{1, 2, 9}, {}, {7, 9}}, second{{3, 4, 5, 6}};
    inputs = {write_npy<std::uint16_t>(folder, "a", "<u2", first), write_npy<std::uint16_t>(folder, "b", "<u2", second)};
    read.eos_id = 9;
    scanned = opener.open(inputs, read, {.ends = true});
    bytes = saved_scan_bytes(scanned, {.recorded = {{"eos_id", "9"}}, .ends = true});
    path = folder.write("scan", bytes);
  }
  std::string refusal(const std::string& text) {
    try {
      read_saved_scan(folder.write("damaged", text));
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_data);
      return error.what();
    }
    FAIL("no error");
    return {};
  }
  /// With a checksum that fits, as whoever means harm would write it.
  static std::string sealed(std::string text) {
    text.resize(text.size() - 32);
    return text + hash_hex(text);
  }
  ReadOptions read;
  TempFolder folder;
  ShardOpener opener;
  std::vector<std::string> inputs;
  ScannedSource scanned;
  std::string bytes, path;
};

TEST_CASE("a saved scan is read back as it was") {
  Saved saved;
  SavedScan scan = read_saved_scan(saved.path);
  const SequenceIndex& index = saved.scanned.source->index();
  REQUIRE(scan.index.sequences() == index.sequences());
  for (SequenceId s = 0; s < index.sequences(); ++s) {
    CHECK(scan.index.place(s).tokens == index.place(s).tokens);
    CHECK(scan.index.place(s).file == index.place(s).file);
    CHECK(scan.index.ends(s) == index.ends(s));
  }
  CHECK(scan.has_ends);
  CHECK(scan.facts.totals.fingerprint == saved.scanned.totals.fingerprint);
  CHECK(scan.facts.totals.id_max == 9);
  CHECK(scan.index.files()[0].hash == index.files()[0].hash);
  CHECK(scan.index.files()[1].bytes == index.files()[1].bytes);
  CHECK(scan.options == std::vector<std::pair<std::string, std::string>>{{"eos_id", "9"}});
  CHECK(scan.hash + "" == saved.bytes.substr(saved.bytes.size() - 32));
}

TEST_CASE("a saved scan that is damaged or cut short is refused") {
  Saved saved;
  for (std::size_t at = 0; at < saved.bytes.size(); ++at) {
    std::string damaged = saved.bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    saved.refusal(damaged);
    saved.refusal(saved.bytes.substr(0, at));
  }
  CHECK(saved.refusal("length,count\n17,3\n").find("not a saved scan") != std::string::npos);
}

TEST_CASE("counts that the file cannot hold are refused before anything is allocated") {
  Saved saved;
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = saved.bytes;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    std::uint64_t header = 0;
    std::memcpy(&header, text.data() + 8, sizeof header);
    header += to.size() - from.size();
    std::memcpy(text.data() + 8, &header, sizeof header);
    return Saved::sealed(text);
  };
  CHECK(saved.refusal(with("\"sequences\": 3,", "\"sequences\": 1152921504606846976,")).find("sequences") != std::string::npos);
  saved.refusal(with("\"sequences\": 3,", "\"sequences\": -3,"));
  saved.refusal(with("\"lengths\": \"u16\"", "\"lengths\": \"i64\""));
  saved.refusal(with("\"ends\": true", "\"ends\": false"));
  saved.refusal(with("\"groups\": false", "\"groups\": true"));
  std::string longer = saved.bytes;
  const std::uint64_t header = std::uint64_t{1} << 60;
  std::memcpy(longer.data() + 8, &header, sizeof header);
  CHECK(saved.refusal(Saved::sealed(longer)).find("longer than the file") != std::string::npos);
}

TEST_CASE("only the files that are needed are opened, and must be those that were scanned") {
  Saved saved;
  ThreadPool pool(1);
  NoProgress progress;
  KeptDiagnostics diagnostics;
  const RunContext context{.pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .temp_dir = {}};
  const auto ids_of = [&](SequenceId sequence) {
    SavedInputs inputs(saved.inputs, saved.read, read_saved_scan(saved.path));
    const ScannedSource scanned = inputs.take_source();
    inputs.open({SequenceRanges(sequence, sequence + 1)}, LaterReading::tokens, context);
    std::vector<std::uint32_t> ids(static_cast<std::size_t>(scanned.source->index().place(sequence).tokens));
    std::vector<TokenRequest> request{{.sequence = sequence, .first_token = 0, .tokens = std::ssize(ids), .destination = 0}};
    scanned.source->read_block(request, IdType::u32, ids.data());
    return ids;
  };
  CHECK(ids_of(2) == std::vector<std::uint32_t>{7, 9});
  CHECK(ids_of(3) == std::vector<std::uint32_t>{3, 4, 5, 6});

  // The same bytes at another time are the same file; other bytes of the same size are not, and matter to who reads them.
  const Sequences same{{3, 4, 5, 6}}, other{{3, 4, 5, 7}};
  write_npy<std::uint16_t>(saved.folder, "b", "<u2", same);
  CHECK(ids_of(3) == std::vector<std::uint32_t>{3, 4, 5, 6});
  write_npy<std::uint16_t>(saved.folder, "b", "<u2", other);
  CHECK(ids_of(0) == std::vector<std::uint32_t>{1, 2, 9});
  CHECK_THROWS_AS(ids_of(3), Error);
  saved.inputs.pop_back();
  CHECK_THROWS_AS(ids_of(0), Error);
}

}  // namespace
}  // namespace shardpack
