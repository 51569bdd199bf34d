#include "core/trainer_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>

#include "base/checked.h"
#include "base/units.h"
#include "core/column_values.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int32_t kNoLoss = -100;

bool is_of_labels(OutputSource source) {
  return source == OutputSource::labels || source == OutputSource::loss_mask || source == OutputSource::targets ||
         source == OutputSource::target_ids;
}

bool is_mask(const Column& column) { return column.name != "labels"; }

[[noreturn]] void refuse_column(const Preset& preset, const Column& column, const std::string& why) {
  throw Error(ErrorCode::usage,
              fmt::format("--for {}: {}: {}; leave it out with --columns (none, or the names of the others), or "
                          "choose another preset",
                          preset.name, column.name, why));
}

}  // namespace

Container chosen_container(const Preset& preset, std::optional<Container> wanted) {
  if (!wanted) return preset.containers.front();
  std::string list;
  for (const Container container : preset.containers) {
    if (container == *wanted) return container;
    list.append(list.empty() ? "" : " or ").append(info(container).name);
  }
  throw Error(ErrorCode::usage, fmt::format("--as {}: --for {} is written as {}", info(*wanted).name, preset.name, list));
}

namespace {

/// The dataset's column that `output` shows; -1 for none. \throws Error{usage} for one that it cannot show, or needs
int input_of(const Preset& preset, const OutputColumn& output, std::span<const Column> columns) {
  for (const std::string_view name : output.from) {
    const auto found = std::find_if(columns.begin(), columns.end(), [&](const Column& column) { return column.name == name; });
    if (found == columns.end()) continue;
    if (found->type == ValueType::f32 || found->type == ValueType::f64) {
      // Weights may be fractions that are whole.
      if (output.source != OutputSource::entry_segments) refuse_column(preset, *found, "this preset has no place for fractions");
    }
    const bool per_token = output.source == OutputSource::token_values,
               per_sequence = output.source == OutputSource::segment_values;
    if (per_token && found->kind != ColumnKind::token) refuse_column(preset, *found, "a value for each token is expected");
    if (per_sequence && found->kind != ColumnKind::sequence)
      refuse_column(preset, *found, "a number for each sequence is expected");
    if (!per_token && !per_sequence && found->places != preset.positions_column) {
      refuse_column(preset, *found, fmt::format("a list is expected whose values go with {}", preset.positions_column));
    }
    return static_cast<int>(found - columns.begin());
  }
  if (output.needed) {
    throw Error(ErrorCode::usage,
                fmt::format("--for {}: the sources have no column {}, a list that goes with {}, or --columns leaves it out",
                            preset.name, output.from.front(), preset.positions_column));
  }
  return -1;
}

}  // namespace

OutputRules output_rules(const Preset& preset, Container container, std::span<const Column> columns, IdType id_type) {
  OutputRules rules;
  rules.preset = &preset;
  rules.container = container;
  const bool holds_labels = std::any_of(preset.columns.begin(), preset.columns.end(),
                                        [](const OutputColumn& column) { return is_of_labels(column.source); });
  if (is_native(preset)) {
    if (rules.holds_tokens()) rules.columns.assign(preset.columns.begin(), preset.columns.end());
    return rules;
  }
  rules.label_column = loss_column(columns);
  if (rules.label_column >= 0 && !is_loss_column(columns[static_cast<std::size_t>(rules.label_column)])) rules.label_column = -1;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (!is_loss_column(columns[c])) continue;
    if (!holds_labels) refuse_column(preset, columns[c], "this preset has no labels and no mask");
    if (static_cast<int>(c) != rules.label_column) {
      const std::string& other = columns[static_cast<std::size_t>(rules.label_column)].name;
      refuse_column(preset, columns[c],
                    fmt::format("this preset has room for one column of labels or a mask, and {} is there", other));
    }
    if (columns[c].type == ValueType::f32 || columns[c].type == ValueType::f64)
      refuse_column(preset, columns[c], "this preset has no place for fractions");
  }
  if (rules.label_column >= 0) {
    const bool drops_first = preset.labels == LabelRule::first_hidden || preset.labels == LabelRule::shifted;
    rules.keeps_first_values =
        drops_first && columns[static_cast<std::size_t>(rules.label_column)].alignment != Alignment::target_shifted;
  }
  for (const OutputColumn& column : preset.columns) {
    if (column.if_labels && rules.label_column < 0) continue;
    const int input = input_of(preset, column, columns);
    if (input < 0 && !column.from.empty() && column.source != OutputSource::entry_segments) continue;
    if (column.source == OutputSource::entry_values && holds_places(columns[static_cast<std::size_t>(input)]))
      rules.places_column = input;
    rules.columns.push_back(column);
    rules.inputs.push_back(input);
    if (container == Container::megatron) rules.columns.back().type = id_type == IdType::u16 ? ValueType::u16 : ValueType::i32;
  }
  return rules;
}

namespace {

/// Fills `out` (elements of type Out) with values[i] for each i. Written so that the compiler makes vectors of it.
template <class Out, class In>
void widen(const In* values, std::int64_t count, Out* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<Out>(values[i]);
}

/// visit(zero of the type) for the types that output columns have.
template <class Visit>
void visit_output(ValueType type, Visit visit) {
  switch (type) {
    case ValueType::i8:
      return visit(std::int8_t{});
    case ValueType::u16:
      return visit(std::uint16_t{});
    case ValueType::i32:
      return visit(std::int32_t{});
    case ValueType::i64:
      return visit(std::int64_t{});
    default:
      ensure(false, "a type that output columns have");
  }
}

class Conversion {
 public:
  Conversion(RowBlock& block, const OutputRules& rules, std::span<const Column> columns, const SequenceIndex& index)
      : block_(block), rules_(rules), columns_(columns), index_(index) {}

  TrainerRows run() {
    lay_out();
    if (rules_.places_column >= 0) find_entries();
    if (rules_.refuses_inner_eos) refuse_inner_eos();
    const bool labelled = std::any_of(rules_.columns.begin(), rules_.columns.end(),
                                      [](const OutputColumn& column) { return is_of_labels(column.source); });
    if (labelled) make_labels();
    TrainerRows result;
    result.rows = block_.rows;
    result.columns.resize(rules_.columns.size());
    for (std::size_t c = 0; c < rules_.columns.size(); ++c) {
      if (rules_.columns[c].source != OutputSource::ids) result.columns[c] = convert(c);
    }
    for (std::size_t c = 0; c < rules_.columns.size(); ++c) {  // last, for the block's ids may be taken
      if (rules_.columns[c].source == OutputSource::ids) result.columns[c] = convert_ids(rules_.columns[c]);
    }
    result.hidden_labels = hidden_labels_;
    if (rules_.keeps_first_values) result.first_values = first_values();
    return result;
  }

 private:
  struct Segment {
    std::int64_t from;    // its first slot in the block
    std::int64_t to;      // its first token in the output
    std::int64_t length;  // tokens
    std::int64_t slots;
    std::int64_t number;  // in its row, from 1
  };

  /// Where each row and segment lies in the block and in the output.
  void lay_out() {
    segments_.reserve(block_.segments.size());
    row_begin_.push_back(0);
    for (std::int64_t row = 0; row < block_.rows; ++row) {
      std::int64_t from = row * block_.row_tokens, to = row_begin_.back();
      const std::int64_t first = block_.row_begin[static_cast<std::size_t>(row)],
                         last = block_.row_begin[static_cast<std::size_t>(row) + 1];
      for (std::int64_t s = first; s < last; ++s) {
        const RowSegment& segment = block_.segments[static_cast<std::size_t>(s)];
        segments_.push_back({from, to, segment.length(), segment.slots, s - first + 1});
        from += segment.slots;
        to += segment.slots;
      }
      ensure(to - row_begin_.back() - (last - first) * unslotted_tokens(rules_.preset->slot_rule) <= rules_.row_tokens,
             "a row's segments take no more slots than it has");
      if (!rules_.preset->ragged) to = row_begin_.back() + rules_.row_tokens;
      row_begin_.push_back(static_cast<std::int32_t>(to));
    }
  }

  std::int64_t values() const { return row_begin_.back(); }

  template <class T>
  static std::span<T> as(ByteBuffer& bytes) {
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  template <class T>
  ByteBuffer room() const {
    return ByteBuffer(static_cast<std::size_t>(values()) * sizeof(T));
  }

  /// visit(pointer to the block's ids)
  template <class Visit>
  void with_ids(Visit visit) const {
    if (block_.id_type == IdType::u16) {
      visit(reinterpret_cast<const std::uint16_t*>(block_.ids.data()));
    } else {
      visit(reinterpret_cast<const std::uint32_t*>(block_.ids.data()));
    }
  }

  /// Calls copy(slot in the block, place in the output, count) for every run of the block that is in the output.
  template <class Copy>
  void each_run(Copy copy) const {
    if (block_.row_tokens == rules_.row_tokens && !rules_.preset->ragged) return copy(std::int64_t{0}, std::int64_t{0}, values());
    for (std::int64_t row = 0; row < block_.rows; ++row) {
      const std::int64_t to = row_begin_[static_cast<std::size_t>(row)];
      copy(row * block_.row_tokens, to, row_begin_[static_cast<std::size_t>(row) + 1] - to);
    }
  }

  ListValues convert_ids(const OutputColumn& column) {
    if (const auto bytes = static_cast<std::size_t>(info(column.type).bytes);
        info(block_.id_type).bytes == info(column.type).bytes) {
      std::byte* const ids = block_.ids.data();  // moved together where they lie: a row begins no later than it did
      each_run([&](std::int64_t from, std::int64_t to, std::int64_t count) {
        if (to != from) std::memmove(ids + to * bytes, ids + from * bytes, count * bytes);
      });
      block_.ids.resize(static_cast<std::size_t>(values()) * bytes);
      return {row_begin_, std::move(block_.ids)};
    }
    ListValues list{row_begin_, {}};
    visit_output(column.type, [&](auto zero) {
      using Out = decltype(zero);
      list.values = room<Out>();
      Out* const out = as<Out>(list.values).data();
      with_ids([&](const auto* ids) {
        each_run([&](std::int64_t from, std::int64_t to, std::int64_t count) { widen(ids + from, count, out + to); });
      });
    });
    return list;
  }

  ListValues convert(std::size_t c) {
    const OutputColumn& column = rules_.columns[c];
    ListValues list{row_begin_, {}};
    visit_output(column.type, [&](auto zero) {
      using Out = decltype(zero);
      if (is_fixed_width(column.source)) {
        list = fixed_width<Out>(column, rules_.inputs[c]);
        return;
      }
      if (column.source == OutputSource::token_values) {
        list.values = room<Out>();
        show_tokens(rules_.inputs[c], as<Out>(list.values));
        return;
      }
      if (column.source >= OutputSource::seq_lengths) {
        list = per_segment<Out>(column.source);
        return;
      }
      list.values = room<Out>();
      fill(column.source, as<Out>(list.values));
    });
    return list;
  }

  template <class Out>
  void fill(OutputSource source, std::span<Out> out) const {
    if (source == OutputSource::labels) return widen(labels_.data(), values(), out.data());
    if (source == OutputSource::loss_mask) {
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<Out>(labels_[i] != kNoLoss ? 1 : 0);
      return;
    }
    if (source == OutputSource::targets) {
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<Out>(labels_[i] != kNoLoss ? labels_[i] : 0);
      return;
    }
    // Trainers that find segments by the lowest position take each empty slot for one of its own; a lower number there would hide
    // the rest.
    std::fill(out.begin(), out.end(), static_cast<Out>(source == OutputSource::position_ids ? rules_.position_start : 0));
    for (const Segment& segment : segments_) {
      Out* const own = out.data() + segment.to;
      if (source == OutputSource::position_ids) {
        std::iota(own, own + segment.length, static_cast<Out>(rules_.position_start));
      } else {
        std::fill_n(own, segment.length, static_cast<Out>(segment.number));
      }
    }
    if (source != OutputSource::target_ids) return;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (labels_[i] == kNoLoss) out[i] = 0;
    }
  }

  template <class Out>
  ListValues per_segment(OutputSource source) const {
    ListValues list;
    list.begin.push_back(0);
    std::vector<Out> numbers;
    for (std::int64_t row = 0; row < block_.rows; ++row) {
      std::int64_t at = 0;
      const auto first = static_cast<std::size_t>(block_.row_begin[static_cast<std::size_t>(row)]);
      const auto last = static_cast<std::size_t>(block_.row_begin[static_cast<std::size_t>(row) + 1]);
      for (std::size_t s = first; s < last; ++s) {
        const std::int64_t number = source == OutputSource::seq_starts ? at
                                    : source == OutputSource::seq_ends ? segments_[s].slots
                                                                       : segments_[s].length;
        numbers.push_back(static_cast<Out>(number));
        at += segments_[s].slots;
      }
      if (source == OutputSource::seq_ends && at < rules_.row_tokens) numbers.push_back(static_cast<Out>(rules_.row_tokens - at));
      list.begin.push_back(static_cast<std::int32_t>(numbers.size()));
    }
    const std::span<const std::byte> bytes = std::as_bytes(std::span(numbers));
    list.values.assign(bytes.begin(), bytes.end());
    return list;
  }

  // ---- columns of the sources -----------------------------------------------------------------------------------------------

  /// The dataset's values of a column as whole numbers of type Out. \throws Error{usage} for one that does not fit
  template <class Out>
  std::vector<Out> numbers_of(int input) const {
    const Column& column = columns_[static_cast<std::size_t>(input)];
    const ByteBuffer& bytes = block_.columns[static_cast<std::size_t>(input)].bytes;
    std::vector<Out> numbers;
    visit_values(column.type, bytes.data(), static_cast<std::int64_t>(bytes.size()) / info(column.type).bytes, [&](auto values) {
      numbers.reserve(values.size());
      for (const auto value : values) {
        numbers.push_back(static_cast<Out>(value));
        if (static_cast<std::remove_cvref_t<decltype(value)>>(numbers.back()) != value) {
          throw Error(ErrorCode::usage,
                      fmt::format("--for {}: {} holds {}, which takes more than the {} bits that there are for it",
                                  rules_.preset->name, column.name, value, 8 * sizeof(Out)));
        }
      }
    });
    return numbers;
  }

  template <class Out>
  void show_tokens(int input, std::span<Out> out) const {
    const std::vector<Out> numbers = numbers_of<Out>(input);
    std::fill(out.begin(), out.end(), Out{0});
    for (const Segment& segment : segments_) std::copy_n(numbers.data() + segment.from, segment.length, out.data() + segment.to);
  }

  /// Which values of the lists are in the rows: all but those of weight 0, which only fill the sources' lists up.
  void find_entries() {
    const ColumnValues& places = block_.columns[static_cast<std::size_t>(rules_.places_column)];
    const std::vector<std::uint8_t> weights = entry_weights(places.begin.back() - places.begin.front());
    entry_begin_.push_back(0);
    for (std::int64_t row = 0; row < block_.rows; ++row) {
      const std::int64_t first = block_.row_begin[static_cast<std::size_t>(row)],
                         last = block_.row_begin[static_cast<std::size_t>(row) + 1];
      for (std::int64_t s = first; s < last; ++s) {
        const std::int64_t begin = places.begin[static_cast<std::size_t>(s)] - places.begin.front(),
                           end = places.begin[static_cast<std::size_t>(s) + 1] - places.begin.front();
        for (std::int64_t i = begin; i < end; ++i) {
          if (weights.empty() || weights[static_cast<std::size_t>(i)] != 0)
            entries_.push_back({i, segments_[static_cast<std::size_t>(s)].number});
        }
      }
      ensure(std::ssize(entries_) - entry_begin_.back() <= rules_.entry_width, "rows are as wide as the widest");
      entry_begin_.push_back(std::ssize(entries_));
    }
  }

  /// 0 or 1 for each; nothing where the sources have no weights.
  std::vector<std::uint8_t> entry_weights(std::int64_t count) const {
    for (std::size_t c = 0; c < rules_.columns.size(); ++c) {
      if (rules_.columns[c].source != OutputSource::entry_segments || rules_.inputs[c] < 0) continue;
      const Column& column = columns_[static_cast<std::size_t>(rules_.inputs[c])];
      std::vector<std::uint8_t> weights;
      visit_values(column.type, block_.columns[static_cast<std::size_t>(rules_.inputs[c])].bytes.data(), count, [&](auto values) {
        for (const auto value : values) {
          if (value != 0 && value != 1) {
            throw Error(ErrorCode::usage,
                        fmt::format("--for {}: {} is {}, and there is room for 0 and 1 alone; leave it out with "
                                    "--columns, or choose another preset",
                                    rules_.preset->name, column.name, value));
          }
          weights.push_back(value != 0 ? 1 : 0);
        }
      });
      return weights;
    }
    return {};
  }

  template <class Out>
  ListValues fixed_width(const OutputColumn& column, int input) const {
    const std::int64_t width = rules_.width(column.source);
    ListValues list;
    for (std::int64_t row = 0; row <= block_.rows; ++row) list.begin.push_back(static_cast<std::int32_t>(row * width));
    list.values.resize(static_cast<std::size_t>(block_.rows * width) * sizeof(Out));
    const std::span<Out> out = as<Out>(list.values);
    std::fill(out.begin(), out.end(), Out{0});
    const std::vector<Out> numbers =
        input >= 0 && column.source != OutputSource::entry_segments ? numbers_of<Out>(input) : std::vector<Out>();
    for (std::int64_t row = 0; row < block_.rows; ++row) {
      Out* const own = out.data() + row * width;
      if (is_per_entry(column.source)) {
        const std::int64_t first = entry_begin_[static_cast<std::size_t>(row)];
        for (std::int64_t i = first; i < entry_begin_[static_cast<std::size_t>(row) + 1]; ++i) {
          const Entry& entry = entries_[static_cast<std::size_t>(i)];
          own[i - first] = numbers.empty() ? static_cast<Out>(entry.segment) : numbers[static_cast<std::size_t>(entry.value)];
        }
        continue;
      }
      const std::int64_t first = block_.row_begin[static_cast<std::size_t>(row)];
      ensure(block_.row_begin[static_cast<std::size_t>(row) + 1] - first <= width,
             "a row has no more segments than there is room for");
      for (std::int64_t s = first; s < block_.row_begin[static_cast<std::size_t>(row) + 1]; ++s) {
        const Segment& segment = segments_[static_cast<std::size_t>(s)];
        own[s - first] = column.source == OutputSource::segment_starts
                             ? static_cast<Out>(segment.to - row_begin_[static_cast<std::size_t>(row)])
                         : column.source == OutputSource::segment_values ? numbers[static_cast<std::size_t>(s)]
                                                                         : static_cast<Out>(segment.number);
      }
    }
    return list;
  }

  // ---- labels ---------------------------------------------------------------------------------------------------------------

  [[noreturn]] void fail(ErrorCode code, const Segment& segment, std::int64_t token, const std::string& message) const {
    const RowSegment& of = block_.segments[static_cast<std::size_t>(&segment - segments_.data())];
    const std::int64_t of_record = of.first_token + token - (of.added & kAddedBos);
    throw Error(code, message, index_.files()[static_cast<std::size_t>(of.file)].name,
                fmt::format("record {}, token {}", with_commas(of.record), with_commas(of_record)));
  }

  [[noreturn]] void refuse(const Segment& segment, std::int64_t token, const std::string& message) const {
    fail(ErrorCode::usage, segment, token,
         fmt::format("--for {}: {}; give --columns none, or choose another preset", rules_.preset->name, message));
  }

  /// Labels of every output value by the preset's rule.
  void make_labels() {
    labels_.resize(static_cast<std::size_t>(values()), kNoLoss);
    with_ids([&](const auto* ids) {
      if (rules_.label_column < 0) {
        for (const Segment& segment : segments_) widen(ids + segment.from, segment.length, labels_.data() + segment.to);
        return;
      }
      const Column& column = columns_[static_cast<std::size_t>(rules_.label_column)];
      const ByteBuffer& bytes = block_.columns[static_cast<std::size_t>(rules_.label_column)].bytes;
      visit_values(column.type, bytes.data(), block_.rows * block_.row_tokens, [&](auto given) {
        for (const Segment& segment : segments_) take_labels(column, segment, given.data() + segment.from, ids + segment.from);
      });
    });
    for (const Segment& segment : segments_) apply_rule(segment);
  }

  /// A segment's labels, each at its own token.
  template <class Value, class Id>
  void take_labels(const Column& column, const Segment& segment, const Value* given, const Id* ids) {
    std::int32_t* const out = labels_.data() + segment.to;
    const bool shifted = column.alignment == Alignment::target_shifted;
    const auto no_loss = static_cast<Value>(fill_value(column));
    if (shifted && given[segment.length - 1] != no_loss)
      refuse(segment, segment.length - 1, fmt::format("{} has a target behind the last token, which has no place", column.name));
    for (std::int64_t i = shifted ? 1 : 0; i < segment.length; ++i) {
      const Value value = given[shifted ? i - 1 : i];
      if (is_mask(column)) {
        if (value != 0 && value != 1)
          refuse(segment, i, fmt::format("{} is {}, and there is room for 0 and 1 alone", column.name, value));
        if (value != 0) out[i] = static_cast<std::int32_t>(ids[i]);
        continue;
      }
      if constexpr (std::is_same_v<Value, std::int64_t>) {
        if (value != static_cast<std::int32_t>(value))
          refuse(segment, i, fmt::format("the label {} takes more than 32 bits", value));
      }
      out[i] = static_cast<std::int32_t>(value);
    }
    if (is_mask(column) || !mask_alone()) return;
    for (std::int64_t i = 0; i < segment.length; ++i) {
      if (out[i] != kNoLoss && static_cast<std::uint32_t>(out[i]) != static_cast<std::uint32_t>(ids[i]))
        refuse(segment, i,
               fmt::format("the label {} differs from the token id {}, and there is room for a mask alone", out[i], ids[i]));
    }
  }

  /// Of labels the preset has the mask and no more.
  bool mask_alone() const {
    return std::none_of(rules_.columns.begin(), rules_.columns.end(), [](const OutputColumn& column) {
      return column.source == OutputSource::labels || column.source == OutputSource::targets;
    });
  }

  void apply_rule(const Segment& segment) {
    std::int32_t* const own = labels_.data() + segment.to;
    const bool drops_first = rules_.preset->labels == LabelRule::first_hidden || rules_.preset->labels == LabelRule::shifted;
    if (!drops_first) return;
    if (own[0] != kNoLoss) ++hidden_labels_;
    if (rules_.preset->labels == LabelRule::shifted) {
      std::memmove(own, own + 1, static_cast<std::size_t>(segment.length - 1) * sizeof(*own));
      own[segment.length - 1] = kNoLoss;
    } else {
      own[0] = kNoLoss;
    }
  }

  ByteBuffer first_values() const {
    const Column& column = columns_[static_cast<std::size_t>(rules_.label_column)];
    const auto width = static_cast<std::size_t>(info(column.type).bytes);
    const ByteBuffer& bytes = block_.columns[static_cast<std::size_t>(rules_.label_column)].bytes;
    ByteBuffer first(segments_.size() * width);
    for (std::size_t s = 0; s < segments_.size(); ++s)
      std::memcpy(first.data() + s * width, bytes.data() + static_cast<std::size_t>(segments_[s].from) * width, width);
    return first;
  }

  // ---- boundaries -----------------------------------------------------------------------------------------------------------

  void refuse_inner_eos() const {
    with_ids([&](const auto* ids) {
      for (const Segment& segment : segments_) {
        const auto* const own = ids + segment.from;
        const auto* const end = own + segment.length - 1;
        const auto* const found = std::find(own, end, static_cast<std::remove_cvref_t<decltype(*own)>>(rules_.eos_id));
        if (found == end) continue;
        fail(ErrorCode::bad_data, segment, found - own,
             fmt::format(
                 "the EOS id {} inside of a sequence, where --for {} has it tell sequences apart; --allow-inner-eos lets it "
                 "cut the sequence in two for the trainer",
                 rules_.eos_id, rules_.preset->name));
      }
    });
  }

  RowBlock& block_;
  const OutputRules& rules_;
  const std::span<const Column> columns_;
  const SequenceIndex& index_;
  std::vector<Segment> segments_;
  std::vector<std::int32_t> row_begin_;  // of the output, in values
  std::vector<std::int32_t> labels_;     // of every output value
  struct Entry {
    std::int64_t value;    // its number in the block's lists
    std::int64_t segment;  // of its row, from 1
  };
  std::vector<Entry> entries_;             // of all rows
  std::vector<std::int64_t> entry_begin_;  // of each row
  std::int64_t hidden_labels_ = 0;
};

}  // namespace

TrainerRows trainer_rows(RowBlock& block, const OutputRules& rules, std::span<const Column> columns, const SequenceIndex& index) {
  return Conversion(block, rules, columns, index).run();
}

}  // namespace shardpack
