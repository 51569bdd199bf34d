#include "core/trainer_row.h"

#include <algorithm>
#include <type_traits>

#include "base/checked.h"
#include "core/column_values.h"

namespace shardpack {

void widen_values(ValueType type, std::span<const std::byte> bytes, std::vector<std::int64_t>& out) {
  const std::int64_t count = static_cast<std::int64_t>(bytes.size()) / info(type).bytes;
  out.resize(static_cast<std::size_t>(count));
  visit_values(type, bytes.data(), count, [&](auto values) {
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(values[0])>>) {
      for (std::size_t i = 0; i < values.size(); ++i) out[i] = static_cast<std::int64_t>(values[i]);
    } else {
      ensure(false, "values that are whole numbers");
    }
  });
}

TrainerRow::TrainerRow(const OutputRules& rules) : rules_(rules), values_(rules.columns.size()) {}

void TrainerRow::take(std::span<const ListValues> columns, std::int64_t row) {
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const ValueType type = rules_.columns[c].type;
    const auto begin = static_cast<std::size_t>(columns[c].begin[static_cast<std::size_t>(row)]);
    const auto end = static_cast<std::size_t>(columns[c].begin[static_cast<std::size_t>(row) + 1]);
    const auto width = static_cast<std::size_t>(info(type).bytes);
    widen_values(type, std::span<const std::byte>(columns[c].values).subspan(begin * width, (end - begin) * width), values_[c]);
  }
}

int TrainerRow::find(OutputSource source) const {
  for (std::size_t c = 0; c < rules_.columns.size(); ++c) {
    if (rules_.columns[c].source == source) return static_cast<int>(c);
  }
  return -1;
}

std::span<const std::int64_t> TrainerRow::of(OutputSource source) const {
  const int column = find(source);
  ensure(column >= 0, "a column that the preset has");
  return values_[static_cast<std::size_t>(column)];
}

std::int64_t TrainerRow::expected_values(OutputSource source, std::span<const SlotRun> segments) const {
  if (is_fixed_width(source)) return rules_.width(source);
  const std::int64_t end = segments.empty() ? 0 : segments.back().begin + segments.back().slots;
  if (!is_per_segment(source)) return rules_.preset->ragged ? end : rules_.row_tokens;
  const bool rest = source == OutputSource::seq_ends && end < rules_.row_tokens;
  return static_cast<std::int64_t>(segments.size()) + (rest ? 1 : 0);
}

bool TrainerRow::states_labels() const {
  return find(OutputSource::labels) >= 0 || find(OutputSource::loss_mask) >= 0 || find(OutputSource::targets) >= 0;
}

void TrainerRow::stated_labels(std::span<const SlotRun> segments, std::vector<std::int64_t>& out) const {
  if (find(OutputSource::labels) >= 0) {
    const std::span<const std::int64_t> labels = of(OutputSource::labels);
    out.assign(labels.begin(), labels.end());
    return;
  }
  const std::span<const std::int64_t> tokens = ids();
  out.assign(tokens.size(), kNoLabel);
  if (find(OutputSource::targets) >= 0) {
    const std::span<const std::int64_t> targets = of(OutputSource::targets), numbers = of(OutputSource::target_ids);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (numbers[i] != 0) out[i] = targets[i];
    }
    return;
  }
  const std::span<const std::int64_t> mask = of(OutputSource::loss_mask);
  const std::int64_t ahead = rules_.preset->labels == LabelRule::shifted ? 1 : 0;
  for (const SlotRun& segment : segments) {
    for (std::int64_t slot = segment.begin; slot + ahead < segment.begin + segment.length; ++slot) {
      if (mask[static_cast<std::size_t>(slot)] != 0)
        out[static_cast<std::size_t>(slot)] = tokens[static_cast<std::size_t>(slot + ahead)];
    }
  }
}

void TrainerRow::source_labels(const Column& column, std::span<const SlotRun> segments, std::span<const std::int64_t> stated,
                               std::span<const std::int64_t> first_values, std::vector<std::int64_t>& out) const {
  out.assign(stated.size(), fill_value(column));
  const bool mask = is_label_mask(column);
  const LabelRule rule = rules_.preset->labels;
  // Where the label of a segment's token i is stated, and where the sources' column has it, seen from slot i.
  const std::int64_t stated_at = rule == LabelRule::shifted ? -1 : 0;
  const std::int64_t column_at = column.alignment == Alignment::target_shifted ? -1 : 0;
  const std::int64_t first = drops_first_label(rule) || column_at != 0 ? 1 : 0;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const SlotRun& segment = segments[s];
    for (std::int64_t slot = segment.begin + first; slot < segment.begin + segment.length; ++slot) {
      const std::int64_t label = stated[static_cast<std::size_t>(slot + stated_at)];
      out[static_cast<std::size_t>(slot + column_at)] = mask ? (label != kNoLabel ? 1 : 0) : label;
    }
    if (rules_.keeps_first_values) out[static_cast<std::size_t>(segment.begin)] = first_values[s];
  }
}

}  // namespace shardpack
