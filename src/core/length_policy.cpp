// apply_policy(): one rule for a single sequence, used on an index (where items are wanted) and on a histogram (where counts
// are).
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/checked.h"
#include "base/printable.h"
#include "base/units.h"
#include "shardpack/error.h"
#include "shardpack/item.h"

namespace shardpack {

void check_policy(const LengthPolicy& policy) {
  const auto refuse = [](const std::string& message) { throw Error(ErrorCode::usage, message); };
  const Length L = policy.row_tokens;
  if (L < 1) refuse("-L/--seq-length must be at least 1");
  if (policy.segment_multiple < 1) refuse("--segment-multiple must be at least 1");
  if (L % policy.segment_multiple != 0) {
    const Length below = L - L % policy.segment_multiple;
    refuse(
        fmt::format("a row of {} slots cannot hold segments that take a multiple of {} slots each (--segment-multiple, or --cp, "
                    "--tp and --sp); give -L {}{}",
                    with_commas(L), policy.segment_multiple, below > 0 ? fmt::format("{} or ", below) : std::string(),
                    std::int64_t{below} + policy.segment_multiple));
  }
  if (L < 1 + policy.append_eos + policy.prepend_bos) {
    refuse(fmt::format("a row of {} slots has no room for a token beside the added EOS and BOS; raise -L", L));
  }
  if (policy.min_tokens < 0 || policy.split_min_tokens < 0) refuse("--min-tokens and --split-min-tokens count tokens, from 0");
  if (policy.split_min_tokens > 0 && policy.overlong != Overlong::split) {
    refuse("--split-min-tokens only applies with --overlong split");
  }
  if (policy.split_min_tokens > L) {
    refuse(fmt::format("--split-min-tokens {} would drop every last piece: a row has {} slots", policy.split_min_tokens, L));
  }
  if (policy.slot_rule == SlotRule::targets && policy.segment_multiple > 1)
    refuse("--segment-multiple has no meaning where a segment of n tokens takes n - 1 slots");
  if (policy.keep_together < 1) refuse("--keep-together counts sequences, from 1");
  if (policy.keep_together > 1 && (policy.overlong == Overlong::truncate || policy.overlong == Overlong::split)) {
    refuse("sequences that are kept together are never cut: with --keep-together, --overlong is error or drop");
  }
}

namespace {

/// BOS and EOS where they are missing and wanted, as bits of Item::added.
int missing_ends(std::uint8_t ends, const LengthPolicy& policy) {
  const int bos = policy.prepend_bos && (ends & SequenceIndex::kBeginsWithBos) == 0 ? kAddedBos : 0;
  const int eos = policy.append_eos && (ends & SequenceIndex::kEndsWithEos) == 0 ? kAddedEos : 0;
  return bos | eos;
}

int count_of(int added) { return (added & 1) + (added >> 1); }

/// What is added to a sequence that the policy leaves whole; nothing where it does something else with it.
std::optional<int> added_when_whole(std::int64_t tokens, std::uint8_t ends, const LengthPolicy& policy) {
  const int missing = missing_ends(ends, policy);
  const std::int64_t length = tokens + count_of(missing), unslotted = unslotted_tokens(policy.slot_rule);
  const bool fits = unslotted < length && length <= policy.row_tokens + unslotted;
  return fits && tokens >= policy.min_tokens ? std::optional(missing) : std::nullopt;
}

/// The rule for one sequence of `tokens` >= 1 tokens. Calls
///   place(first_token, tokens, added, repeat): `repeat` pieces of `tokens` tokens, one after the other, from first_token on;
///   remove(first_token, tokens, cause);
///   overlong(): under Overlong::error.
template <class Place, class Remove, class Refuse>
void cut_sequence(std::int64_t tokens, std::uint8_t ends, const LengthPolicy& policy, Place place_piece, Remove remove,
                  Refuse overlong) {
  if (const auto added = added_when_whole(tokens, ends, policy))
    return place_piece(std::int64_t{0}, tokens, *added, std::int64_t{1});
  // A segment that takes no slot has nothing to learn, and goes like a short one.
  const Length unslotted = unslotted_tokens(policy.slot_rule);
  const auto place = [&](std::int64_t from, std::int64_t count, int added, std::int64_t repeat) {
    if (count + count_of(added) > unslotted) return place_piece(from, count, added, repeat);
    remove(from, count * repeat, RemovalCause::too_short);
  };
  if (tokens < policy.min_tokens) return remove(std::int64_t{0}, tokens, RemovalCause::too_short);

  const std::int64_t row = std::int64_t{policy.row_tokens} + unslotted;  // tokens that one segment may have
  const int missing = missing_ends(ends, policy), bos = missing & kAddedBos, eos = missing & kAddedEos;
  if (tokens + count_of(missing) <= row) return place(std::int64_t{0}, tokens, bos | eos, std::int64_t{1});

  switch (policy.overlong) {
    case Overlong::error:
      return overlong();
    case Overlong::drop:
      return remove(std::int64_t{0}, tokens, RemovalCause::dropped);
    case Overlong::truncate: {
      // The cut comes first: the side that was cut off gets its BOS or EOS anew, whatever the source had further on.
      const bool at_end = policy.truncate_side == TruncateSide::end;
      const int added = at_end ? bos | (policy.append_eos ? kAddedEos : 0) : (policy.prepend_bos ? kAddedBos : 0) | eos;
      const std::int64_t keep = std::min(tokens, row - count_of(added));
      const std::int64_t cut = tokens - keep;
      if (!at_end && cut > 0) remove(std::int64_t{0}, cut, RemovalCause::truncated);
      place(at_end ? std::int64_t{0} : cut, keep, added, std::int64_t{1});
      if (at_end && cut > 0) remove(keep, cut, RemovalCause::truncated);
      return;
    }
    case Overlong::split: {
      // In source tokens: a first piece beside the BOS, full rows, and a last piece beside the EOS.
      std::int64_t first = row - (bos != 0);
      const std::int64_t rest = tokens + (eos != 0) - first;
      std::int64_t full = (rest - 1) / row;
      std::int64_t last = rest - full * row - (eos != 0);
      std::int64_t shortened = 0;
      if (last == 0 && policy.split_min_tokens <= 1) {  // the EOS alone: it takes one token from the piece before
        last = 1;
        if (full == 0) {
          --first;
        } else {
          --full;
          shortened = row - 1;
        }
      }
      place(std::int64_t{0}, first, bos, std::int64_t{1});
      if (full > 0) place(first, row, 0, full);
      if (shortened > 0) place(first + full * row, shortened, 0, std::int64_t{1});
      if (last == 0) return;  // too short for --split-min-tokens, whatever it takes
      if (last < policy.split_min_tokens) return remove(tokens - last, last, RemovalCause::too_short);
      return place(tokens - last, last, eos, std::int64_t{1});
    }
  }
}

std::int64_t slots_of(std::int64_t length, const LengthPolicy& policy) {
  const std::int64_t multiple = policy.segment_multiple, slots = length - unslotted_tokens(policy.slot_rule);
  return multiple == 1 ? slots : ceil_div(slots, multiple) * multiple;  // mostly 1, and a division takes as long as all else
}

/// Tokens of a sequence that would be in the rows; they lie at one side of it (loss_side()). 0 where the policy takes it out, or
/// refuses it.
std::int64_t tokens_left(std::int64_t tokens, std::uint8_t ends, const LengthPolicy& policy) {
  std::int64_t left = 0;
  cut_sequence(
      tokens, ends, policy, [&](std::int64_t, std::int64_t count, int, std::int64_t repeat) { left += count * repeat; },
      [](std::int64_t, std::int64_t, RemovalCause) {}, [] {});
  return left;
}

/// Is something left of the sequence, and no token of it takes part in the loss?
bool is_unlabeled(const SequenceIndex& index, SequenceId sequence, std::int64_t tokens, const LengthPolicy& policy) {
  if (!policy.drop_unlabeled) return false;
  const std::int64_t left = tokens_left(tokens, index.ends(sequence), policy);
  return left > 0 && std::int64_t{index.loss_place(sequence)} >= left;
}

/// What a removal adds to the counts. Cut-off tokens leave their sequence in the rows: it counts under `truncated` as touched,
/// and not at all where split dropped a short last piece.
void count_removal(RemovedCounts& counts, RemovalCause cause, bool whole_sequence, std::int64_t tokens, std::int64_t times) {
  RemovedCount& count = counts[static_cast<std::size_t>(cause)];
  if (whole_sequence || cause == RemovalCause::truncated)
    count.sequences = checked_add(count.sequences, times, "removed sequences");
  count.tokens = checked_add(count.tokens, checked_mul(tokens, times, "removed tokens"), "removed tokens");
}

// ---- sequences that are kept together ---------------------------------------------------------------------------------------

/// A unit as it would lie in a row.
struct Unit {
  std::vector<Item> items;  // tokens and slots only where it fits
  std::int64_t tokens = 0, slots = 0;
  bool too_short = false;  // one of its sequences is, and so are all
  bool labeled = false;    // one of its sequences has a token that takes part in the loss
};

std::string shown(const GroupKey& key) {
  if (const auto* text = std::get_if<std::string>(&key)) return fmt::format("'{}'", printable(*text));
  if (const auto* number = std::get_if<std::int64_t>(&key)) return std::to_string(*number);
  return std::get<bool>(key) ? "true" : "false";
}

std::int64_t record_tokens(const SourceFile& file, std::int64_t record) {
  const auto at = static_cast<std::size_t>(record);
  return file.record_begin[at + 1] - file.record_begin[at];
}

/// The unit that begins with `record` of `file`. \throws Error{bad_data} for an empty record in it
void read_unit(const SequenceIndex& index, std::size_t f, std::int64_t record, const LengthPolicy& policy, Unit& unit) {
  const SourceFile& file = index.files()[f];
  unit = {.items = std::move(unit.items)};
  unit.items.clear();
  for (std::int64_t r = record; r < record + policy.keep_together; ++r) {
    const std::int64_t tokens = record_tokens(file, r);
    if (tokens == 0) {
      throw Error(
          ErrorCode::bad_data,
          fmt::format("an empty record among {} that are kept together (records {} to {}); take the whole unit out of the data",
                      policy.keep_together, with_commas(record), with_commas(record + policy.keep_together - 1)),
          file.name, fmt::format("record {}", with_commas(r)));
    }
    const SequenceId sequence = index.first_sequence(static_cast<std::int32_t>(f)) + r;
    if (index.grouped() && r > record && index.group(sequence) != index.group(sequence - 1)) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("it is of group {}, and the record before, which --keep-together {} puts into the same row, of {}; "
                              "leave out --keep-together or --group-column",
                              shown(index.group_keys()[static_cast<std::size_t>(index.group(sequence))]), policy.keep_together,
                              shown(index.group_keys()[static_cast<std::size_t>(index.group(sequence - 1))])),
                  file.name, fmt::format("record {}", with_commas(r)));
    }
    const int added = missing_ends(index.ends(sequence), policy);
    const std::int64_t slots = slots_of(tokens + count_of(added), policy);
    unit.tokens += tokens;
    unit.slots += slots;
    unit.too_short |= tokens < policy.min_tokens || slots == 0;
    unit.labeled |= policy.drop_unlabeled && index.loss_place(sequence) != SequenceIndex::kNoLoss;
    Item item{.sequence = sequence, .added = static_cast<std::uint8_t>(added)};
    if (slots <= policy.row_tokens) {
      item.tokens = static_cast<Length>(tokens);
      item.slots = static_cast<Length>(slots);
    }
    unit.items.push_back(item);
  }
}

/// Calls visit(file, first record of a unit) for every unit of the sequences [first, last), which begin and end between units.
template <class Visit>
void for_each_unit(const SequenceIndex& index, SequenceId first, SequenceId last, std::int32_t together, Visit visit) {
  for (std::size_t f = 0; f < index.files().size(); ++f) {
    const SequenceId base = index.first_sequence(static_cast<std::int32_t>(f));
    const std::int64_t begin = std::max(first - base, std::int64_t{0}), end = std::min(last - base, index.files()[f].records());
    if (begin >= end) continue;
    ensure(begin % together == 0 && end % together == 0, "partitions are cut between units");
    for (std::int64_t record = begin; record < end; record += together) visit(f, record);
  }
}

PolicyResult apply_to_units(const SequenceIndex& index, SequenceId first, SequenceId last, const LengthPolicy& policy) {
  PolicyResult result;
  Unit unit;
  for_each_unit(index, first, last, policy.keep_together, [&](std::size_t f, std::int64_t record) {
    read_unit(index, f, record, policy, unit);
    const bool over = unit.slots > policy.row_tokens;
    const bool unlabeled = policy.drop_unlabeled && !unit.labeled;
    if (unit.too_short || over || unlabeled) {
      if (!unit.too_short && over && policy.overlong == Overlong::error) {
        throw Error(ErrorCode::bad_data,
                    fmt::format("a unit takes {} slots, a row has {}", with_commas(unit.slots), with_commas(policy.row_tokens)),
                    index.files()[f].name, fmt::format("record {}", with_commas(record)));
      }
      const RemovalCause cause = unit.too_short ? RemovalCause::too_short
                                 : over         ? RemovalCause::dropped
                                                : RemovalCause::unlabeled;
      for (std::int32_t i = 0; i < policy.keep_together; ++i) {
        const std::int64_t tokens = record_tokens(index.files()[f], record + i);
        result.removed.push_back({unit.items[static_cast<std::size_t>(i)].sequence, 0, tokens, cause});
        count_removal(result.counts, cause, true, tokens, 1);
      }
      return;
    }
    for (const Item& item : unit.items) {
      result.items.push_back(item);
      result.added_bos += (item.added & kAddedBos) != 0;
      result.added_eos += (item.added & kAddedEos) != 0;
    }
    result.sequences += policy.keep_together;
  });
  return result;
}

/// Units that are longer than a row.
struct OverlongUnits {
  OverlongCost cost;
  std::int64_t units = 0, over = 0;
  std::size_t first_file = 0;
  std::int64_t first_record = 0, first_slots = 0;
};
OverlongUnits overlong_units(const SequenceIndex& index, const LengthPolicy& policy) {
  OverlongUnits result;
  Unit unit;
  for_each_unit(index, 0, index.sequences(), policy.keep_together, [&](std::size_t f, std::int64_t record) {
    read_unit(index, f, record, policy, unit);
    ++result.units;
    if (unit.too_short || unit.slots <= policy.row_tokens) return;
    if (result.over++ == 0) {
      result.first_file = f;
      result.first_record = record;
      result.first_slots = unit.slots;
    }
    result.cost.sequences += policy.keep_together;
    result.cost.tokens += unit.tokens;
    result.cost.longest = std::max(result.cost.longest, unit.tokens);
  });
  return result;
}

/// Is every file a whole number of units?
void check_whole_units(const SequenceIndex& index, const LengthPolicy& policy) {
  for (const SourceFile& file : index.files()) {
    if (const std::int64_t left = file.records() % policy.keep_together; left > 0) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("{} records are kept together by {}, which leaves {} over; N of --keep-together must divide the "
                              "records of each file",
                              with_commas(file.records()), policy.keep_together, left),
                  file.name);
    }
  }
}

/// check_overlong() for units.
void check_units(const SequenceIndex& index, const LengthPolicy& policy) {
  check_whole_units(index, policy);
  const OverlongUnits found = overlong_units(index, policy);
  if (found.over == 0 || policy.overlong != Overlong::error) return;
  throw Error(
      ErrorCode::bad_data,
      fmt::format(
          "{} of {} units of {} sequences are longer than a row of {} slots (this first one takes {}); they are never cut: "
          "choose --overlong drop (loses {} tokens), or raise -L",
          with_commas(found.over), with_commas(found.units), policy.keep_together, with_commas(policy.row_tokens),
          with_commas(found.first_slots), with_commas(found.cost.tokens)),
      index.files()[found.first_file].name, fmt::format("record {}", with_commas(found.first_record)));
}

/// Lengths alone do not tell which sequences follow each other.
void refuse_units(const LengthPolicy& policy) {
  if (policy.keep_together > 1) {
    throw Error(ErrorCode::usage, "a histogram does not tell which sequences --keep-together keeps together; give the shards");
  }
}

// ---- over-long sequences ----------------------------------------------------------------------------------------------------

/// The message of check_overlong().
/// \param first  about the first of them, with a comma at its end; or ""
std::string overlong_message(const OverlongCost& cost, std::int64_t all, const LengthPolicy& policy, std::string_view first) {
  return fmt::format(
      "{} of {} sequences are longer than a row of {} slots{} ({}longest {} tokens); choose --overlong truncate (cuts {} "
      "tokens), "
      "split (makes {} pieces of them) or drop (loses {} tokens), or raise -L",
      with_commas(cost.sequences), with_commas(all), with_commas(policy.row_tokens),
      policy.append_eos || policy.prepend_bos ? " with what is added" : "", first, with_commas(cost.longest),
      with_commas(cost.truncated_tokens), with_commas(cost.pieces), with_commas(cost.tokens));
}

/// Would `tokens` tokens need one of the policies for over-long sequences?
bool is_overlong(std::int64_t tokens, std::uint8_t ends, LengthPolicy policy) {
  policy.overlong = Overlong::error;
  bool over = false;
  if (tokens > 0) {
    cut_sequence(
        tokens, ends, policy, [](std::int64_t, std::int64_t, int, std::int64_t) {},
        [](std::int64_t, std::int64_t, RemovalCause) {}, [&] { over = true; });
  }
  return over;
}

LengthHistogram overlong_lengths(const LengthHistogram& sequences, const LengthPolicy& policy) {
  LengthHistogram over;
  for (const LengthCount& entry : sequences.counts()) {
    if (is_overlong(entry.length, 0, policy)) over.add(entry.length, entry.count);
  }
  return over;
}

struct OverlongOfIndex {
  LengthHistogram lengths;
  SequenceId first = -1;  ///< the first of them; -1 when there are none
};
OverlongOfIndex overlong_lengths(const SequenceIndex& index, const LengthPolicy& policy) {
  OverlongOfIndex over;
  if (!is_overlong(index.longest_sequence(), 0, policy)) return over;
  SequenceId sequence = 0;
  for (const SourceFile& file : index.files()) {
    for (std::int64_t record = 0; record < file.records(); ++record, ++sequence) {
      const std::int64_t tokens = record_tokens(file, record);
      if (!is_overlong(tokens, index.ends(sequence), policy)) continue;
      over.lengths.add(tokens);
      if (over.first < 0) over.first = sequence;
    }
  }
  return over;
}

/// What the policies would do to sequences of which each is over-long.
OverlongCost cost_of(const LengthHistogram& over, LengthPolicy policy) {
  policy.drop_unlabeled = false;  // tokens are counted, whatever they are worth
  policy.overlong = Overlong::split;
  const HistogramPolicyResult split = apply_policy(over, policy);
  policy.overlong = Overlong::truncate;
  policy.split_min_tokens = 0;
  const HistogramPolicyResult truncate = apply_policy(over, policy);
  return {.sequences = over.sequences(),
          .tokens = over.tokens(),
          .longest = over.max_length(),
          .truncated_tokens = truncate.counts[static_cast<std::size_t>(RemovalCause::truncated)].tokens,
          .pieces = split.items.sequences()};
}

}  // namespace

PolicyResult apply_policy(const SequenceIndex& index, SequenceId first, SequenceId last, const LengthPolicy& policy) {
  check_policy(policy);
  ensure(!policy.drop_unlabeled || index.has_loss_places() || index.sequences() == 0, "the loss was looked for");
  if (policy.keep_together > 1) return apply_to_units(index, first, last, policy);
  PolicyResult result;
  result.items.reserve(static_cast<std::size_t>(last - first));
  for (std::size_t f = 0; f < index.files().size(); ++f) {
    const SourceFile& file = index.files()[f];
    const SequenceId base = index.first_sequence(static_cast<std::int32_t>(f));
    for (SequenceId sequence = std::max(first, base); sequence < std::min(last, base + file.records()); ++sequence) {
      const auto record = static_cast<std::size_t>(sequence - base);
      const std::int64_t tokens = file.record_begin[record + 1] - file.record_begin[record];
      if (tokens == 0) {
        ++result.counts[static_cast<std::size_t>(RemovalCause::empty)].sequences;
        continue;
      }
      if (is_unlabeled(index, sequence, tokens, policy)) {
        result.removed.push_back({sequence, 0, tokens, RemovalCause::unlabeled});
        count_removal(result.counts, RemovalCause::unlabeled, true, tokens, 1);
        continue;
      }
      const auto place = [&](std::int64_t from, std::int64_t count, int added, std::int64_t repeat) {
        for (std::int64_t i = 0; i < repeat; ++i) {
          Item& item = result.items.emplace_back();
          item.sequence = sequence;
          item.first_token = from + i * count;
          item.tokens = static_cast<Length>(count);
          item.added = static_cast<std::uint8_t>(added);
          item.slots = static_cast<Length>(slots_of(item.length(), policy));
        }
        result.added_bos += (added & kAddedBos) != 0;
        result.added_eos += (added & kAddedEos) != 0;
      };
      if (const auto added = added_when_whole(tokens, index.ends(sequence), policy)) {  // as most are: at once
        place(0, tokens, *added, 1);
        ++result.sequences;
        continue;
      }
      const std::size_t before = result.items.size();
      cut_sequence(
          tokens, index.ends(sequence), policy, place,
          [&](std::int64_t from, std::int64_t count, RemovalCause cause) {
            result.removed.push_back({sequence, from, count, cause});
            count_removal(result.counts, cause, count == tokens, count, 1);
          },
          [&] {
            throw Error(ErrorCode::bad_data,
                        fmt::format("{} tokens are more than a row of {} slots holds; choose --overlong truncate, split or drop",
                                    with_commas(tokens), with_commas(policy.row_tokens)),
                        file.name, fmt::format("record {}", with_commas(static_cast<std::int64_t>(record))));
          });
      result.sequences += result.items.size() > before;
    }
  }
  return result;
}

PolicyResult apply_policy(const SequenceIndex& index, const SequenceRanges& sequences, const LengthPolicy& policy) {
  PolicyResult all;
  for (const SequenceRange& run : sequences.runs()) {
    PolicyResult part = apply_policy(index, run.first, run.last, policy);
    if (all.items.empty() && all.removed.empty()) {  // most have one run
      all.items = std::move(part.items);
      all.removed = std::move(part.removed);
    } else {
      all.items.insert(all.items.end(), part.items.begin(), part.items.end());
      all.removed.insert(all.removed.end(), part.removed.begin(), part.removed.end());
    }
    all.counts += part.counts;
    all.sequences += part.sequences;
    all.added_eos += part.added_eos;
    all.added_bos += part.added_bos;
  }
  return all;
}

HistogramPolicyResult apply_policy(const LengthHistogram& sequences, const LengthPolicy& policy) {
  check_policy(policy);
  refuse_units(policy);
  if (policy.drop_unlabeled) {
    throw Error(ErrorCode::usage,
                "a histogram does not tell which tokens take part in the loss (--drop-unlabeled); give the shards");
  }
  HistogramPolicyResult result;
  for (const LengthCount& entry : sequences.counts()) {
    if (entry.length == 0) {
      result.counts[static_cast<std::size_t>(RemovalCause::empty)].sequences += entry.count;
      continue;
    }
    bool placed = false;
    cut_sequence(
        entry.length, 0, policy,
        [&](std::int64_t, std::int64_t tokens, int added, std::int64_t repeat) {
          const std::int64_t length = tokens + (added & 1) + (added >> 1);
          result.items.add(slots_of(length, policy), checked_mul(repeat, entry.count, "pieces"));
          result.added_bos += (added & kAddedBos) != 0 ? entry.count : 0;
          result.added_eos += (added & kAddedEos) != 0 ? entry.count : 0;
          placed = true;
        },
        [&](std::int64_t, std::int64_t tokens, RemovalCause cause) {
          count_removal(result.counts, cause, tokens == entry.length, tokens, entry.count);
        },
        [&] { check_overlong(sequences, policy); });
    if (placed) result.sequences = checked_add(result.sequences, entry.count, "sequences");
  }
  return result;
}

OverlongCost overlong_cost(const SequenceIndex& index, const LengthPolicy& policy) {
  if (policy.keep_together == 1) return cost_of(overlong_lengths(index, policy).lengths, policy);
  check_whole_units(index, policy);
  return overlong_units(index, policy).cost;
}

OverlongCost overlong_cost(const LengthHistogram& sequences, const LengthPolicy& policy) {
  refuse_units(policy);
  return cost_of(overlong_lengths(sequences, policy), policy);
}

void check_overlong(const SequenceIndex& index, const LengthPolicy& policy) {
  check_policy(policy);
  if (policy.keep_together > 1) return check_units(index, policy);
  if (policy.overlong != Overlong::error) return;
  const OverlongOfIndex over = overlong_lengths(index, policy);
  if (over.first < 0) return;
  const SequencePlace place = index.place(over.first);
  const SourceFile& file = index.files()[static_cast<std::size_t>(place.file)];
  throw Error(ErrorCode::bad_data,
              overlong_message(cost_of(over.lengths, policy), index.sequences(), policy,
                               fmt::format("this first one has {} tokens, ", with_commas(place.tokens))),
              file.name, fmt::format("record {}", with_commas(place.record)));
}

void check_overlong(const LengthHistogram& sequences, const LengthPolicy& policy) {
  check_policy(policy);
  refuse_units(policy);
  if (policy.overlong != Overlong::error) return;
  const LengthHistogram over = overlong_lengths(sequences, policy);
  if (over.sequences() == 0) return;
  throw Error(ErrorCode::bad_data, overlong_message(cost_of(over, policy), sequences.sequences(), policy, ""));
}

std::vector<Item> units_of(const std::vector<Item>& items, std::int32_t keep_together) {
  const auto together = static_cast<std::size_t>(keep_together);
  ensure(items.size() % together == 0, "the items are whole units");
  std::vector<Item> units;
  units.reserve(items.size() / together);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i % together == 0) {
      units.push_back(items[i]);
      continue;
    }
    Item& unit = units.back();
    unit.tokens += items[i].tokens;
    unit.slots += items[i].slots;
    unit.segments += items[i].segments;
    unit.added |= items[i].added;
  }
  return units;
}

LengthHistogram histogram(const std::vector<Item>& items) {
  LengthHistogram result;
  std::vector<std::int64_t> counts;  // of ordinary lengths, which are checked and added once each
  for (const Item& item : items) {
    const auto slots = static_cast<std::size_t>(item.slots);
    if (item.slots < 0 || slots >= static_cast<std::size_t>(LengthHistogram::kDenseLengths)) {
      result.add(item.slots);
      continue;
    }
    if (slots >= counts.size()) counts.resize(slots + 1);
    ++counts[slots];
  }
  for (std::size_t slots = 0; slots < counts.size(); ++slots) result.add(static_cast<std::int64_t>(slots), counts[slots]);
  return result;
}

}  // namespace shardpack
