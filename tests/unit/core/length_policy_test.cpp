// What each over-long policy does to a sequence, with and without added EOS and BOS.
#include <string>
#include <vector>

#include "shardpack/error.h"
#include "shardpack/item.h"
#include "support/catch.h"
#include "support/memory_source.h"

using namespace shardpack;

namespace {

/// Items and removals of one sequence as text: "first+tokens" with b/e for added BOS/EOS, removals in brackets with their cause.
std::string outcome(std::int64_t tokens, const LengthPolicy& policy, std::uint8_t ends = 0) {
  const SequenceIndex index = memory_index({tokens}, {ends});
  const PolicyResult result = apply_policy(index, 0, 1, policy);
  std::string text;
  for (const Item& item : result.items) {
    text += (text.empty() ? "" : " ") + std::to_string(item.first_token) + "+" + std::to_string(item.tokens);
    if (item.added & kAddedBos) text += "b";
    if (item.added & kAddedEos) text += "e";
  }
  for (const RemovedRange& range : result.removed) {
    text += " [" + std::to_string(range.first_token) + "+" + std::to_string(range.tokens) + " " +
            std::string(kRemovalCauses[static_cast<std::size_t>(range.cause)]) + "]";
  }
  return text;
}

LengthPolicy row(Length row_tokens, Overlong overlong) { return {.row_tokens = row_tokens, .overlong = overlong}; }

}  // namespace

TEST_CASE("a sequence that fits is one item, to the last slot") {
  CHECK(outcome(8, row(8, Overlong::error)) == "0+8");
  CHECK(outcome(1, row(8, Overlong::split)) == "0+1");
  CHECK_THROWS_AS(outcome(9, row(8, Overlong::error)), Error);
}

TEST_CASE("truncate cuts the chosen side") {
  LengthPolicy policy = row(8, Overlong::truncate);
  CHECK(outcome(11, policy) == "0+8 [8+3 truncated]");
  policy.truncate_side = TruncateSide::start;
  CHECK(outcome(11, policy) == "3+8 [0+3 truncated]");
}

TEST_CASE("truncate cuts first and adds after") {
  LengthPolicy policy = row(8, Overlong::truncate);
  policy.append_eos = true;
  CHECK(outcome(8, policy) == "0+7e [7+1 truncated]");                               // over-long by what is added
  CHECK(outcome(8, policy, SequenceIndex::kEndsWithEos) == "0+8");                   // has its EOS and fits
  CHECK(outcome(9, policy, SequenceIndex::kEndsWithEos) == "0+7e [7+2 truncated]");  // loses it, gets one
  policy.truncate_side = TruncateSide::start;
  CHECK(outcome(9, policy, SequenceIndex::kEndsWithEos) == "1+8 [0+1 truncated]");  // keeps its own
  policy.prepend_bos = true;
  CHECK(outcome(9, policy, SequenceIndex::kEndsWithEos | SequenceIndex::kBeginsWithBos) == "2+7b [0+2 truncated]");
}

TEST_CASE("split puts the BOS on the first piece and the EOS on the last") {
  LengthPolicy policy = row(4, Overlong::split);
  CHECK(outcome(11, policy) == "0+4 4+4 8+3");
  CHECK(outcome(12, policy) == "0+4 4+4 8+4");
  policy.append_eos = true;
  CHECK(outcome(11, policy) == "0+4 4+4 8+3e");
  CHECK(outcome(12, policy) == "0+4 4+4 8+3 11+1e");  // never a piece of nothing but an EOS
  CHECK(outcome(4, policy) == "0+3 3+1e");
  policy.prepend_bos = true;
  CHECK(outcome(3, policy) == "0+2b 2+1e");
  CHECK(outcome(12, policy) == "0+3b 3+4 7+4 11+1e");
}

TEST_CASE("short last pieces and short sequences go, and are counted apart") {
  LengthPolicy policy = row(4, Overlong::split);
  policy.split_min_tokens = 3;
  CHECK(outcome(10, policy) == "0+4 4+4 [8+2 short]");
  CHECK(outcome(11, policy) == "0+4 4+4 8+3");
  CHECK(outcome(2, policy) == "0+2");  // not a piece
  const PolicyResult cut = apply_policy(memory_index({10}), 0, 1, policy);
  CHECK(cut.counts[static_cast<std::size_t>(RemovalCause::too_short)].sequences == 0);  // the sequence is still there
  CHECK(cut.counts[static_cast<std::size_t>(RemovalCause::too_short)].tokens == 2);
  policy.min_tokens = 3;
  CHECK(outcome(2, policy) == " [0+2 short]");
}

TEST_CASE("a last piece too short for --split-min-tokens goes with its EOS, and takes no token along") {
  LengthPolicy policy = row(4, Overlong::split);
  policy.append_eos = true;
  policy.split_min_tokens = 3;
  CHECK(outcome(14, policy) == "0+4 4+4 8+4 [12+2 short]");
  CHECK(outcome(12, policy) == "0+4 4+4 8+4");  // only the EOS would be left: every source token stays
  CHECK(outcome(4, policy) == "0+4");
  policy.split_min_tokens = 1;
  CHECK(outcome(12, policy) == "0+4 4+4 8+3 11+1e");
  CHECK(outcome(4, policy) == "0+3 3+1e");
}

TEST_CASE("drop takes the whole sequence") { CHECK(outcome(9, row(8, Overlong::drop)) == " [0+9 dropped]"); }

TEST_CASE("empty sequences are counted and never become items") {
  const PolicyResult result = apply_policy(memory_index({5, 0, 7}), 0, 3, row(4, Overlong::split));
  CHECK(result.items.size() == 4);
  CHECK(result.sequences == 2);
  CHECK(result.counts[static_cast<std::size_t>(RemovalCause::empty)].sequences == 1);
}

TEST_CASE("slots are rounded up to the segment multiple") {
  LengthPolicy policy = row(12, Overlong::split);
  policy.segment_multiple = 4;
  const PolicyResult result = apply_policy(memory_index({5, 14}), 0, 2, policy);
  REQUIRE(result.items.size() == 3);
  CHECK(result.items[0].slots == 8);
  CHECK(result.items[1].slots == 12);
  CHECK(result.items[2].slots == 4);
}

TEST_CASE("a unit goes whole: into a row, or out") {
  LengthPolicy policy = row(16, Overlong::drop);
  policy.keep_together = 2;
  policy.segment_multiple = 4;
  policy.min_tokens = 2;
  const PolicyResult result = apply_policy(memory_index({5, 3, 9, 5, 1, 2, 4, 12}), 0, 8, policy);
  REQUIRE(result.items.size() == 4);  // 8 + 4 slots; 12 + 8 are too many; 1 is too short; 4 + 12 fill the row
  CHECK(result.items[0].sequence == 0);
  CHECK(result.items[3].sequence == 7);
  CHECK(result.sequences == 4);
  const std::vector<Item> units = units_of(result.items, 2);
  REQUIRE(units.size() == 2);
  CHECK(units[0].segments == 2);
  CHECK(units[0].tokens == 8);
  CHECK(units[0].slots == 12);
  CHECK(units[1].slots == 16);
  CHECK(histogram(units).counts() == std::vector<LengthCount>{{12, 1}, {16, 1}});
  const RemovedCount dropped = result.counts[static_cast<std::size_t>(RemovalCause::dropped)];
  const RemovedCount too_short = result.counts[static_cast<std::size_t>(RemovalCause::too_short)];
  CHECK(dropped.sequences == 2);
  CHECK(dropped.tokens == 14);
  CHECK(too_short.sequences == 2);
  CHECK(too_short.tokens == 3);
  REQUIRE(result.removed.size() == 4);  // a line each
  CHECK(result.removed[1].sequence == 3);
  CHECK(result.removed[1].tokens == 5);
}

TEST_CASE("what cannot be kept together is said before anything is packed") {
  const auto refusal = [](const std::vector<std::int64_t>& lengths, Overlong overlong) -> std::string {
    LengthPolicy policy = row(8, overlong);
    policy.keep_together = 3;
    try {
      check_overlong(memory_index(lengths), policy);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(refusal({1, 2, 3, 2, 2, 4}, Overlong::error) == "accepted");
  CHECK(refusal({1, 2, 3, 4, 5}, Overlong::error) ==
        "memory: 5 records are kept together by 3, which leaves 2 over; N of --keep-together must divide the "
        "records of each file");
  CHECK(refusal({1, 2, 3, 4, 0, 1}, Overlong::drop)
            .find("memory: record 4: an empty record among 3 that are kept together (records 3 to 5)") == 0);
  CHECK(refusal({1, 1, 1, 2, 3, 4, 9, 9, 9}, Overlong::error) ==
        "memory: record 3: 2 of 3 units of 3 sequences are longer than a row of 8 slots (this first one takes 9); they are never "
        "cut: "
        "choose --overlong drop (loses 36 tokens), or raise -L");
  CHECK(refusal({1, 1, 1, 2, 3, 4}, Overlong::drop) == "accepted");
  CHECK(refusal({1, 1, 1}, Overlong::split).find("never cut") != std::string::npos);
  CHECK(refusal({1, 1, 1}, Overlong::truncate).find("never cut") != std::string::npos);
  LengthPolicy policy = row(8, Overlong::error);
  policy.keep_together = 2;
  CHECK_THROWS_AS(apply_policy(LengthHistogram(), policy), Error);
}

TEST_CASE("policies that contradict themselves are usage errors") {
  LengthPolicy policy = row(2, Overlong::split);
  policy.append_eos = policy.prepend_bos = true;
  CHECK_THROWS_AS(outcome(1, policy), Error);
  policy = row(10, Overlong::error);
  policy.segment_multiple = 4;
  CHECK_THROWS_AS(outcome(1, policy), Error);
}

TEST_CASE("removed counts add up field by field, cause by cause") {
  RemovedCounts sum{}, part{};
  for (std::size_t cause = 0; cause < sum.size(); ++cause) {
    const auto number = static_cast<std::int64_t>(cause);
    sum[cause] = {number, 10 + number, 20 + number};
    part[cause] = {100 * number, 1000 * number, 10000 * number};
  }
  sum += part;
  for (std::size_t cause = 0; cause < sum.size(); ++cause) {
    const auto number = static_cast<std::int64_t>(cause);
    CHECK(sum[cause] == RemovedCount{101 * number, 10 + 1001 * number, 20 + 10001 * number});
  }
}

TEST_CASE("the over-long message counts them and prices each choice") {
  LengthPolicy policy = row(4, Overlong::error);
  try {
    check_overlong(memory_index({3, 9, 4, 6}), policy);
    FAIL("no error");
  } catch (const Error& error) {
    const std::string text = error.what();
    CHECK(error.code() == ErrorCode::bad_data);
    CHECK(text.find("memory: record 1: 2 of 4 sequences") == 0);
    CHECK(text.find("truncate (cuts 7 tokens)") != std::string::npos);
    CHECK(text.find("split (makes 5 pieces of them)") != std::string::npos);
    CHECK(text.find("drop (loses 15 tokens)") != std::string::npos);
  }
}

TEST_CASE("what over-long sequences cost, by policy") {
  LengthPolicy policy = row(4, Overlong::drop);
  OverlongCost cost = overlong_cost(memory_index({3, 9, 4, 6, 0}), policy);
  CHECK(cost.sequences == 2);
  CHECK(cost.tokens == 15);
  CHECK(cost.longest == 9);
  CHECK(cost.truncated_tokens == 7);
  CHECK(cost.pieces == 5);
  policy.overlong = Overlong::split;
  policy.split_min_tokens = 2;
  CHECK(overlong_cost(memory_index({3, 9, 4, 6}), policy).pieces == 4);  // without the last token of the 9
  policy.append_eos = true;
  cost = overlong_cost(memory_index({3, 9, 4, 6}, {0, 0, 0, SequenceIndex::kEndsWithEos}), policy);
  CHECK(cost.sequences == 3);  // a row of 4 holds 3 tokens and an EOS
  CHECK(cost.tokens == 19);
}
