// The rest of the pass in passing: blocks of rows get the right tokens wherever the pass has come to, from any number of threads,
// and the pass finds what it finds alone.
#include "io/passing_scan.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "io/shard_source.h"
#include "support/catch.h"
#include "support/opened_files.h"
#include "support/pass_sample.h"
#include "support/refusal.h"

namespace shardpack {
namespace {

const PassSample& sample() {
  static const PassSample made;
  return made;
}
const Sequences& values() {
  static const Sequences all = sample().sequences();
  return all;
}

/// The pass over `files` after so many pieces, for a source of them.
std::unique_ptr<PassingScan> left_after(std::vector<OpenedFile> files, int pieces) {
  ScanPass pass(files, std::nullopt);
  pass.run(QuietRun(1).context(), [&] { return pieces-- <= 0; });
  REQUIRE_FALSE(pass.complete());
  return std::make_unique<PassingScan>(std::move(files), std::move(pass));
}

/// What is asked for, and what must come.
struct Block {
  std::vector<TokenRequest> requests;
  std::vector<std::uint32_t> expected;

  void ask(SequenceId sequence, std::int64_t first, std::int64_t tokens) {
    const std::vector<std::uint32_t>& from = values()[static_cast<std::size_t>(sequence)];
    requests.push_back({sequence, first, tokens, std::ssize(expected)});
    expected.insert(expected.end(), from.begin() + first, from.begin() + first + tokens);
  }
  std::int64_t tokens(SequenceId sequence) const { return std::ssize(values()[static_cast<std::size_t>(sequence)]); }
};

/// Random pieces of sequences, most of them near `middle`, a few from anywhere; some are asked for twice, some overlap.
Block random_block(std::uint64_t seed, std::int64_t middle) {
  const RandomStream stream(seed, RandomPurpose::sample, 3);
  const std::int64_t sequences = std::ssize(values());
  std::uint64_t draw = 0;
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(stream.bounded(draw++, static_cast<std::uint64_t>(bound)));
  };
  Block block;
  while (block.requests.size() < 40) {
    const bool anywhere = below(8) == 0;
    const SequenceId sequence = anywhere ? below(sequences) : std::clamp<SequenceId>(middle + below(60) - 30, 0, sequences - 1);
    const std::int64_t all = block.tokens(sequence), kind = below(4);
    if (kind == 0) {
      block.ask(sequence, 0, all);
    } else if (kind == 1) {  // in two pieces, the second one first
      const std::int64_t cut = below(all + 1);
      block.ask(sequence, cut, all - cut);
      block.ask(sequence, 0, cut);
    } else {
      const std::int64_t first = below(all + 1), tokens = below(std::min<std::int64_t>(all - first, 5000) + 1);
      block.ask(sequence, first, tokens);
      if (kind == 3) block.ask(sequence, first, tokens);                        // once more
      if (kind == 3 && tokens > 2) block.ask(sequence, first + 1, tokens - 2);  // and its inner part
    }
  }
  return block;
}

void check_facts(const ShardSource& source, const TokenFacts& totals) {
  TokenFacts expected;
  for (std::size_t f = 0; f < sample().parts.size(); ++f) {
    const TokenFacts facts = sample().facts(f);
    merge(expected, facts);
    if (sample().parts[f].read_by_pass) CHECK(source.index().files()[f].hash == facts.hash);
  }
  CHECK(totals.id_min == expected.id_min);
  CHECK(totals.id_max == expected.id_max);
  CHECK(totals.fingerprint == expected.fingerprint);
}

TEST_CASE("blocks that are read in passing hold their tokens, and the pass finds what it finds alone") {
  const int threads = GENERATE(1, 2, 4);
  const int pieces = GENERATE(0, 3, 11);
  INFO(threads << " threads, the pass left after " << pieces << " pieces");
  std::vector<OpenedFile> files = sample().open();
  ShardSource source = source_of(files);
  source.scan_in_passing(left_after(std::move(files), pieces));

  // From the first sequence to the last and beyond: the blocks lie before the pass, where it is, and behind it.
  constexpr std::int64_t kBlocks = 60;
  std::atomic<std::int64_t> next{0}, wrong{0};
  const auto read_blocks = [&] {
    for (std::int64_t b = next++; b < kBlocks; b = next++) {
      Block block = random_block(static_cast<std::uint64_t>(b), b * std::ssize(values()) / kBlocks);
      std::vector<std::uint32_t> ids(block.expected.size());
      source.read_block(block.requests, IdType::u32, ids.data());
      if (ids != block.expected) ++wrong;
    }
  };
  std::vector<std::thread> workers;
  for (int t = 1; t < threads; ++t) workers.emplace_back(read_blocks);
  read_blocks();
  for (std::thread& worker : workers) worker.join();
  CHECK(wrong == 0);
  check_facts(source, source.finish_pass(QuietRun(threads).context()));

  // Without a pass it is a source as any other.
  CHECK(ShardOpener::sequences_of(source) == values());
}

TEST_CASE("all tokens in order leave nothing of the pass but its end, and none leave all of it") {
  for (const bool read : {true, false}) {
    std::vector<OpenedFile> files = sample().open();
    ShardSource source = source_of(files);
    source.scan_in_passing(left_after(std::move(files), 2));
    if (read) CHECK(ShardOpener::sequences_of(source) == values());
    check_facts(source, source.finish_pass(QuietRun(2).context()));
  }
}

TEST_CASE("what a block wants is taken off as it is read") {
  const std::vector<OpenedFile> files = open_files({sample().parts[0].path}, sample().options);
  const std::vector<std::uint32_t> tokens = flat<std::uint32_t>(sample().parts[0].sequences);
  const std::unique_ptr<PassingScan> pass = left_after(files, 1);  // 512 Ki tokens, or the header's fewer
  constexpr std::int64_t kPiece = 1 << 19;
  std::vector<std::uint32_t> ids(1'000'000, 0);
  std::vector<FileRanges> wanted{{0, {{kPiece - 1000, 2000, 10}, {kPiece, 100, 5000}, {kPiece + 300'000, 50, 9000}}}};
  pass->read_on(wanted, ids.data());
  // 2,150 tokens are fewer than were read before: nothing is read on.
  REQUIRE(wanted.size() == 1);
  REQUIRE(wanted[0].ranges.size() == 3);
  CHECK(wanted[0].ranges[0].count == 2000);

  // As many as make the pass read the second piece.
  std::vector<FileRanges> more{{0, {{kPiece - 1000, 2000, 10}, {kPiece, 100, 5000}, {2 * kPiece - 100'000, 200'000, 6000}}}};
  more[0].ranges.push_back({0, kPiece, 400'000});
  std::swap(more[0].ranges.front(), more[0].ranges.back());  // requests are sorted as a rule, and not where they overlap
  std::sort(more[0].ranges.begin(), more[0].ranges.end(),
            [](const TableRange& a, const TableRange& b) { return a.first < b.first; });
  pass->read_on(more, ids.data());
  std::int64_t left = 0;
  for (const TableRange& range : more[0].ranges) left += range.count;
  CHECK(left < kPiece + 1100 + 100'100);
  CHECK(std::equal(ids.begin() + 5000, ids.begin() + 5100, tokens.begin() + kPiece));
  CHECK(std::equal(ids.begin() + 1100, ids.begin() + 2010, tokens.begin() + kPiece + 90));  // of the first range's second half
  for (const TableRange& range : more[0].ranges) {
    files[0].shard.ids.read(
        range.first, std::span(ids).subspan(static_cast<std::size_t>(range.destination), static_cast<std::size_t>(range.count)));
  }
  CHECK(std::equal(ids.begin() + 10, ids.begin() + 2010, tokens.begin() + kPiece - 1000));
  CHECK(std::equal(ids.begin() + 6000, ids.begin() + 206'000, tokens.begin() + 2 * kPiece - 100'000));
  CHECK(std::equal(ids.begin() + 400'000, ids.begin() + 400'000 + kPiece, tokens.begin()));
}

/// Two files of ids that are stored as `Id`, in sequences of 1,000.
template <class Id>
std::vector<std::string> write_two(const TempFolder& folder, const std::string& descr, std::vector<Id> first,
                                   std::vector<Id> second) {
  std::vector<std::string> paths;
  for (const auto& [name, ids] : {std::pair("a.npy", first), std::pair("b.npy", second)})
    paths.push_back(folder.write(name, make_npy_header(descr, {std::ssize(ids) / 1000, 1000}) + bytes_of(ids)));
  return paths;
}

TEST_CASE("the first fault of the input is the one that is told, whichever block and thread meets one first") {
  const TempFolder folder;
  std::vector<std::string> paths;
  SECTION("negative ids") {
    std::vector<std::int32_t> first(700'000, 5), second(700'000, 6);
    first[650'123] = -7;
    first[650'124] = -70;
    second[10] = -8;
    second[699'999] = -9;
    paths = write_two(folder, "<i4", first, second);
  }
  SECTION("ids above 32 bits") {
    std::vector<std::int64_t> first(300'000, 5), second(300'000, 6);
    first[290'000] = std::int64_t{1} << 32;
    second[299'999] = -1;
    paths = write_two(folder, "<i8", first, second);
  }
  const std::string expected = refusal([&] { ShardOpener().open(paths); }, ErrorCode::bad_data);
  REQUIRE(expected.find("a.npy: token ") != std::string::npos);

  const auto last_of = [&](const ShardSource& source) { return source.index().sequences() - 1; };
  const auto read = [](const ShardSource& source, SequenceId sequence) {
    std::vector<std::uint32_t> ids(1000);
    std::vector<TokenRequest> requests{{sequence, 0, 1000, 0}};
    source.read_block(requests, IdType::u32, ids.data());
    return ids;
  };
  for (const int pieces : {0, 1, 2}) {
    INFO("left after " << pieces << " pieces");
    std::vector<OpenedFile> files = open_files(paths);
    const auto fresh = [&] {
      auto source = std::make_unique<ShardSource>(source_of(files));
      source->scan_in_passing(left_after(files, pieces));
      return source;
    };
    {  // what lies before the pass is asked for first, and has a fault of its own
      const auto source = fresh();
      CHECK(read(*source, 0) == std::vector<std::uint32_t>(1000, 5));
      CHECK(refusal([&] { read(*source, last_of(*source)); }, ErrorCode::bad_data) == expected);
      CHECK(refusal([&] { read(*source, 0); }, ErrorCode::bad_data) == expected);  // from then on
      CHECK(refusal([&] { read(*source, last_of(*source)); }, ErrorCode::bad_data) == expected);
      CHECK(refusal([&] { source->finish_pass(QuietRun(2).context()); }, ErrorCode::bad_data) == expected);
    }
    {  // nobody reads a faulty token: the end of the pass does
      const auto source = fresh();
      read(*source, 0);
      CHECK(refusal([&] { source->finish_pass(QuietRun(2).context()); }, ErrorCode::bad_data) == expected);
      CHECK(refusal([&] { source->finish_pass(QuietRun(2).context()); }, ErrorCode::bad_data) == expected);
    }
    {  // several threads, some from the front and some from the back
      const auto source = fresh();
      std::atomic<int> others{0}, failures{0};
      const auto read_all = [&](bool forwards) {
        for (SequenceId i = 0; i <= last_of(*source); ++i) {
          try {
            read(*source, forwards ? i : last_of(*source) - i);
          } catch (const Error& error) {
            ++failures;
            if (error.what() != expected || error.code() != ErrorCode::bad_data) ++others;
          }
        }
      };
      std::vector<std::thread> workers;
      for (int t = 0; t < 4; ++t) workers.emplace_back(read_all, t % 2 == 0);
      for (std::thread& worker : workers) worker.join();
      CHECK(failures > 0);
      CHECK(others == 0);
    }
  }
}

TEST_CASE("a file that changes while it is read in passing is named for that, from then on") {
  const TempFolder folder;
  const std::vector<std::string> paths =
      write_two(folder, "<u4", std::vector<std::uint32_t>(700'000, 5), std::vector<std::uint32_t>(700'000, 6));
  std::vector<OpenedFile> files = open_files(paths);
  ShardSource source = source_of(files);
  source.scan_in_passing(left_after(std::move(files), 1));
  std::filesystem::resize_file(paths[1], 1'000'000);
  std::vector<std::uint32_t> ids(1000);
  std::vector<TokenRequest> requests{{1399, 0, 1000, 0}};
  const auto read = [&] { source.read_block(requests, IdType::u32, ids.data()); };
  const std::string expected = "b.npy: the file changed while it was in use: it had 2,800,128 bytes and has 1,000,000";
  CHECK(refusal(read, ErrorCode::bad_data).find(expected) != std::string::npos);
  CHECK(refusal(read, ErrorCode::bad_data).find(expected) != std::string::npos);
  CHECK(refusal([&] { source.finish_pass(QuietRun(1).context()); }, ErrorCode::bad_data).find(expected) != std::string::npos);
}

}  // namespace
}  // namespace shardpack
