// The parts of verify that are worth a look of their own: the second fingerprint, placements, and the list of issues.
#include <random>

#include "core/fingerprint_keys.h"
#include "jobs/verify_fingerprint.h"
#include "jobs/verify_issues.h"
#include "jobs/verify_placement.h"
#include "support/catch.h"

namespace shardpack {
namespace {

template <class Id>
void compare_fingerprints(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const FingerprintKeys scan(1000);
  const FingerprintRecount again(100, "input_ids");
  for (int i = 0; i < 50; ++i) {
    std::vector<Id> ids(random() % 300);
    for (Id& id : ids) id = static_cast<Id>(random());
    const auto record = static_cast<SequenceId>(random() >> (1 + random() % 60));
    const auto first = static_cast<std::int64_t>(random() % 1200);
    const std::span<const Id> span(ids);
    CHECK(again.of(record, first, span) == scan.of(record, first, span));
    const std::size_t cut = ids.size() / 3;
    CHECK(again.of(record, first, span.first(cut)) +
              again.of(record, first + static_cast<std::int64_t>(cut), span.subspan(cut)) ==
          scan.of(record, first, span));
  }
}

TEST_CASE("the fingerprint summed again equals the one of the scan, in the tables and beyond") {
  compare_fingerprints<std::uint16_t>(1);
  compare_fingerprints<std::uint32_t>(2);
}

struct PlacementCase {
  std::vector<Issue> finish(const SequenceIndex* index = nullptr) {
    IssueList issues;
    placement.finish(sources, index, kRowTokens, totals, issues);
    return issues.take();
  }

  static constexpr Length kRowTokens = 8;
  std::vector<ManifestSource> sources{{.name = "x", .format = "", .sequences = 2, .tokens = 9, .hash = ""},
                                      {.name = "none", .format = "", .hash = ""},
                                      {.name = "y", .format = "", .sequences = 4, .tokens = 20, .hash = ""}};
  SequenceRanges all{0, 6};
  Placement placement{all};
  PlacementTotals totals;
};

TEST_CASE("records placed whole, in pieces, cut and removed add up") {
  PlacementCase is;
  is.placement.place(0, 0, 5);
  is.placement.place(3, 6, 2);  // pieces come in any order
  is.placement.place(3, 0, 3);
  is.placement.place(3, 3, 3);
  is.placement.place(3, 8, 0);  // nothing but an added EOS
  is.placement.place(2, 1, 4);
  is.placement.remove({2, 0, 1, RemovalCause::truncated});
  is.placement.remove({4, 0, 7, RemovalCause::too_short});
  is.placement.remove({5, 0, 4, RemovalCause::dropped});
  is.placement.remove({5, 4, 1, RemovalCause::tail});
  CHECK(is.finish().empty());
  CHECK(is.totals.sequences == 3);
  CHECK(is.totals.without_tokens == 1);
  CHECK(is.totals.file_tokens == std::vector<std::int64_t>{5, 0, 5 + 8 + 7 + 5});
  const auto removed = [&](RemovalCause cause) { return is.totals.removed[static_cast<std::size_t>(cause)]; };
  CHECK(removed(RemovalCause::truncated).sequences == 1);
  CHECK(removed(RemovalCause::truncated).tokens == 1);
  CHECK(removed(RemovalCause::too_short).sequences == 1);
  CHECK(removed(RemovalCause::dropped).sequences == 0);  // a record counts once, under what took its last piece
  CHECK(removed(RemovalCause::dropped).tokens == 4);
  CHECK(removed(RemovalCause::tail).sequences == 1);
}

TEST_CASE("records that nothing mentions are counted, however many are claimed, and cost nothing") {
  constexpr std::int64_t kClaimed = std::int64_t{1} << 30;  // a number for each would take 4 GiB
  const std::vector<ManifestSource> sources{{.name = "x", .format = "", .sequences = kClaimed / 2, .tokens = 3, .hash = ""},
                                            {.name = "y", .format = "", .sequences = kClaimed / 2, .tokens = 9, .hash = ""}};
  SequenceRanges dealt(5, 1'000'000);
  dealt.append({1'000'003, kClaimed});
  Placement placement(dealt);
  placement.place(5, 0, 1);
  placement.place(999'999, 0, 2);
  placement.place(kClaimed / 2, 0, 4);
  placement.remove({kClaimed / 2 + 77, 0, 3, RemovalCause::dropped});
  placement.place(kClaimed - 1, 0, 2);
  PlacementTotals totals;
  IssueList issues;
  placement.finish(sources, nullptr, 8, totals, issues);
  CHECK(issues.take().empty());
  CHECK(totals.sequences == 4);
  CHECK(totals.file_tokens == std::vector<std::int64_t>{3, 9});
  CHECK(totals.without_tokens == kClaimed - 5 - 3 - 5);
  CHECK(totals.removed[static_cast<std::size_t>(RemovalCause::dropped)].tokens == 3);
}

TEST_CASE("records that nothing mentions are faults where the sources have tokens for them") {
  constexpr std::int64_t kRecords = 3'000;  // on several pages
  SourceFile file;
  file.name = "x";
  for (std::int64_t r = 0; r <= kRecords; ++r) file.record_begin.push_back(r < 2'000 ? 0 : r < 2'900 ? 5 : 7);
  const SequenceIndex index({file});
  const std::vector<ManifestSource> sources{{.name = "x", .format = "", .sequences = kRecords, .tokens = 7, .hash = ""}};
  const SequenceRanges all(0, kRecords);
  for (const bool there : {true, false}) {
    Placement placement(all);
    if (there) placement.place(1'999, 0, 5);
    placement.place(2'899, 0, 2);
    PlacementTotals totals;
    IssueList issues;
    placement.finish(sources, &index, 8, totals, issues);
    const std::vector<Issue> found = issues.take();
    CHECK(found.size() == (there ? 0 : 1));
    if (!there) CHECK(found.front().message == "record 1,999: 0 tokens are in rows or removed.csv, the source has 5");
    CHECK(totals.without_tokens == kRecords - (there ? 2 : 1));
  }
}

TEST_CASE("tokens twice, left out or invented are faults of the record") {
  PlacementCase is;
  std::string expected;
  SECTION("the same piece twice") {
    is.placement.place(1, 0, 4);
    is.placement.place(1, 0, 4);
    expected = "record 1: token 0 is there twice";
  }
  SECTION("pieces that overlap by one token") {
    is.placement.place(1, 0, 4);
    is.placement.place(1, 3, 4);
    expected = "record 1: token 3 is there twice";
  }
  SECTION("a piece inside another") {
    is.placement.place(1, 0, 9);
    is.placement.place(1, 2, 1);
    is.placement.place(1, 9, 1);
    expected = "record 1: token 2 is there twice";
  }
  SECTION("placed and removed") {
    is.placement.place(1, 0, 4);
    is.placement.remove({1, 0, 4, RemovalCause::dropped});
    expected = "record 1: token 0 is there twice";
  }
  SECTION("a hole") {
    is.placement.place(1, 0, 4);
    is.placement.place(1, 6, 1);
    expected = "record 1: tokens 4 to 5 are neither in a row nor in removed.csv";
  }
  SECTION("the beginning left out") {
    is.placement.place(1, 2, 4);
    expected = "record 1: tokens 0 to 1 are neither in a row nor in removed.csv";
  }
  SECTION("truncated to nothing") {
    is.placement.remove({1, 0, 4, RemovalCause::truncated});
    expected = "record 1: is truncated and has no segment";
  }
  const std::vector<Issue> issues = is.finish();
  REQUIRE(issues.size() == 1);
  CHECK(issues[0].kind == "placement");
  CHECK(issues[0].file == "x");
  CHECK(issues[0].message == expected);
}

TEST_CASE("a list of issues keeps a hundred of a kind and the order found") {
  IssueList all;
  for (int block = 0; block < 3; ++block) {
    IssueList some;
    for (int i = 0; i < 150; ++i) some.add("row", "shard", std::to_string(block * 1000 + i), i);
    some.add("ids", "shard", "one");
    all.merge(std::move(some));
  }
  const std::vector<Issue> issues = all.take();
  REQUIRE(issues.size() == 100 + 3 + 1);
  CHECK(issues[0].message == "0");
  CHECK(issues[99].message == "99");
  CHECK(issues[100].kind == "ids");
  CHECK(issues.back().message == "and 350 more of this kind");
  CHECK(all.empty());
}

}  // namespace
}  // namespace shardpack
