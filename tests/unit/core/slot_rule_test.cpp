// Where a segment of n tokens takes n - 1 slots: a row holds one token more of each, and one token alone is none.
#include <numeric>

#include "shardpack/error.h"
#include "shardpack/item.h"
#include "support/catch.h"

namespace shardpack {
namespace {

constexpr Length kRow = 10;

SequenceIndex index_of(const std::vector<std::int64_t>& lengths) {
  SourceFile file;
  file.name = "a.jsonl";
  file.record_begin.push_back(0);
  for (const std::int64_t length : lengths) file.record_begin.push_back(file.record_begin.back() + length);
  return SequenceIndex({file});
}

LengthPolicy policy_of(Overlong overlong) {
  LengthPolicy policy;
  policy.row_tokens = kRow;
  policy.overlong = overlong;
  policy.slot_rule = SlotRule::targets;
  return policy;
}

struct Piece {
  SequenceId sequence;
  std::int64_t first, tokens, slots;
  friend bool operator==(const Piece&, const Piece&) = default;
};
std::vector<Piece> pieces(const PolicyResult& result) {
  std::vector<Piece> all;
  for (const Item& item : result.items) all.push_back({item.sequence, item.first_token, item.tokens, item.slots});
  return all;
}

TEST_CASE("a sequence of a row and a token fits, and one of a single token has nothing to learn") {
  const SequenceIndex index = index_of({1, 2, kRow, kRow + 1, 0});
  const LengthPolicy policy = policy_of(Overlong::error);
  CHECK_NOTHROW(check_overlong(index, policy));
  const PolicyResult result = apply_policy(index, 0, index.sequences(), policy);
  CHECK(pieces(result) == std::vector<Piece>{{1, 0, 2, 1}, {2, 0, kRow, kRow - 1}, {3, 0, kRow + 1, kRow}});
  CHECK(result.counts[static_cast<std::size_t>(RemovalCause::too_short)].sequences == 1);
  CHECK(result.counts[static_cast<std::size_t>(RemovalCause::empty)].sequences == 1);
  CHECK_THROWS_AS(check_overlong(index_of({kRow + 2}), policy), Error);
}

TEST_CASE("over-long sequences are cut where a row is full, and every token is placed or removed") {
  const std::vector<std::int64_t> lengths{kRow + 2, 3 * (kRow + 1) + 1, 3 * (kRow + 1)};
  const SequenceIndex index = index_of(lengths);
  const PolicyResult split = apply_policy(index, 0, 3, policy_of(Overlong::split));
  CHECK(pieces(split) ==
        std::vector<Piece>{
            {0, 0, 11, 10}, {1, 0, 11, 10}, {1, 11, 11, 10}, {1, 22, 11, 10}, {2, 0, 11, 10}, {2, 11, 11, 10}, {2, 22, 11, 10}});
  CHECK(split.counts[static_cast<std::size_t>(RemovalCause::too_short)].tokens == 2);  // the lone last tokens
  const PolicyResult cut = apply_policy(index, 0, 3, policy_of(Overlong::truncate));
  CHECK(pieces(cut) == std::vector<Piece>{{0, 0, 11, 10}, {1, 0, 11, 10}, {2, 0, 11, 10}});
  for (const Overlong overlong : {Overlong::split, Overlong::truncate, Overlong::drop}) {
    const PolicyResult result = apply_policy(index, 0, 3, policy_of(overlong));
    std::int64_t tokens = 0;
    for (const Item& item : result.items) tokens += item.tokens;
    for (const RemovedRange& range : result.removed) tokens += range.tokens;
    CHECK(tokens == std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}));
  }
}

TEST_CASE("the same on lengths alone, and with an added EOS") {
  LengthHistogram lengths;
  lengths.add(1, 3);
  lengths.add(5, 2);
  LengthPolicy policy = policy_of(Overlong::error);
  CHECK(apply_policy(lengths, policy).items.count(4) == 2);
  CHECK(apply_policy(lengths, policy).items.sequences() == 2);
  policy.append_eos = true;
  CHECK(apply_policy(lengths, policy).items.count(5) == 2);
  CHECK(apply_policy(lengths, policy).items.count(1) == 3);
}

}  // namespace
}  // namespace shardpack
