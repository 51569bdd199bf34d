// Any sequences under any policy: the items and removals cover every source token exactly once, within the row; and the rules on
// a histogram agree with the rules on an index.
#include <rapidcheck.h>

#include <map>

#include "core/row_check.h"
#include "shardpack/assignment.h"
#include "shardpack/error.h"
#include "support/catch.h"
#include "support/memory_source.h"

using namespace shardpack;

namespace {

LengthPolicy any_policy() {
  LengthPolicy policy;
  policy.row_tokens = *rc::gen::inRange(3, 40);
  policy.overlong = *rc::gen::element(Overlong::truncate, Overlong::split, Overlong::drop);
  policy.truncate_side = *rc::gen::element(TruncateSide::end, TruncateSide::start);
  policy.append_eos = *rc::gen::arbitrary<bool>();
  policy.prepend_bos = *rc::gen::arbitrary<bool>();
  policy.min_tokens = *rc::gen::inRange(0, 4);
  if (policy.overlong == Overlong::split) policy.split_min_tokens = *rc::gen::inRange(0, 3);
  if (policy.row_tokens % 2 == 0 && *rc::gen::arbitrary<bool>()) policy.segment_multiple = 2;
  return policy;
}

std::vector<std::int64_t> any_lengths() {
  return *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 150));
}

}  // namespace

TEST_CASE("a policy loses nothing: items and removals cover the source exactly once") {
  CHECK(rc::check([] {
    const std::vector<std::int64_t> lengths = any_lengths();
    const LengthPolicy policy = any_policy();
    std::vector<std::uint8_t> ends;
    for (std::size_t i = 0; i < lengths.size(); ++i) ends.push_back(*rc::gen::inRange<std::uint8_t>(0, 4));
    const PolicyResult result = apply_policy(memory_index(lengths, ends), 0, static_cast<SequenceId>(lengths.size()), policy);

    std::vector<std::vector<int>> seen;
    for (const std::int64_t length : lengths) seen.emplace_back(static_cast<std::size_t>(length), 0);
    const auto mark = [&](SequenceId sequence, std::int64_t first, std::int64_t tokens) {
      for (std::int64_t t = first; t < first + tokens; ++t)
        ++seen.at(static_cast<std::size_t>(sequence)).at(static_cast<std::size_t>(t));
    };
    for (const Item& item : result.items) {
      RC_ASSERT(item.tokens >= 1);
      RC_ASSERT(item.slots <= policy.row_tokens);
      RC_ASSERT(item.slots % policy.segment_multiple == 0);
      RC_ASSERT(item.slots >= item.length());
      RC_ASSERT(item.slots - item.length() < policy.segment_multiple);
      mark(item.sequence, item.first_token, item.tokens);
    }
    for (const RemovedRange& range : result.removed) mark(range.sequence, range.first_token, range.tokens);
    for (const auto& sequence : seen) {
      for (const int times : sequence) RC_ASSERT(times == 1);
    }
  }));
}

TEST_CASE("the policy on a histogram agrees with the policy on an index") {
  CHECK(rc::check([] {
    const std::vector<std::int64_t> lengths = any_lengths();
    const LengthPolicy policy = any_policy();
    LengthHistogram sequences;
    for (const std::int64_t length : lengths) sequences.add(length);
    const PolicyResult exact = apply_policy(memory_index(lengths), 0, static_cast<SequenceId>(lengths.size()), policy);
    const HistogramPolicyResult counted = apply_policy(sequences, policy);
    RC_ASSERT(counted.items == histogram(exact.items));
    RC_ASSERT(counted.sequences == exact.sequences);
    RC_ASSERT(counted.added_eos == exact.added_eos);
    RC_ASSERT(counted.added_bos == exact.added_bos);
    for (std::size_t cause = 0; cause < counted.counts.size(); ++cause) {
      RC_ASSERT(counted.counts[cause].sequences == exact.counts[cause].sequences);
      RC_ASSERT(counted.counts[cause].tokens == exact.counts[cause].tokens);
    }
  }));
}

TEST_CASE("rows in input order hold every token in order") {
  CHECK(rc::check([] {
    const std::vector<std::int64_t> lengths = any_lengths();
    LengthPolicy policy = any_policy();
    policy.overlong = Overlong::split;
    const std::int32_t max_segments = *rc::gen::inRange(0, 4);
    std::vector<Item> items = apply_policy(memory_index(lengths), 0, static_cast<SequenceId>(lengths.size()), policy).items;
    const bool concat = *rc::gen::arbitrary<bool>();
    std::int64_t tokens = 0;
    for (const Item& item : items) tokens += item.length();
    const OrderedRows rows = concat ? pack_concat(items, policy.row_tokens, max_segments, policy.segment_multiple)
                                    : pack_sequential(items, policy.row_tokens, max_segments);
    std::int64_t next = 0;
    for (std::int64_t r = 0; r < rows.rows.rows(); ++r) {
      std::int64_t slots = 0;
      const auto row = rows.rows.row(r);
      RC_ASSERT(!row.empty());
      if (max_segments > 0) RC_ASSERT(static_cast<std::int32_t>(row.size()) <= max_segments);
      for (const std::int32_t i : row) {
        RC_ASSERT(i == next++);
        slots += rows.items[static_cast<std::size_t>(i)].slots;
        tokens -= rows.items[static_cast<std::size_t>(i)].length();
      }
      RC_ASSERT(slots <= policy.row_tokens);
      if (concat && max_segments == 0 && r + 1 < rows.rows.rows()) RC_ASSERT(slots == policy.row_tokens);
    }
    RC_ASSERT(tokens == 0);
    RC_ASSERT(next == static_cast<std::int64_t>(rows.items.size()));
    const PackingPlan plan = derive_plan(rows, "sequential", policy, max_segments);
    RC_ASSERT(check_exact_cover(plan, histogram(rows.items)).empty());
  }));
}

TEST_CASE("an assignment places every item once, whatever the order") {
  CHECK(rc::check([] {
    const std::vector<std::int64_t> lengths = any_lengths();
    LengthPolicy policy = any_policy();
    policy.overlong = Overlong::split;
    std::vector<Item> items = apply_policy(memory_index(lengths), 0, static_cast<SequenceId>(lengths.size()), policy).items;
    const auto wide = *rc::gen::element<Length>(1, 1, 1 << 15);  // so that a few rows are several windows
    policy.row_tokens *= wide;
    for (Item& item : items) item.slots *= wide;
    const OrderedRows sequential = pack_sequential(items, policy.row_tokens, 0);
    const PackingPlan plan = derive_plan(sequential, "sequential", policy, 0);
    AssignOptions options{
        .seed = *rc::gen::arbitrary<std::uint64_t>(),
        .partition = *rc::gen::inRange(0, 3),
        .order = *rc::gen::element(RowOrder::shuffled, RowOrder::windowed, RowOrder::by_strategy, RowOrder::input),
        .row_tokens = policy.row_tokens};
    const Assignment rows = assign(items, plan, options);
    std::vector<int> placed(items.size());
    for (const std::int32_t i : rows.items) ++placed.at(static_cast<std::size_t>(i));
    for (const int times : placed) RC_ASSERT(times == 1);
    RC_ASSERT(derive_plan({items, rows}, "sequential", policy, 0).lengths == plan.lengths);
    if (options.order == RowOrder::input) {
      for (std::int64_t r = 1; r < rows.rows(); ++r) RC_ASSERT(rows.row(r - 1).front() < rows.row(r).front());
    }
    const Assignment again = assign(items, plan, options);
    RC_ASSERT(again.items == rows.items);
    RC_ASSERT(again.begin == rows.begin);
    if (options.order == RowOrder::windowed && window_count(plan.rows(), policy.row_tokens) == 1) {
      options.order = RowOrder::shuffled;
      RC_ASSERT(assign(items, plan, options).items == rows.items);
    }
  }));
}
