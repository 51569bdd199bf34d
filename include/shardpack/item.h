// From sequences to items: the one pure place where over-long sequences are cut, EOS and BOS are added, and what is too short
// goes. Everything after it speaks of items only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "shardpack/length_histogram.h"
#include "shardpack/sequence_index.h"
#include "shardpack/sequence_ranges.h"
#include "shardpack/types.h"

namespace shardpack {

enum class Overlong : std::uint8_t { error, truncate, split, drop };
enum class TruncateSide : std::uint8_t { end, start };  ///< the side that is cut off

/// What a segment of n tokens takes of a row.
enum class SlotRule : std::uint8_t {
  tokens,   ///< n slots
  targets,  ///< n - 1: the trainer makes n - 1 pairs of input and target of it
};
inline constexpr std::array<std::string_view, 2> kSlotRules{"tokens", "targets"};  // index = SlotRule

/// Tokens of every segment that take no slot.
constexpr Length unslotted_tokens(SlotRule rule) { return rule == SlotRule::targets ? 1 : 0; }

/// What happens to sequences before they are packed. A plan records the policy that it was made for.
struct LengthPolicy {
  Length row_tokens = 0;  ///< slots in a row
  Overlong overlong = Overlong::error;
  TruncateSide truncate_side = TruncateSide::end;
  Length split_min_tokens = 0;  ///< under split: a last piece with fewer tokens is dropped
  Length min_tokens = 0;        ///< sequences with fewer tokens are dropped
  bool drop_unlabeled = false;  ///< sequences of which no token that is left takes part in the loss are dropped
  bool append_eos = false;      ///< where the sequence does not end in EOS already
  bool prepend_bos = false;     ///< where it does not begin with BOS already
  Length segment_multiple = 1;  ///< each segment starts on a multiple of this many slots; divides row_tokens
  /// Every so many consecutive records of a file are a unit: they share a row, next to each other, whole, or go together.
  std::int32_t keep_together = 1;
  SlotRule slot_rule = SlotRule::tokens;

  friend bool operator==(const LengthPolicy&, const LengthPolicy&) = default;
};

/// Bits of Item::added.
inline constexpr std::uint8_t kAddedBos = 1, kAddedEos = 2;

/// What a plan places: one sequence, a piece of one, or a unit of sequences that are kept together.
struct Item {
  SequenceId sequence = 0;
  std::int64_t first_token = 0;  ///< of the source sequence
  Length tokens = 0;             ///< taken from the source; at least 1 (0 only where concat cut just before an added EOS)
  /// Tokens and what is added, less what takes no slot, rounded up to the segment multiple, segment by segment.
  Length slots = 0;
  std::int32_t segments = 1;  ///< above 1: a unit, `sequence` the first of so many
  std::uint8_t added = 0;     ///< kAddedBos | kAddedEos; of a unit, what any of its sequences has

  Length length() const { return tokens + (added & 1) + (added >> 1); }  ///< tokens of the one segment in the row
};

/// Why source tokens are not in the rows. The order is the manifest's.
enum class RemovalCause : std::uint8_t { empty, null, truncated, dropped, too_short, unlabeled, tail, padding };
inline constexpr std::array<std::string_view, 8> kRemovalCauses{"empty", "null",      "truncated", "dropped",
                                                                "short", "unlabeled", "tail",      "padding"};

struct RemovedCount {
  std::int64_t sequences =
      0;  ///< without any segment in the rows; for `truncated` and `padding`: touched, whatever became of the rest
  std::int64_t tokens = 0;
  std::int64_t loss_tokens = 0;  ///< of these; stays 0 where no column tells them

  RemovedCount& operator+=(const RemovedCount& other) {
    sequences += other.sequences;
    tokens += other.tokens;
    loss_tokens += other.loss_tokens;
    return *this;
  }
  friend bool operator==(const RemovedCount&, const RemovedCount&) = default;
};
using RemovedCounts = std::array<RemovedCount, kRemovalCauses.size()>;  // index = RemovalCause

/// Cause by cause.
inline RemovedCounts& operator+=(RemovedCounts& sum, const RemovedCounts& other) {
  for (std::size_t cause = 0; cause < sum.size(); ++cause) sum[cause] += other[cause];
  return sum;
}

/// Source tokens that a policy took out; a line of removed.csv.
struct RemovedRange {
  SequenceId sequence = 0;
  std::int64_t first_token = 0, tokens = 0;
  RemovalCause cause = RemovalCause::dropped;
};

struct PolicyResult {
  std::vector<Item> items;            ///< of one segment each, in input order; every keep_together of them are a unit
  std::vector<RemovedRange> removed;  ///< in input order; empty and null records have no tokens and no line
  RemovedCounts counts{};
  std::int64_t sequences = 0;  ///< with at least one item
  std::int64_t added_eos = 0, added_bos = 0;
};

/// The side on which a sequence's tokens stay when it is cut.
constexpr LossSide loss_side(const LengthPolicy& policy) {
  if (!policy.drop_unlabeled) return LossSide::none;
  const bool cut_at_start = policy.overlong == Overlong::truncate && policy.truncate_side == TruncateSide::start;
  return cut_at_start ? LossSide::end : LossSide::start;
}

/// \throws Error{usage} for a policy that contradicts itself; the functions below check it as well.
void check_policy(const LengthPolicy& policy);

/// Apply `policy` to the sequences [first, last) of `index`, which begin and end between units.
/// \throws Error{bad_data} for an empty record in a unit, and for an over-long sequence under Overlong::error, naming its file
/// and record (check_overlong() gives the whole picture first); Error{usage} for a policy that contradicts itself. Pure: callable
/// from any thread.
PolicyResult apply_policy(const SequenceIndex& index, SequenceId first, SequenceId last, const LengthPolicy& policy);
/// The same of several runs, one after the other.
PolicyResult apply_policy(const SequenceIndex& index, const SequenceRanges& sequences, const LengthPolicy& policy);

/// The same rules on lengths alone, where no data are at hand: no sequence is taken to have its EOS or BOS already, and none can
/// be kept together with another (Error{usage}).
struct HistogramPolicyResult {
  LengthHistogram items;  ///< in slots
  RemovedCounts counts{};
  std::int64_t sequences = 0, added_eos = 0, added_bos = 0;
};
HistogramPolicyResult apply_policy(const LengthHistogram& sequences, const LengthPolicy& policy);

/// The sequences that are longer than a row, with what is added to them, and what each policy would do to them.
struct OverlongCost {
  std::int64_t sequences = 0, tokens = 0;  ///< drop loses all of them
  std::int64_t longest = 0;                ///< tokens
  std::int64_t truncated_tokens = 0;       ///< truncate loses these
  std::int64_t pieces = 0;                 ///< split makes as many pieces of them
};
/// `policy.overlong` does not matter; split_min_tokens does to the pieces. With keep_together the sequences of units that are
/// longer; these are never cut, and truncated_tokens and pieces are 0.
OverlongCost overlong_cost(const SequenceIndex& index, const LengthPolicy& policy);
OverlongCost overlong_cost(const LengthHistogram& sequences, const LengthPolicy& policy);

/// \throws Error{bad_data} when the policy is Overlong::error and there are over-long sequences: how many, the first of them,
/// and what each other choice would cost; and for a file that is no whole number of units. Error{usage} for a policy that
/// contradicts itself.
void check_overlong(const SequenceIndex& index, const LengthPolicy& policy);
void check_overlong(const LengthHistogram& sequences, const LengthPolicy& policy);

/// The units that every `keep_together` consecutive items are, in their order: what a plan then places.
std::vector<Item> units_of(const std::vector<Item>& items, std::int32_t keep_together);

/// Items by slots: what a packer sees.
LengthHistogram histogram(const std::vector<Item>& items);

}  // namespace shardpack
