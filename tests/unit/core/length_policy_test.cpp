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

TEST_CASE("policies that contradict themselves are usage errors") {
  LengthPolicy policy = row(2, Overlong::split);
  policy.append_eos = policy.prepend_bos = true;
  CHECK_THROWS_AS(outcome(1, policy), Error);
  policy = row(10, Overlong::error);
  policy.segment_multiple = 4;
  CHECK_THROWS_AS(outcome(1, policy), Error);
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
