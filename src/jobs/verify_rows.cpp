#include "jobs/verify_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/hash.h"
#include "base/units.h"
#include "jobs/verify_begins.h"
#include "jobs/verify_placed.h"
#include "jobs/verify_trainer_row.h"

namespace shardpack {

namespace {

/// One segment as the arrays give it.
struct Segment {
  std::int64_t begin, slots, length;  // slots of the row
  std::int64_t tokens;                // of the source
  std::uint8_t added;
};

template <class T>
std::span<const T> row_of(const StoredIds& ids, std::int64_t row, Length row_tokens) {
  return {reinterpret_cast<const T*>(ids.bytes.data()) + row * row_tokens, static_cast<std::size_t>(row_tokens)};
}

/// Is values[i] == first + i * step everywhere? Written so that the compiler makes vectors of it.
template <class T>
bool is_ramp(std::span<const T> values, std::uint32_t first, std::uint32_t step) {
  T different = 0;
  auto expected = static_cast<T>(first);
  for (const T value : values) {
    different = static_cast<T>(different | (value ^ expected));
    expected = static_cast<T>(expected + step);
  }
  return different == 0;
}

class RowCheck {
 public:
  RowCheck(const StoredRows& rows, const RowRules& rules, const RowsOrigin& origin, std::span<const FingerprintRecount> recounts)
      : rows_(rows), rules_(rules), origin_(origin), recounts_(recounts), placed_(rows, rules) {
    if (rules.output != nullptr) trainer_.emplace(rules);
  }

  CheckedRows run() {
    for (row_ = 0; row_ < rows_.rows; ++row_) {
      ++result_.facts.rows;
      if (!read_segments()) {  // without boundaries nothing more can be said of the row
        if (origin_.digest_rows) result_.digests.push_back(0);
        continue;
      }
      compare_with_plan();
      check_groups();
      if (rules_.holds_tokens) trainer_ ? check_trainer_slots() : check_slots();
      for (std::size_t c = 0; c < rules_.columns.size(); ++c) {
        if (!trainer_ || static_cast<int>(c) != rules_.output->label_column) check_column(c);
      }
      if (origin_.digest_rows) result_.digests.push_back(digest());
    }
    if (origin_.source != nullptr) read_in_sources(result_.pieces, *origin_.source, recounts_[0], result_.facts);
    return std::move(result_);
  }

 private:
  void report(std::string_view kind, std::string message) { report(kind, rows_.shard, std::move(message)); }
  void report(std::string_view kind, std::string_view file, std::string message) {
    result_.issues.add(kind, file, std::move(message), rows_.first_row + row_);
  }

  void check_slots() {
    if (rows_.ids.type == IdType::u16) {
      check_ids(row_of<std::uint16_t>(rows_.ids, row_, rules_.row_tokens));
    } else {
      check_ids(row_of<std::uint32_t>(rows_.ids, row_, rules_.row_tokens));
    }
    check_derived("segment_ids", rows_.segment_ids, 1, 0);
    check_derived("position_ids", rows_.position_ids, rules_.position_start, 1);
  }

  /// The same of a row in a trainer's file, with its labels, which are the dataset's label column.
  void check_trainer_slots() {
    if (!trainer_->take(rows_, row_, runs_, result_.issues)) return;
    check_ids(trainer_->ids());
    if (rules_.output->label_column >= 0) {
      check_values(static_cast<std::size_t>(rules_.output->label_column), trainer_->source_labels(),
                   result_.pieces.size() - segments_.size(), rows_.slots_file);
    }
    result_.facts.hidden_labels += trainer_->hidden_labels();
  }

  std::size_t first_segment() const {
    return static_cast<std::size_t>(rows_.offsets[static_cast<std::size_t>(row_)] - rows_.offsets.front());
  }
  std::size_t end_segment() const {
    return static_cast<std::size_t>(rows_.offsets[static_cast<std::size_t>(row_) + 1] - rows_.offsets.front());
  }

  /// The row's boundaries into segments_, and the pieces they hold into the result. \return whether they are possible
  bool read_segments() {
    segments_.clear();
    runs_.clear();
    const std::size_t pieces_before = result_.pieces.size();
    std::int64_t end = 0;
    for (std::size_t s = first_segment(); s < end_segment(); ++s) {
      const std::uint8_t added = rows_.added.empty() ? std::uint8_t{0} : rows_.added[s];
      const std::int64_t length = rows_.lengths[s];
      const std::int64_t slots = rows_.slots.empty() ? length : rows_.slots[s];
      Segment segment{end, slots, length, length - (added & 1) - (added >> 1), added};
      if (!check_segment(segment, s)) {
        result_.pieces.resize(pieces_before);
        return false;
      }
      end += slots;
      segments_.push_back(segment);
      runs_.push_back({segment.begin, segment.length, segment.slots});
    }
    const auto count = static_cast<std::int64_t>(segments_.size());
    const std::int64_t slots = end - count * rules_.unslotted;
    if (slots > rules_.row_tokens) {
      report("row", fmt::format("its segments take {} slots, a row has {}", with_commas(slots), with_commas(rules_.row_tokens)));
      result_.pieces.resize(pieces_before);
      return false;
    }
    if (end > rows_.column_slots) {
      report("row", fmt::format("its segments have {} tokens, the columns have {} places", with_commas(end),
                                with_commas(rows_.column_slots)));
      result_.pieces.resize(pieces_before);
      return false;
    }
    if (rules_.max_segments > 0 && count > rules_.max_segments) {
      report("row", fmt::format("{} segments, at most {} are allowed", count, rules_.max_segments));
    }
    if (origin_.fill && count > 0) report("row", fmt::format("a fill row has {} segments, none was expected", count));
    if (!origin_.fill && count == 0) report("row", "no segment at all");
    for (const Segment& segment : segments_) {
      result_.facts.longest_segment = std::max(result_.facts.longest_segment, segment.slots - rules_.unslotted);
      result_.facts.tokens += segment.length;
      result_.facts.added_bos += (segment.added & kAddedBos) != 0 ? 1 : 0;
      result_.facts.added_eos += (segment.added & kAddedEos) != 0 ? 1 : 0;
    }
    if (result_.facts.least_slots < 0 || slots < result_.facts.least_slots) result_.facts.least_slots = slots;
    result_.facts.segments += count;
    result_.facts.max_segments = std::max(result_.facts.max_segments, count);
    return true;
  }

  bool check_segment(const Segment& segment, std::size_t s) {
    const std::size_t ordinal = s - first_segment() + 1;  // as segment_ids.npy numbers it
    if (segment.added > (kAddedBos | kAddedEos)) {
      report("row", fmt::format("segment {}: seq_added is {}, expected 0 to 3", ordinal, segment.added));
      return false;
    }
    if (segment.length < 1 + rules_.unslotted || segment.tokens < 0) {
      report("row",
             fmt::format("segment {}: length {} with {} added tokens", ordinal, segment.length, segment.length - segment.tokens));
      return false;
    }
    const std::int64_t multiple = rules_.segment_multiple;
    const std::int64_t expected_slots = (segment.length + multiple - 1) / multiple * multiple;
    if (segment.slots != expected_slots) {
      report("row", fmt::format("segment {}: {} slots for {} tokens, expected {}", ordinal, segment.slots, segment.length,
                                expected_slots));
      return false;
    }
    if (!check_source(segment, ordinal, rows_.source.subspan(3 * s, 3))) return false;
    check_begin(s);
    return true;
  }

  bool check_source(const Segment& segment, std::size_t ordinal, std::span<const std::int64_t> source) {
    const std::int64_t file = source[0], record = source[1], first_token = source[2];
    const auto fault = [&](std::string_view what) {
      report("source", fmt::format("segment {}: source file {}, record {}, token {}: {}", ordinal, file, with_commas(record),
                                   with_commas(first_token), what));
      return false;
    };
    if (file < 0 || file >= static_cast<std::int64_t>(rules_.sources.size())) return fault("no such file");
    const ManifestSource& from = rules_.sources[static_cast<std::size_t>(file)];
    if (record < 0 || record >= from.sequences) return fault("no such record");
    if (first_token < 0 || first_token > from.tokens - segment.tokens) return fault("no such token");
    const SequenceId sequence = rules_.first_sequence[static_cast<std::size_t>(file)] + record;
    if (!origin_.sequences->contains(sequence)) return fault("the record belongs to another partition");
    if (origin_.source != nullptr && first_token > origin_.source->index().place(sequence).tokens - segment.tokens)
      return fault("the record ends before");
    result_.pieces.push_back({sequence, first_token, static_cast<Length>(segment.tokens)});
    return true;
  }

  /// Where the tokens of a segment whose source is possible lie in its data file, if that is stored.
  void check_begin(std::size_t s) {
    if (rows_.begins.empty()) return;
    const ManifestSource& from = rules_.sources[static_cast<std::size_t>(rows_.source[3 * s])];
    const std::string fault = begin_fault(rows_.begins[s], result_.pieces.back(), from, origin_.source);
    if (!fault.empty()) report("source", fmt::format("segment {}: {}", s - first_segment() + 1, fault));
  }

  void compare_with_plan() {
    if (origin_.plan == nullptr) return;
    const auto together = static_cast<std::size_t>(origin_.plan->plan().policy.keep_together);
    if (!holds_units(together)) return;
    lengths_.clear();
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      if (s % together == 0) lengths_.push_back(0);
      lengths_.back() += static_cast<Length>(segments_[s].slots - rules_.unslotted);
    }
    std::ranges::sort(lengths_, std::greater<>());
    const std::int64_t strategy = origin_.plan->find(lengths_);
    if (strategy >= 0) {
      result_.strategies.push_back(strategy);
    } else {
      report("cover", fmt::format("holds {}, which is no strategy of {}", show_lengths(lengths_), origin_.plan_file));
    }
  }

  /// Are all of the row's sequences of one group?
  void check_groups() {
    if (origin_.index == nullptr) return;
    const std::size_t first = result_.pieces.size() - segments_.size();
    for (std::size_t s = 1; s < segments_.size(); ++s) {
      if (group_of(first + s) == group_of(first)) continue;
      report("group", fmt::format("segment {} is of another group than segment 1", s + 1));
      return;
    }
  }
  std::int32_t group_of(std::size_t piece) const { return origin_.index->group(result_.pieces[piece].sequence); }

  /// Are the row's segments whole units of `together` consecutive records each?
  bool holds_units(std::size_t together) {
    if (together == 1) return true;
    const auto fault = [&](const std::string& what) {
      report("unit", fmt::format("{}; {} consecutive records are kept together", what, together));
      return false;
    };
    if (segments_.size() % together != 0) return fault(fmt::format("{} segments are no whole number of units", segments_.size()));
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      const auto source = rows_.source.subspan(3 * (first_segment() + s), 3),
                 first = rows_.source.subspan(3 * (first_segment() + s - s % together), 3);
      const auto place = static_cast<std::int64_t>(s % together);
      const bool belongs =
          source[0] == first[0] && source[1] == first[1] + place && first[1] % static_cast<std::int64_t>(together) == 0;
      if (!belongs || source[2] != 0) {
        return fault(fmt::format("segment {}: record {} from token {} on is not number {} of the unit of record {}", s + 1,
                                 with_commas(source[1]), with_commas(source[2]), place + 1, with_commas(first[1])));
      }
    }
    return true;
  }

  template <class Id>
  void check_ids(std::span<const Id> ids) {
    const std::size_t pieces_begin = result_.pieces.size() - segments_.size();
    std::int64_t end = 0;
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      const Segment& segment = segments_[s];
      const bool bos = (segment.added & kAddedBos) != 0, eos = (segment.added & kAddedEos) != 0;
      if (bos) check_added("BOS", ids[static_cast<std::size_t>(segment.begin)], rules_.bos_id, s);
      if (eos) check_added("EOS", ids[static_cast<std::size_t>(segment.begin + segment.length - 1)], rules_.eos_id, s);
      const std::span<const Id> tokens =
          ids.subspan(static_cast<std::size_t>(segment.begin + bos), static_cast<std::size_t>(segment.tokens));
      check_range(tokens, s);
      const PlacedPiece& piece = result_.pieces[pieces_begin + s];
      result_.facts.fingerprint += recounts_[0].of(piece.sequence, piece.first_token, tokens);
      check_padding(ids, segment.begin + segment.length, segment.begin + segment.slots);
      end = segment.begin + segment.slots;
    }
    check_padding(ids, end, static_cast<std::int64_t>(ids.size()));
  }

  void check_column(std::size_t number) {
    switch (rules_.columns[number].type) {
      case ValueType::u8:
        return check_column_as<std::uint8_t>(number);
      case ValueType::i32:
        return check_column_as<std::int32_t>(number);
      case ValueType::i64:
        return check_column_as<std::int64_t>(number);
      case ValueType::f32:
        return check_column_as<float>(number);
      default:
        return check_column_as<double>(number);
    }
  }

  template <class Value>
  void check_column_as(std::size_t number) {
    const Column& column = rules_.columns[number];
    const StoredColumn& stored = rows_.columns[number];
    const std::span<const Value> values(reinterpret_cast<const Value*>(stored.bytes.data()), stored.bytes.size() / sizeof(Value));
    const std::size_t first_piece = result_.pieces.size() - segments_.size();
    if (column.kind == ColumnKind::token) {
      const auto slots = static_cast<std::size_t>(rows_.column_slots);
      return check_values(number, values.subspan(static_cast<std::size_t>(row_) * slots, slots), first_piece, rows_.shard);
    }
    if (is_placed(column)) return check_placed(number, values, first_piece);
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      const PlacedPiece& piece = result_.pieces[first_piece + s];
      // It counts with the segment of the sequence's first token; one of an added BOS alone may come before.
      if ((piece.first_token != 0 || piece.tokens == 0) && !rules_.single_segments) continue;
      const std::size_t segment = first_segment() + s;
      std::size_t begin = segment, count = 1;
      if (column.kind != ColumnKind::sequence) {
        begin = static_cast<std::size_t>(stored.offsets[segment] - stored.offsets.front());
        count = static_cast<std::size_t>(stored.offsets[segment + 1] - stored.offsets[segment]);
      }
      const std::span<const Value> own = values.subspan(begin, count);
      const FingerprintRecount& recount = recounts_[number + 1];
      result_.facts.fingerprint += column.kind == ColumnKind::text
                                       ? recount.of_text(piece.sequence, {reinterpret_cast<const char*>(own.data()), own.size()})
                                       : recount.of(piece.sequence, 0, own);
    }
  }

  /// A column whose values belong to tokens.
  template <class Value>
  void check_placed(std::size_t number, std::span<const Value> values, std::size_t first_piece) {
    const std::span<const std::int64_t> offsets = rows_.columns[number].offsets;
    const FingerprintRecount& recount = recounts_[number + 1];
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      const PlacedPiece& piece = result_.pieces[first_piece + s];
      const std::size_t segment = first_segment() + s;
      const std::int64_t token_0 = segments_[s].begin + ((segments_[s].added & kAddedBos) != 0 ? 1 : 0) - piece.first_token;
      if (const std::string fault = placed_.read(number, segment, s + 1, token_0, piece); !fault.empty()) {
        report("column", fault);
        continue;
      }
      const std::span<const std::int64_t> places = placed_.places();
      const auto own = values.subspan(static_cast<std::size_t>(offsets[segment] - offsets.front()), places.size());
      const bool are_places = holds_places(rules_.columns[number]);
      result_.facts.fingerprint +=
          are_places ? recount.of_placed(piece.sequence, places, places) : recount.of_placed(piece.sequence, places, own);
      if (rules_.columns[number].name == rules_.loss_column) {  // weights, of which 0 counts for nothing; else the places
        result_.facts.loss_tokens +=
            are_places ? std::ssize(places) : std::ranges::count_if(own, [](Value weight) { return weight != Value{0}; });
      }
    }
  }

  /// A column with a value for every slot of the row. \param file  that has it
  template <class Value>
  void check_values(std::size_t number, std::span<const Value> values, std::size_t first_piece, std::string_view file) {
    const Column& column = rules_.columns[number];
    const auto fill = static_cast<Value>(fill_value(column));
    const auto check_filled = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t slot = begin; slot < end; ++slot) {
        const Value found = values[static_cast<std::size_t>(slot)];
        if (found == fill) continue;
        report("column", file,
               fmt::format("{}: slot {} is {}, expected {} where no source token is", column.name, slot, found, fill));
        return;
      }
    };
    std::int64_t end = 0;
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      const Segment& segment = segments_[s];
      const std::int64_t first = segment.begin + ((segment.added & kAddedBos) != 0 ? 1 : 0);
      check_filled(segment.begin, first);
      const auto own = values.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(segment.tokens));
      const PlacedPiece& piece = result_.pieces[first_piece + s];
      result_.facts.fingerprint += recounts_[number + 1].of(piece.sequence, piece.first_token, own);
      if (column.name == rules_.loss_column) {
        for (const Value value : own) result_.facts.loss_tokens += value != fill ? 1 : 0;
      }
      end = segment.begin + segment.slots;
      check_filled(first + segment.tokens, end);
    }
    check_filled(end, static_cast<std::int64_t>(values.size()));
  }

  void check_added(std::string_view which, std::int64_t found, const std::optional<std::int64_t>& expected, std::size_t s) {
    if (!expected) {
      report("ids", rows_.slots_file, fmt::format("segment {}: an added {}, and the manifest has no id for it", s + 1, which));
    } else if (found != *expected) {
      report("ids", rows_.slots_file, fmt::format("segment {}: the added {} is {}, expected {}", s + 1, which, found, *expected));
    }
  }

  template <class Id>
  void check_range(std::span<const Id> tokens, std::size_t s) {
    if (tokens.empty()) return;
    Id low = tokens.front(), high = low;
    for (const Id token : tokens) {
      low = std::min(low, token);
      high = std::max(high, token);
    }
    result_.facts.add_ids(low, high);
    if (low < rules_.id_min || high > rules_.id_max) {
      report("ids", rows_.slots_file,
             fmt::format("segment {}: ids {} to {}, the sources have {} to {}", s + 1, low, high, rules_.id_min, rules_.id_max));
    }
  }

  template <class Id>
  void check_padding(std::span<const Id> ids, std::int64_t begin, std::int64_t end) {
    const auto padding = ids.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    if (is_ramp(padding, static_cast<std::uint32_t>(rules_.pad_id), 0)) return;
    std::size_t at = 0;
    while (padding[at] == static_cast<Id>(rules_.pad_id)) ++at;
    report("ids", rows_.slots_file,
           fmt::format("slot {}: padding is {}, expected {}", begin + static_cast<std::int64_t>(at), padding[at], rules_.pad_id));
  }

  /// Segment ids (first 1, the next segment one more) and position ids (each segment from `first` on, one more each slot).
  void check_derived(std::string_view name, const StoredIds& stored, std::int64_t first, std::uint32_t step) {
    if (stored.bytes.empty()) return;
    if (stored.type == IdType::u16) {
      check_derived_row(name, row_of<std::uint16_t>(stored, row_, rules_.row_tokens), first, step);
    } else {
      check_derived_row(name, row_of<std::uint32_t>(stored, row_, rules_.row_tokens), first, step);
    }
  }

  template <class T>
  void check_derived_row(std::string_view name, std::span<const T> values, std::int64_t first, std::uint32_t step) {
    const auto part_is = [&](std::int64_t begin, std::int64_t end, std::int64_t value, std::uint32_t by) {
      const auto part = values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
      // The last value must be one that T holds: is_ramp() wraps.
      const std::int64_t last = value + std::int64_t{by} * std::max<std::int64_t>(end - begin - 1, 0);
      if (last == static_cast<T>(last) && is_ramp(part, static_cast<std::uint32_t>(value), by)) return true;
      std::size_t at = 0;
      while (at + 1 < part.size() && part[at] == value + std::int64_t{by} * static_cast<std::int64_t>(at)) ++at;
      report("ids", fmt::format("{}: slot {} is {}, expected {}", name, begin + static_cast<std::int64_t>(at), part[at],
                                value + std::int64_t{by} * static_cast<std::int64_t>(at)));
      return false;
    };
    std::int64_t end = 0;
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      const Segment& segment = segments_[s];
      const std::int64_t value = step == 0 ? first + static_cast<std::int64_t>(s) : first;
      end = segment.begin + segment.slots;
      if (!part_is(segment.begin, segment.begin + segment.length, value, step)) return;
      if (!part_is(segment.begin + segment.length, end, 0, 0)) return;
    }
    part_is(end, rules_.row_tokens, 0, 0);
  }

  /// Of all that a row is: its ids and its segments.
  std::uint64_t digest() const {
    std::string bytes;
    const auto append = [&](std::span<const std::byte> values, std::size_t begin, std::size_t end, int value_bytes) {
      const auto width = static_cast<std::size_t>(value_bytes);
      bytes.append(reinterpret_cast<const char*>(values.data()) + begin * width, (end - begin) * width);
    };
    const auto row = static_cast<std::size_t>(row_);
    if (rules_.holds_tokens && !trainer_) {
      const auto slots = static_cast<std::size_t>(rules_.row_tokens);
      append(rows_.ids.bytes, row * slots, (row + 1) * slots, info(rows_.ids.type).bytes);
    }
    for (std::size_t c = 0; c < rows_.trainer.size(); ++c) {
      const ListValues& list = rows_.trainer[c];
      append(list.values, static_cast<std::size_t>(list.begin[row]), static_cast<std::size_t>(list.begin[row + 1]),
             info(rules_.output->columns[c].type).bytes);
    }
    if (!rows_.first_labels.empty())
      append(rows_.first_labels, first_segment(), end_segment(),
             info(rules_.columns[static_cast<std::size_t>(rules_.output->label_column)].type).bytes);
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      const auto source = rows_.source.subspan(3 * (first_segment() + s), 3);
      bytes += fmt::format("{},{},{},{},{};", segments_[s].length, segments_[s].added, source[0], source[1], source[2]);
    }
    for (std::size_t c = 0; c < rules_.columns.size(); ++c) {
      const Column& column = rules_.columns[c];
      if (trainer_ && static_cast<int>(c) == rules_.output->label_column) continue;
      std::size_t begin = first_segment(), end = end_segment();
      if (column.kind == ColumnKind::token) {
        begin = row * static_cast<std::size_t>(rows_.column_slots);
        end = begin + static_cast<std::size_t>(rows_.column_slots);
      } else if (column.kind != ColumnKind::sequence) {
        const std::span<const std::int64_t> offsets = rows_.columns[c].offsets;
        begin = static_cast<std::size_t>(offsets[begin] - offsets.front());
        end = static_cast<std::size_t>(offsets[end] - offsets.front());
      }
      append(rows_.columns[c].bytes, begin, end, info(column.type).bytes);
    }
    return hash64(bytes);
  }

  const StoredRows& rows_;
  const RowRules& rules_;
  const RowsOrigin& origin_;
  const std::span<const FingerprintRecount> recounts_;  // of the ids, and of each column
  std::int64_t row_ = 0;                                // in the block
  std::vector<Segment> segments_;                       // of that row
  std::vector<SlotRun> runs_;                           // the same, as a trainer's row has them
  std::vector<Length> lengths_;
  std::optional<TrainerRowCheck> trainer_;
  PlacedColumns placed_;
  CheckedRows result_;
};

}  // namespace

void RowFacts::add_ids(std::int64_t low, std::int64_t high) {
  id_min = id_max < 0 ? low : std::min(id_min, low);
  id_max = std::max(id_max, high);
}

RowFacts& RowFacts::operator+=(const RowFacts& other) {
  rows += other.rows;
  segments += other.segments;
  tokens += other.tokens;
  loss_tokens += other.loss_tokens;
  hidden_labels += other.hidden_labels;
  added_eos += other.added_eos;
  added_bos += other.added_bos;
  max_segments = std::max(max_segments, other.max_segments);
  longest_segment = std::max(longest_segment, other.longest_segment);
  if (other.least_slots >= 0) least_slots = least_slots < 0 ? other.least_slots : std::min(least_slots, other.least_slots);
  if (other.id_max >= 0) add_ids(other.id_min, other.id_max);
  fingerprint += other.fingerprint;
  return *this;
}

CheckedRows check_stored_rows(const StoredRows& rows, const RowRules& rules, const RowsOrigin& origin,
                              std::span<const FingerprintRecount> recounts) {
  return RowCheck(rows, rules, origin, recounts).run();
}

}  // namespace shardpack
