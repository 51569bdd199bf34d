// Which sequences are batched, and how much of each: the length policy where sequences stay whole or are cut once.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "base/units.h"
#include "shardpack/batch_plan.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

void check_policy_for_batches(const LengthPolicy& policy) {
  if (policy.overlong == Overlong::split) {
    throw Error(ErrorCode::usage, "a batch holds whole sequences, so --overlong split is for pack; truncate or drop them");
  }
}

std::int64_t longest_allowed(const LengthPolicy& policy) {
  return policy.row_tokens > 0 ? policy.row_tokens : std::numeric_limits<Length>::max();
}

/// \param over  the over-long sequences among `all`
[[noreturn]] void refuse_overlong(const LengthHistogram& over, std::int64_t all, std::int64_t limit,
                                  const std::string& position) {
  throw Error(
      ErrorCode::bad_data,
      fmt::format("{} of {} sequences are longer than {} tokens (longest {}); choose --overlong truncate (cuts {} tokens) "
                  "or drop (loses {} tokens), or raise --max-length",
                  with_commas(over.sequences()), with_commas(all), with_commas(limit), with_commas(over.max_length()),
                  with_commas(over.tokens() - over.sequences() * limit), with_commas(over.tokens())),
      {}, position);
}

/// The verdict on one length: tokens that are batched, or why there are none. Truncation is both.
struct Verdict {
  std::int64_t kept = 0, removed = 0;
  RemovalCause cause = RemovalCause::empty;
};
Verdict judge(std::int64_t length, std::int64_t limit, const LengthPolicy& policy) {
  if (length == 0) return {0, 0, RemovalCause::empty};
  if (length < policy.min_tokens) return {0, length, RemovalCause::too_short};
  if (length <= limit) return {length, 0, RemovalCause::empty};
  if (policy.overlong == Overlong::drop) return {0, length, RemovalCause::dropped};
  return {limit, length - limit, RemovalCause::truncated};
}

void count_removed(RemovedCounts& removed, const Verdict& verdict, std::int64_t sequences) {
  RemovedCount& count = removed[static_cast<std::size_t>(verdict.cause)];
  count.sequences += sequences;
  count.tokens = checked_add(count.tokens, checked_mul(verdict.removed, sequences, "removed tokens"), "removed tokens");
}

}  // namespace

BatchSelection select_batch_items(std::span<const std::int64_t> lengths, const LengthPolicy& policy) {
  check_policy_for_batches(policy);
  const std::int64_t limit = longest_allowed(policy);
  if (policy.overlong == Overlong::error) {
    LengthHistogram over;
    std::size_t first = lengths.size();
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] <= limit) continue;
      over.add(lengths[i]);
      first = std::min(first, i);
    }
    if (over.sequences() > 0) {
      refuse_overlong(over, static_cast<std::int64_t>(lengths.size()), limit,
                      fmt::format("sequence {}", with_commas(static_cast<std::int64_t>(first))));
    }
  }
  BatchSelection selection;
  selection.items.lengths.reserve(lengths.size());
  selection.sequences.reserve(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    ensure(lengths[i] >= 0, "a length is negative");
    const Verdict verdict = judge(lengths[i], limit, policy);
    if (verdict.kept < lengths[i] || lengths[i] == 0) count_removed(selection.removed, verdict, 1);
    if (verdict.kept == 0) continue;
    selection.cut |= verdict.kept < lengths[i];
    selection.items.lengths.push_back(static_cast<Length>(verdict.kept));
    selection.sequences.push_back(static_cast<std::int64_t>(i));
    selection.tokens = checked_add(selection.tokens, verdict.kept, "tokens");
  }
  return selection;
}

BatchLengths select_batch_lengths(const LengthHistogram& lengths, const LengthPolicy& policy) {
  check_policy_for_batches(policy);
  const std::int64_t limit = longest_allowed(policy);
  BatchLengths selection;
  LengthHistogram over;
  for (const LengthCount& entry : lengths.counts()) {
    if (entry.length > limit && policy.overlong == Overlong::error) over.add(entry.length, entry.count);
    const Verdict verdict = judge(entry.length, limit, policy);
    if (verdict.kept < entry.length || entry.length == 0) count_removed(selection.removed, verdict, entry.count);
    if (verdict.kept > 0) selection.lengths.add(verdict.kept, entry.count);
  }
  if (over.sequences() > 0) refuse_overlong(over, lengths.sequences(), limit, {});
  return selection;
}

}  // namespace shardpack
