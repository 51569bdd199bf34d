// open_source: the pass finds the same facts however the work is cut, requests are served whatever their order, and inputs that
// change meanwhile are noticed.
#include "io/source.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/rng.h"
#include "core/fingerprint_keys.h"
#include "io/npy.h"
#include "support/catch.h"
#include "support/open_shards.h"
#include "support/shard_files.h"
#include "support/temp_folder.h"

using namespace shardpack;

namespace {

/// Sequences of all kinds of lengths, longer ones than a piece of the pass included.
Sequences random_sequences(std::uint64_t seed, std::int64_t count, std::uint32_t ids) {
  const RandomStream stream(seed, RandomPurpose::members);
  Sequences sequences;
  std::uint64_t draw = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t length = i == count / 2 ? 700'000 : stream.bounded(draw++, i % 7 == 0 ? 3 : 3000);
    std::vector<std::uint32_t> sequence(length);
    for (std::uint32_t& id : sequence) id = static_cast<std::uint32_t>(stream.bounded(draw++, ids));
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

std::string contents(const std::string& path) { return read_small_file(path); }

Fingerprint fingerprint_of(const Sequences& sequences, SequenceId first = 0) {
  const FingerprintKeys keys(FingerprintKeys::kMaxTablePositions);
  Fingerprint sum;
  for (const auto& sequence : sequences) sum += keys.of(first++, 0, std::span<const std::uint32_t>(sequence));
  return sum;
}

template <class Run>
ErrorCode code_of(Run run) {
  try {
    run();
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("nothing was thrown");
  return ErrorCode::internal;
}

}  // namespace

TEST_CASE("the pass finds the same facts for any stored type and number of threads") {
  const TempFolder folder;
  const Sequences sequences = random_sequences(1, 400, 30'000);
  const std::vector<std::string> paths{
      write_npy<std::uint16_t>(folder, "a", "<u2", sequences), write_npy<std::int16_t>(folder, "b", "<i2", sequences),
      write_npy<std::uint32_t>(folder, "c", "<u4", sequences), write_npy<std::int32_t>(folder, "d", "<i4", sequences),
      write_npy<std::int64_t>(folder, "e", "<i8", sequences)};
  std::uint32_t greatest = 0;
  for (const auto& sequence : sequences) {
    for (const std::uint32_t id : sequence) greatest = std::max(greatest, id);
  }
  for (const int threads : {1, 2, 8}) {
    ShardOpener opener(threads);
    for (const std::string& path : paths) {
      const ScannedSource scanned = opener.open({path});
      CHECK(scanned.totals.fingerprint == fingerprint_of(sequences));
      CHECK(scanned.totals.id_min == 0);
      CHECK(scanned.totals.id_max == greatest);
      const SourceFile& file = scanned.source->index().files()[0];
      const std::string lengths = path.substr(0, path.size() - 4) + ".lengths.npy";
      CHECK(file.hash == hash_hex(contents(path) + contents(lengths)));
      CHECK(file.bytes == static_cast<std::int64_t>(contents(path).size() + contents(lengths).size()));
      if (threads == 2) CHECK(ShardOpener::sequences_of(*scanned.source) == sequences);
    }
  }
}

TEST_CASE("a negative id deep in a file is named") {
  const TempFolder folder;
  ShardOpener opener;
  std::vector<std::int32_t> ids(1'000'000, 5);
  ids[777'777] = -7;
  const std::string path = folder.write("a.npy", make_npy_header("<i4", {1000, 1000}) + bytes_of(ids));
  const ShardOpener::Failure failure = opener.failure({path});
  CHECK(failure.code == ErrorCode::bad_data);
  CHECK(failure.what.find("a.npy: token 777,777: id -7") != std::string::npos);
}

TEST_CASE("several files are one source, their records numbered through") {
  const TempFolder folder;
  ShardOpener opener;
  const Sequences first = random_sequences(2, 9, 100), second = random_sequences(3, 5, 70'000);
  write_npy<std::uint16_t>(folder, "x/a", "<u2", first);
  write_npy<std::uint16_t>(folder, "x/b", "<u2", {});
  write_npy<std::uint32_t>(folder, "x/c", "<u4", second);
  folder.write("x/d.jsonl", "{\"input_ids\":[1,2,3]}\n{\"input_ids\":[]}\n{\"input_ids\":[4],\"label\":1}\n");
  const ScannedSource scanned = opener.open({folder.path("x")});
  const SequenceIndex& index = scanned.source->index();
  REQUIRE(index.files().size() == 4);
  CHECK(index.files()[3].name == "d.jsonl");
  CHECK(index.files()[3].hash == hash_hex(contents(folder.path("x/d.jsonl"))));
  CHECK(index.files()[3].bytes == static_cast<std::int64_t>(contents(folder.path("x/d.jsonl")).size()));

  Sequences all = first;
  all.insert(all.end(), second.begin(), second.end());
  for (const auto& sequence : Sequences{{1, 2, 3}, {}, {4}}) all.push_back(sequence);
  CHECK(ShardOpener::sequences_of(*scanned.source) == all);
  CHECK(scanned.totals.fingerprint == fingerprint_of(all));
  CHECK(scanned.not_carried == std::vector<std::string>{"label"});
}

TEST_CASE("--limit takes the first records and no more files than they need") {
  const TempFolder folder;
  ShardOpener opener;
  const Sequences first = random_sequences(4, 6, 100), second = random_sequences(5, 6, 100);
  const std::vector<std::string> paths{write_npy<std::uint16_t>(folder, "a", "<u2", first),
                                       write_npy<std::uint16_t>(folder, "b", "<u2", second),
                                       folder.write("c.jsonl", "{\"input_ids\":[1]}\n{\"input_ids\":[9]}\n")};
  Sequences all = first;
  all.insert(all.end(), second.begin(), second.end());
  all.push_back({1});
  for (const std::size_t limit : {1, 5, 6, 7, 12, 13}) {
    ReadOptions options;
    options.limit = static_cast<std::int64_t>(limit);
    const ScannedSource scanned = opener.open(paths, options);
    const Sequences expected(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(limit));
    CHECK(ShardOpener::sequences_of(*scanned.source) == expected);
    CHECK(scanned.totals.fingerprint == fingerprint_of(expected));
    CHECK(scanned.source->index().files().size() == (limit <= 6 ? 1u : limit <= 12 ? 2u : 3u));
    CHECK(scanned.source->index().files()[0].hash == hash_hex(contents(paths[0]) + contents(folder.path("a.lengths.npy"))));
  }
}

TEST_CASE("the pass notes which sequences begin with BOS and end with EOS") {
  const TempFolder folder;
  Sequences sequences = random_sequences(6, 300, 4);  // ids 0 to 3: many begin and end with either
  folder.write("z.jsonl", "{\"input_ids\":[1,2]}\n{\"input_ids\":[]}\n{\"input_ids\":[2,1]}\n{\"input_ids\":[1]}\n");
  ReadOptions options;
  options.bos_id = 1;
  options.eos_id = 2;
  const std::vector<std::string> paths{write_npy<std::uint16_t>(folder, "a", "<u2", sequences),
                                       write_npy<std::uint8_t>(folder, "b", "|u1", sequences), folder.path("z.jsonl")};
  Sequences all = sequences;
  all.insert(all.end(), sequences.begin(), sequences.end());
  for (const auto& sequence : Sequences{{1, 2}, {}, {2, 1}, {1}}) all.push_back(sequence);
  for (const int threads : {1, 3}) {
    for (const bool random_access : {true, false}) {
      ShardOpener opener(threads);
      const ScannedSource scanned = opener.open(paths, options, {.random_access = random_access, .ends = true});
      for (std::size_t i = 0; i < all.size(); ++i) {
        const bool bos = !all[i].empty() && all[i].front() == 1, eos = !all[i].empty() && all[i].back() == 2;
        const int expected = (bos ? SequenceIndex::kBeginsWithBos : 0) | (eos ? SequenceIndex::kEndsWithEos : 0);
        if (scanned.source->index().ends(static_cast<SequenceId>(i)) != expected) FAIL("sequence " << i);
      }
    }
  }
}

TEST_CASE("requests are served whatever their order, in 16 or 32 bits") {
  const TempFolder folder;
  ShardOpener opener;
  const Sequences sequences = random_sequences(7, 50, 60'000);
  const ScannedSource scanned = opener.open(
      {write_npy<std::uint16_t>(folder, "a", "<u2", sequences), write_npy<std::int32_t>(folder, "b", "<i4", sequences)});
  // Every sequence in two pieces, the pieces of a sequence far apart in the buffer and out of order, then some in one stretch.
  std::vector<TokenRequest> requests;
  std::vector<std::uint32_t> expected;
  for (const int part : {1, 0}) {
    for (std::size_t i = 2 * sequences.size(); i-- > 0;) {
      const std::vector<std::uint32_t>& sequence = sequences[i % sequences.size()];
      const auto half = static_cast<std::int64_t>(sequence.size()) / 2;
      const std::int64_t first = part == 0 ? 0 : half;
      const std::int64_t tokens = part == 0 ? half : static_cast<std::int64_t>(sequence.size()) - half;
      requests.push_back({.sequence = static_cast<SequenceId>(i),
                          .first_token = first,
                          .tokens = tokens,
                          .destination = static_cast<std::int64_t>(expected.size())});
      expected.insert(expected.end(), sequence.begin() + first, sequence.begin() + first + tokens);
    }
  }
  for (SequenceId id = 10; id < 90; ++id) {
    const std::vector<std::uint32_t>& sequence = sequences[static_cast<std::size_t>(id) % sequences.size()];
    requests.push_back({.sequence = id,
                        .first_token = 0,
                        .tokens = static_cast<std::int64_t>(sequence.size()),
                        .destination = static_cast<std::int64_t>(expected.size())});
    expected.insert(expected.end(), sequence.begin(), sequence.end());
  }
  std::vector<std::uint32_t> wide(expected.size());
  std::vector<TokenRequest> copy = requests;
  scanned.source->read_block(copy, IdType::u32, wide.data());
  CHECK(wide == expected);
  std::vector<std::uint16_t> narrow(expected.size());
  scanned.source->read_block(requests, IdType::u16, narrow.data());
  CHECK(std::equal(narrow.begin(), narrow.end(), expected.begin(), expected.end()));

  std::vector<TokenRequest> beyond{{.sequence = 0, .first_token = 1, .tokens = 1'000'000, .destination = 0}};
  CHECK(code_of([&] { scanned.source->read_block(beyond, IdType::u16, narrow.data()); }) == ErrorCode::internal);
}

TEST_CASE("an id that does not fit 16 bits is bad data") {
  const TempFolder folder;
  ShardOpener opener;
  const ScannedSource scanned = opener.open({write_npy<std::uint32_t>(folder, "a", "<u4", {{1, 2}, {3, 70'000}})});
  std::vector<std::uint16_t> ids(2);
  std::vector<TokenRequest> requests{{.sequence = 1, .first_token = 0, .tokens = 2, .destination = 0}};
  CHECK(code_of([&] { scanned.source->read_block(requests, IdType::u16, ids.data()); }) == ErrorCode::bad_data);
}

TEST_CASE("a file that changed since it was opened is noticed") {
  const TempFolder folder;
  ShardOpener opener;
  const Sequences sequences{{1, 2, 3, 4}, {5, 6}};
  const std::string path = write_npy<std::uint32_t>(folder, "a", "<u4", sequences);
  const ScannedSource scanned = opener.open({path});
  scanned.source->check_unchanged();
  const std::string before = contents(path);

  std::vector<std::uint32_t> ids(2);
  std::vector<TokenRequest> requests{{.sequence = 1, .first_token = 0, .tokens = 2, .destination = 0}};
  folder.write("a.npy", before.substr(0, 130));
  try {
    scanned.source->read_block(requests, IdType::u32, ids.data());
    FAIL("read past the end");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_data);
    CHECK(std::string(error.what()).find("a.npy: the file changed while it was in use: it had 152 bytes and has 130") !=
          std::string::npos);
  }
  folder.write("a.npy", before);
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  CHECK(code_of([&] { scanned.source->check_unchanged(); }) == ErrorCode::bad_data);
  std::filesystem::remove(path);
  CHECK(code_of([&] { scanned.source->check_unchanged(); }) == ErrorCode::io);

  const ScannedSource again = opener.open({write_npy<std::uint32_t>(folder, "b", "<u4", sequences)});
  folder.write("b.lengths.npy", "");
  CHECK(code_of([&] { again.source->check_unchanged(); }) == ErrorCode::bad_data);  // a sidecar counts as well
}

TEST_CASE("more shards than the usual limit of open files are read") {
  const TempFolder folder;
  ShardOpener opener;
  constexpr int kShards = 120;
  for (int i = 0; i < kShards; ++i) folder.write("s" + std::to_string(1000 + i) + ".npy", make_npy_header("|u1", {1, 1}) + "a");
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit low = before;
  low.rlim_cur = 64;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  CHECK(opener.open({folder.path()}).source->index().sequences() == kShards);
  CHECK(::setrlimit(RLIMIT_NOFILE, &before) == 0);
}

TEST_CASE("a stop ends the pass") {
  const TempFolder folder;
  const std::string path = write_npy<std::uint16_t>(folder, "a", "<u2", random_sequences(8, 20, 100));
  ThreadPool pool(2);
  NoProgress progress;
  NoDiagnostics diagnostics;
  std::stop_source stop;
  stop.request_stop();
  const RunContext context{.pool = pool,
                           .stop = stop.get_token(),
                           .progress = progress,
                           .diagnostics = diagnostics,
                           .memory_bytes = 1,
                           .temp_dir = {}};
  CHECK(code_of([&] { open_source({path}, {}, {}, context); }) == ErrorCode::cancelled);
}

TEST_CASE("a small memory budget changes no fact") {
  const TempFolder folder;
  const Sequences sequences = random_sequences(9, 100, 50'000);
  const std::string path = write_npy<std::uint16_t>(folder, "a", "<u2", sequences);
  ThreadPool pool(4);
  NoProgress progress;
  NoDiagnostics diagnostics;
  const RunContext context{
      .pool = pool, .stop = {}, .progress = progress, .diagnostics = diagnostics, .memory_bytes = 1, .temp_dir = {}};
  CHECK(open_source({path}, {}, {}, context).totals.fingerprint == fingerprint_of(sequences));
}
