// ScanPass: however often it is left and taken up again, by whom and in what steps, it finds what one run finds, and shows every
// token once.
#include "io/scan_pass.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/rng.h"
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

/// The facts of `found` are those of the values in memory.
void check_facts(const ScanPassResult& found) {
  static const std::vector<TokenFacts> all = [] {
    std::vector<TokenFacts> facts;
    for (std::size_t f = 0; f < sample().parts.size(); ++f) facts.push_back(sample().facts(f));
    return facts;
  }();
  REQUIRE(found.facts.size() == all.size());
  for (std::size_t f = 0; f < found.facts.size(); ++f) {
    INFO(sample().parts[f].path);
    const TokenFacts& expected = all[f];
    CHECK(found.facts[f].id_max == expected.id_max);
    if (expected.id_max >= 0) CHECK(found.facts[f].id_min == expected.id_min);
    CHECK(found.facts[f].fingerprint == expected.fingerprint);
    CHECK(found.facts[f].hash == expected.hash);
  }
}

/// By file: all its tokens in a row.
std::vector<std::vector<std::uint32_t>> tokens_by_file() {
  std::vector<std::vector<std::uint32_t>> tokens;
  for (const PassSample::Part& part : sample().parts) tokens.push_back(flat<std::uint32_t>(part.sequences));
  return tokens;
}

/// What a read_on() shows: tokens that follow one another, with the values in memory.
class Watcher {
 public:
  explicit Watcher(const std::vector<OpenedFile>& files, bool sees_all) : files_(files), sees_all_(sees_all) {
    for (const std::vector<std::uint32_t>& file : expected_) {
      before_.push_back(tokens_);
      tokens_ += std::ssize(file);
    }
  }

  void take(const ScanPass::Tokens& seen) {
    const TokenTable& table = files_[seen.file_number].shard.ids;
    const auto width = static_cast<std::size_t>(info(table.type).bytes);
    const std::vector<std::uint32_t>& values = expected_[seen.file_number];
    if (first_ < 0) {
      first_ = before_[seen.file_number] + seen.first;
      end_ = first_;
    }
    skip_unseen();
    REQUIRE(before_[seen.file_number] + seen.first == end_);
    REQUIRE(seen.stored.size() % width == 0);
    const std::size_t count = seen.stored.size() / width;
    REQUIRE(count > 0);
    REQUIRE(static_cast<std::size_t>(seen.first) + count <= values.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t value = 0;
      for (std::size_t b = 0; b < width; ++b) {
        const std::size_t at = i * width + (table.big_endian ? b : width - 1 - b);
        value = value << 8 | static_cast<std::uint64_t>(seen.stored[at]);
      }
      wrong += value == values[static_cast<std::size_t>(seen.first) + i] ? 0 : 1;
    }
    CHECK(wrong == 0);
    end_ += static_cast<std::int64_t>(count);
  }

  std::int64_t first() const { return first_; }
  /// Of all files' tokens: all before it were shown, or are of files that the pass does not read.
  std::int64_t end() {
    if (first_ < 0) return 0;
    skip_unseen();
    return end_;
  }
  std::int64_t tokens() const { return tokens_; }

 private:
  void skip_unseen() {
    for (std::size_t f = 0; f < expected_.size() && !sees_all_; ++f) {
      if (end_ == before_[f] && !sample().parts[f].read_by_pass) end_ += std::ssize(expected_[f]);
    }
  }

  const std::vector<OpenedFile>& files_;
  const bool sees_all_;
  const std::vector<std::vector<std::uint32_t>> expected_ = tokens_by_file();
  std::vector<std::int64_t> before_;  // by file: tokens of those before
  std::int64_t tokens_ = 0, first_ = -1, end_ = -1;
};

/// run() until `enough` was asked so many times.
void run_some(ScanPass& pass, int pieces, int threads) {
  pass.run(QuietRun(threads).context(), [&] { return pieces-- <= 0; });
}

/// To the end, in steps of up to `step` tokens.
void read_all(ScanPass& pass, Watcher& watcher, std::int64_t step) {
  const RandomStream stream(77, RandomPurpose::sample);
  std::int64_t end = 0;
  for (std::uint64_t draw = 0; !pass.complete(); ++draw) {
    end += 1 + static_cast<std::int64_t>(stream.bounded(draw, static_cast<std::uint64_t>(step)));
    pass.read_on(end, [&](const ScanPass::Tokens& tokens) { watcher.take(tokens); });
    if (watcher.first() >= 0 && !pass.complete()) REQUIRE(watcher.end() >= end);
    REQUIRE(draw < 10'000'000);
  }
}

TEST_CASE("the sample's values are what its files hold") {
  const std::vector<OpenedFile> files = sample().open();
  for (std::size_t f = 0; f < files.size(); ++f) {
    INFO(sample().parts[f].path);
    CHECK(files[f].shard.facts.has_value() == !sample().parts[f].read_by_pass);
    CHECK(files[f].records() == std::ssize(sample().parts[f].sequences));
  }
}

TEST_CASE("a pass that is left and read on finds what one run finds, and shows every token once") {
  const std::vector<OpenedFile> files = sample().open();
  {
    ScanPass pass(files, std::nullopt);
    run_some(pass, 1 << 30, 2);
    REQUIRE(pass.complete());
    check_facts(pass.take_result());
  }
  const int threads = GENERATE(1, 2, 3);
  for (const int pieces : {0, 1, 2, 3, 5, 8, 13, 20}) {
    INFO(threads << " threads, left after " << pieces << " pieces");
    ScanPass pass(files, std::nullopt);
    run_some(pass, pieces, threads);
    CHECK_FALSE(pass.complete());
    Watcher watcher(files, false);
    read_all(pass, watcher, pieces % 2 == 0 ? 400'000 : 3'000'000);
    if (pieces == 0) CHECK(watcher.first() == 0);
    if (pieces > 0) CHECK(watcher.first() > 0);
    CHECK(watcher.end() == watcher.tokens());
    pass.read_on(watcher.tokens(), [](const ScanPass::Tokens&) { FAIL("there is nothing left to show"); });
    check_facts(pass.take_result());
  }
}

TEST_CASE("a pass is left and taken up by one and the other") {
  const std::vector<OpenedFile> files = sample().open();
  ScanPass pass(files, std::nullopt);
  run_some(pass, 1, 3);
  std::int64_t end = 0;
  for (int turn = 0; !pass.complete(); ++turn) {
    const std::int64_t before = end;
    end += 100'000;
    pass.read_on(end, [&](const ScanPass::Tokens& tokens) { CHECK(tokens.stored.size() > 0); });
    run_some(pass, turn % 3, 1 + turn % 3);
    REQUIRE(end > before);
  }
  run_some(pass, 1, 1);  // there is nothing left to do
  check_facts(pass.take_result());
}

TEST_CASE("a step of the pass reads no further than the piece that holds the last token asked for") {
  const std::vector<OpenedFile> files = open_files({sample().parts.front().path}, sample().options);
  ScanPass pass(files, std::nullopt);
  std::int64_t end = 0;
  const auto take = [&](const ScanPass::Tokens& tokens) { end += std::ssize(tokens.stored) / 2; };
  pass.read_on(0, take);
  CHECK(end == 0);
  for (const std::int64_t wanted : {1, 2, 500'000, 600'000, 1'390'000}) {
    const std::int64_t before = end;
    pass.read_on(wanted, take);
    if (before >= wanted) CHECK(end == before);
    CHECK(end >= wanted);
    CHECK(end < std::max(before, wanted) + (1 << 19));  // tokens of a piece
  }
}

TEST_CASE("which sequences begin and end with BOS and EOS is found by a pass that is left, too") {
  const std::vector<OpenedFile> files = sample().open();
  const Sequences sequences = sample().sequences();
  const std::int64_t bos = sequences.front().empty() ? 3 : sequences.front().front(), eos = 2;
  std::vector<std::uint8_t> expected;
  for (const std::vector<std::uint32_t>& sequence : sequences) {
    std::uint8_t bits = 0;
    if (!sequence.empty() && sequence.front() == bos) bits |= SequenceIndex::kBeginsWithBos;
    if (!sequence.empty() && sequence.back() == eos) bits |= SequenceIndex::kEndsWithEos;
    expected.push_back(bits);
  }
  for (const int pieces : {0, 4, 1 << 30}) {
    ScanPass pass(files, EndIds{bos, eos});
    run_some(pass, pieces, 2);
    Watcher watcher(files, true);  // those of opened files are read for their ends
    read_all(pass, watcher, 700'000);
    const ScanPassResult found = pass.take_result();
    check_facts(found);
    CHECK(found.ends == expected);
  }
}

TEST_CASE("a pass without files, or without tokens, comes to its end") {
  const std::vector<OpenedFile> none;
  ScanPass empty(none, std::nullopt);
  empty.read_on(1, [](const ScanPass::Tokens&) { FAIL("no token is there"); });
  CHECK(empty.complete());
  CHECK(empty.take_result().facts.empty());

  const std::vector<OpenedFile> files = open_files({sample().parts[1].path, sample().parts[6].path}, sample().options);
  ScanPass pass(files, std::nullopt);
  pass.read_on(0, [](const ScanPass::Tokens&) { FAIL("no token is there"); });
  CHECK_FALSE(pass.complete());  // the hashes are not known
  pass.read_on(1, [](const ScanPass::Tokens&) { FAIL("no token is there"); });
  REQUIRE(pass.complete());
  CHECK(pass.take_result().facts[1].hash == hash_hex(sample().parts[6].bytes));
}

TEST_CASE("the same fault is found by a run and by whoever reads on") {
  const TempFolder folder;
  std::vector<std::int32_t> ids(900'000, 5);
  ids[777'777] = -7;
  ids[888'888] = -8;
  const std::string path = folder.write("a.npy", make_npy_header("<i4", {900, 1000}) + bytes_of(ids));
  const std::vector<OpenedFile> files = open_files({path});
  ScanPass whole(files, std::nullopt);
  const std::string expected = refusal([&] { run_some(whole, 1 << 30, 2); }, ErrorCode::bad_data);
  CHECK(expected.find("a.npy: token 777,777: id -7") != std::string::npos);
  for (const int pieces : {0, 2}) {
    ScanPass pass(files, std::nullopt);
    run_some(pass, pieces, 1);
    const auto nothing = [](const ScanPass::Tokens&) {};
    pass.read_on(500'000, nothing);
    CHECK(refusal([&] { pass.read_on(1 << 30, nothing); }, ErrorCode::bad_data) == expected);
  }
}

}  // namespace
}  // namespace shardpack
