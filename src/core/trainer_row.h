// One row of a trainer's files read back: its columns as whole numbers, and the way from the labels that they state to the column
// of the sources that these were made of. Shares no code with core/trainer_rows.h, which goes the other way.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/trainer_rows.h"
#include "shardpack/column.h"
#include "shardpack/presets.h"

namespace shardpack {

/// A segment in the slots of its row: `length` tokens from `begin` on.
struct SlotRun {
  std::int64_t begin = 0, length = 0, slots = 0;
};

/// Does the column have a value for each segment, and not for each slot?
constexpr bool is_per_segment(OutputSource source) { return source >= OutputSource::seq_lengths && !is_fixed_width(source); }

/// Is the first label of every segment in no output column?
constexpr bool drops_first_label(LabelRule rule) { return rule == LabelRule::first_hidden || rule == LabelRule::shifted; }

/// Is the column a mask, whose tokens are their own labels?
inline bool is_label_mask(const Column& column) { return column.name != "labels"; }

/// The label of a slot where nothing is learned.
inline constexpr std::int64_t kNoLabel = -100;

class TrainerRow {
 public:
  explicit TrainerRow(const OutputRules& rules);

  /// \param columns  of a block, as in `rules`
  void take(std::span<const ListValues> columns, std::int64_t row);

  std::span<const std::int64_t> column(std::size_t c) const { return values_[c]; }
  /// The first column of that source, which the preset must have for ids.
  std::span<const std::int64_t> of(OutputSource source) const;
  std::span<const std::int64_t> ids() const { return of(OutputSource::ids); }

  /// How many values each column has in a row of these segments: a slot each, as many as there are segments, or always so many.
  std::int64_t expected_values(OutputSource source, std::span<const SlotRun> segments) const;

  /// Does the preset have labels in any form?
  bool states_labels() const;

  /// Slot by slot what is to be learned there, kNoLabel for nothing and outside of the segments of a mask. Every column has its
  /// expected_values().
  void stated_labels(std::span<const SlotRun> segments, std::vector<std::int64_t>& out) const;

  /// Slot by slot what the sources' label column had, fill_value() outside of the segments.
  /// \param first_values  what it had at each segment's first token, where OutputRules::keeps_first_values
  void source_labels(const Column& column, std::span<const SlotRun> segments, std::span<const std::int64_t> stated,
                     std::span<const std::int64_t> first_values, std::vector<std::int64_t>& out) const;

 private:
  int find(OutputSource source) const;

  const OutputRules& rules_;
  std::vector<std::vector<std::int64_t>> values_;
};

/// Stored whole numbers of any type. \throws Error{internal} for a type of fractions
void widen_values(ValueType type, std::span<const std::byte> bytes, std::vector<std::int64_t>& out);

}  // namespace shardpack
