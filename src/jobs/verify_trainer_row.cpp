#include "jobs/verify_trainer_row.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardpack {

TrainerRowCheck::TrainerRowCheck(const RowRules& rules)
    : rules_(rules),
      output_(*rules.output),
      label_column_(output_.label_column < 0 ? nullptr : &rules.columns[static_cast<std::size_t>(output_.label_column)]),
      row_(output_) {}

bool TrainerRowCheck::take(const StoredRows& rows, std::int64_t row, std::span<const SlotRun> segments, IssueList& issues) {
  segments_ = segments;
  rows_ = &rows;
  row_in_block_ = row;
  first_segment_ = static_cast<std::size_t>(rows.offsets[static_cast<std::size_t>(row)] - rows.offsets.front());
  file_ = rows.slots_file;
  number_ = rows.first_row + row;
  issues_ = &issues;
  hidden_labels_ = 0;
  row_.take(rows.trainer, row);
  if (!widths_fit()) return false;
  if (row_.states_labels()) {
    if (output_.keeps_first_values) {
      const auto width = static_cast<std::size_t>(info(label_column_->type).bytes);
      widen_values(label_column_->type, rows.first_labels.subspan(first_segment_ * width, segments.size() * width),
                   first_values_);
    }
    take_labels();
  }
  for (std::size_t c = 0; c < output_.columns.size(); ++c) check_column(c);
  return true;
}

bool TrainerRowCheck::widths_fit() {
  bool fit = true;
  for (std::size_t c = 0; c < output_.columns.size(); ++c) {
    const auto found = static_cast<std::int64_t>(row_.column(c).size());
    const std::int64_t expected = row_.expected_values(output_.columns[c].source, segments_);
    if (found == expected) continue;
    issues_->add("row", file_, fmt::format("{}: {} values, expected {}", output_.columns[c].name, found, expected), number_);
    fit = fit && is_per_segment(output_.columns[c].source);
  }
  return fit;
}

/// What the row states to be learned, what it should state, and what the sources had.
void TrainerRowCheck::take_labels() {
  row_.stated_labels(segments_, stated_);
  if (label_column_ != nullptr) row_.source_labels(*label_column_, segments_, stated_, first_values_, source_labels_);
  const bool dropped = drops_first_label(output_.preset->labels);
  const bool target_shifted = label_column_ != nullptr && label_column_->alignment == Alignment::target_shifted;
  const std::int64_t ahead = output_.preset->labels == LabelRule::shifted ? 1 : 0;
  const std::span<const std::int64_t> ids = row_.ids();
  labels_.assign(stated_.size(), kNoLabel);
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    const SlotRun& segment = segments_[s];
    for (std::int64_t slot = segment.begin + (dropped || target_shifted ? 1 : 0); slot < segment.begin + segment.length; ++slot) {
      const auto at = static_cast<std::size_t>(slot - ahead);
      labels_[at] = expected_label(ids[static_cast<std::size_t>(slot)], stated_[at]);
    }
    if (!dropped || target_shifted) continue;
    // The first token's own label is stated nowhere.
    const bool counted = label_column_ == nullptr || first_values_[s] != (is_label_mask(*label_column_) ? 0 : kNoLabel);
    hidden_labels_ += counted ? 1 : 0;
  }
}

/// What should be stated for a token that may have a label. Of labels that the sources chose their fingerprint tells.
std::int64_t TrainerRowCheck::expected_label(std::int64_t token, std::int64_t stated) const {
  if (label_column_ == nullptr) return token;
  return is_label_mask(*label_column_) && stated != kNoLabel ? token : stated;
}

void TrainerRowCheck::check_column(std::size_t c) {
  switch (output_.columns[c].source) {
    case OutputSource::ids:
      return;
    case OutputSource::labels:
      return expect_labels(c, [](std::int64_t label, std::int64_t) { return label; });
    case OutputSource::loss_mask:
      return expect_labels(c, [](std::int64_t label, std::int64_t) { return std::int64_t{label != kNoLabel}; });
    case OutputSource::targets:
      return expect_labels(c, [](std::int64_t label, std::int64_t) { return label != kNoLabel ? label : 0; });
    case OutputSource::target_ids:
      return expect_labels(c, [](std::int64_t label, std::int64_t number) { return label != kNoLabel ? number : 0; });
    case OutputSource::segment_ids:
      return expect_slots(c, 0, [](std::int64_t number, std::int64_t) { return number; });
    case OutputSource::position_ids:
      return expect_slots(c, rules_.position_start, [this](std::int64_t, std::int64_t i) { return rules_.position_start + i; });
    case OutputSource::seq_lengths:
    case OutputSource::seq_ends:
    case OutputSource::seq_starts:
      return expect_list(c);
    case OutputSource::token_values:
      return expect_tokens(c);
    case OutputSource::entry_values:
    case OutputSource::entry_segments:
      return expect_entries(c);
    case OutputSource::segment_starts:
    case OutputSource::segment_values:
    case OutputSource::segment_numbers:
      return expect_segments(c);
  }
}

/// value(number of the segment from 1, number of the token in it from 0); `padding` where no token is.
template <class Value>
void TrainerRowCheck::expect_slots(std::size_t c, std::int64_t padding, Value value) {
  expected_.assign(row_.column(c).size(), padding);
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    std::int64_t* const own = expected_.data() + segments_[s].begin;
    for (std::int64_t i = 0; i < segments_[s].length; ++i) own[i] = value(static_cast<std::int64_t>(s) + 1, i);
  }
  compare(c, "ids", "slot");
}

/// value(label that is stated at the slot, number of the segment from 1 or 0)
template <class Value>
void TrainerRowCheck::expect_labels(std::size_t c, Value value) {
  expected_.assign(row_.column(c).size(), value(kNoLabel, 0));
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    const auto begin = static_cast<std::size_t>(segments_[s].begin);
    for (std::size_t slot = begin; slot < begin + static_cast<std::size_t>(segments_[s].length); ++slot)
      expected_[slot] = value(labels_[slot], static_cast<std::int64_t>(s) + 1);
  }
  compare(c, "column", "slot");
}

/// A number for each segment; where they must add up to the row, what is left of it too.
void TrainerRowCheck::expect_list(std::size_t c) {
  const OutputSource source = output_.columns[c].source;
  expected_.clear();
  std::int64_t end = 0;
  for (const SlotRun& segment : segments_) {
    expected_.push_back(source == OutputSource::seq_starts ? segment.begin
                        : source == OutputSource::seq_ends ? segment.slots
                                                           : segment.length);
    end = segment.begin + segment.slots;
  }
  if (source == OutputSource::seq_ends && end < rules_.row_tokens) expected_.push_back(rules_.row_tokens - end);
  if (row_.column(c).size() == expected_.size()) compare(c, "row", "number");
}

/// The dataset's own column, whose values their fingerprint vouches for.
void TrainerRowCheck::expect_tokens(std::size_t c) {
  const auto input = static_cast<std::size_t>(output_.inputs[c]);
  const auto width = static_cast<std::size_t>(info(rules_.columns[input].type).bytes);
  const auto slots = static_cast<std::size_t>(rows_->column_slots);
  std::vector<std::int64_t> stored;
  widen_values(rules_.columns[input].type,
               rows_->columns[input].bytes.subspan(static_cast<std::size_t>(row_in_block_) * slots * width, slots * width),
               stored);
  expected_.assign(row_.column(c).size(), 0);
  for (const SlotRun& segment : segments_)
    std::copy_n(stored.begin() + segment.begin, segment.length, expected_.begin() + segment.begin);
  compare(c, "column", "slot");
}

/// What a segment of the row has in a column of the dataset: of a list all of its values.
std::vector<std::int64_t> TrainerRowCheck::values_of_segment(std::size_t column, std::size_t segment) const {
  const StoredColumn& stored = rows_->columns[column];
  const ValueType type = rules_.columns[column].type;
  const auto width = static_cast<std::size_t>(info(type).bytes);
  std::size_t begin = first_segment_ + segment, count = 1;
  if (is_listed(rules_.columns[column])) {
    count = static_cast<std::size_t>(stored.offsets[begin + 1] - stored.offsets[begin]);
    begin = static_cast<std::size_t>(stored.offsets[begin] - stored.offsets.front());
  }
  std::vector<std::int64_t> values;
  if (type != ValueType::f32 && type != ValueType::f64) {
    widen_values(type, stored.bytes.subspan(begin * width, count * width), values);
    return values;
  }
  for (std::size_t i = begin; i < begin + count; ++i) {  // weights, of which 0 is asked alone
    const std::byte* const at = stored.bytes.data() + i * width;
    values.push_back(type == ValueType::f32 ? *reinterpret_cast<const float*>(at) != 0
                                            : *reinterpret_cast<const double*>(at) != 0);
  }
  return values;
}

/// A value, or the segment, of every listed token whose weight is not 0.
void TrainerRowCheck::expect_entries(std::size_t c) {
  const bool numbers = output_.columns[c].source == OutputSource::entry_segments;
  const auto with_weights = std::ranges::find(output_.columns, OutputSource::entry_segments, &OutputColumn::source);
  const int weights = with_weights == output_.columns.end()
                          ? -1
                          : output_.inputs[static_cast<std::size_t>(with_weights - output_.columns.begin())];
  const auto shown = static_cast<std::size_t>(numbers ? output_.places_column : output_.inputs[c]);
  expected_.clear();
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    const std::vector<std::int64_t> values = values_of_segment(shown, s);
    const std::vector<std::int64_t> counts =
        weights < 0 ? std::vector<std::int64_t>() : values_of_segment(static_cast<std::size_t>(weights), s);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i < counts.size() && counts[i] == 0) continue;
      expected_.push_back(numbers ? static_cast<std::int64_t>(s) + 1 : values[i]);
    }
  }
  compare_filled(c);
}

void TrainerRowCheck::expect_segments(std::size_t c) {
  const OutputSource source = output_.columns[c].source;
  expected_.clear();
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    expected_.push_back(source == OutputSource::segment_starts ? segments_[s].begin
                        : source == OutputSource::segment_values
                            ? values_of_segment(static_cast<std::size_t>(output_.inputs[c]), s).front()
                            : static_cast<std::int64_t>(s) + 1);
  }
  compare_filled(c);
}

/// A column of a fixed number of values, 0 behind those that are expected.
void TrainerRowCheck::compare_filled(std::size_t c) {
  const std::size_t width = row_.column(c).size();
  if (expected_.size() > width) {
    issues_->add("row", file_,
                 fmt::format("{}: {} values, and there is room for {}", output_.columns[c].name, expected_.size(), width),
                 number_);
    return;
  }
  expected_.resize(width, 0);
  compare(c, "column", "number");
}

/// \param place  what the values are counted in
void TrainerRowCheck::compare(std::size_t c, std::string_view kind, std::string_view place) {
  const std::span<const std::int64_t> found = row_.column(c);
  const auto differs = std::mismatch(found.begin(), found.end(), expected_.begin());
  if (differs.first == found.end()) return;
  issues_->add(kind, file_,
               fmt::format("{}: {} {} is {}, expected {}", output_.columns[c].name, place, differs.first - found.begin(),
                           *differs.first, *differs.second),
               number_);
}

}  // namespace shardpack
