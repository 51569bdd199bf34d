#include "io/packed_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "base/units.h"
#include "io/trainer_files.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

[[noreturn]] void fail(const std::string& shard, std::string_view what, std::int64_t row) {
  throw Error(ErrorCode::bad_data, fmt::format("{}; shardpack verify tells more", what), shard,
              row < 0 ? std::string() : fmt::format("row {}", with_commas(row)));
}

/// Writes numbers as values of `type`. \return whether each of them is one
bool narrow(std::span<const std::int64_t> numbers, ValueType type, std::byte* out) {
  const auto as = [&](auto zero) {
    using Value = decltype(zero);
    bool fit = true;
    auto* const values = reinterpret_cast<Value*>(out);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      values[i] = static_cast<Value>(numbers[i]);
      fit &= static_cast<std::int64_t>(values[i]) == numbers[i];
    }
    return fit;
  };
  switch (type) {
    case ValueType::u8:
      return as(std::uint8_t{});
    case ValueType::u16:
      return as(std::uint16_t{});
    case ValueType::u32:
      return as(std::uint32_t{});
    case ValueType::i32:
      return as(std::int32_t{});
    default:
      return as(std::int64_t{});
  }
}

/// Of a row's values those that a block has room for; what is behind them is padding.
std::span<const std::int64_t> in_block(std::span<const std::int64_t> values, const RowBlock& block) {
  return values.first(std::min(values.size(), static_cast<std::size_t>(block.row_tokens)));
}

}  // namespace

PackedRows::PackedRows(const PackedDataset& dataset, const ManifestShard& shard, bool values, const SequenceSource* source)
    : manifest_(dataset.manifest()),
      output_(rules_of(manifest_, dataset.folder())),
      source_tokens_(values && !output_.holds_tokens() ? source : nullptr),
      shown_(dataset.folder() + "/" + shard.folder),
      lengths_(dataset.open_array(shard, "seq_lengths")),
      source_(dataset.open_array(shard, "seq_source")) {
  if (dataset.has_array(shard, "seq_slots")) slots_.emplace(dataset.open_array(shard, "seq_slots"));
  if (dataset.has_array(shard, "seq_added")) added_.emplace(dataset.open_array(shard, "seq_added"));
  offsets_ = read_offsets(dataset.open_array(shard, "row_offsets"), shard.rows, shard.segments);
  if (source_.row_elements() != 3) fail(shown_, "seq_source does not have three numbers a segment", -1);
  open_columns(dataset, shard, values);
  if (values) open_ids(dataset, shard);
}

void PackedRows::open_columns(const PackedDataset& dataset, const ManifestShard& shard, bool values) {
  // Tokens that take no slot have a place in columns all the same, and those say for how many.
  const Length unslotted = unslotted_tokens(output_.preset->slot_rule);
  std::int64_t places =
      manifest_.row_tokens + unslotted * std::min<std::int64_t>(manifest_.max_segments_in_row, manifest_.row_tokens);
  for (std::size_t c = 0; c < manifest_.columns.size(); ++c) {
    const Column& column = manifest_.columns[c];
    ColumnArrays& arrays = columns_.emplace_back();
    if (!is_stored(c) || (!values && !is_listed(column))) continue;
    const PackedArray& array = arrays.values.emplace(dataset.open_array(shard, column.name));
    const bool of_slots = column.kind == ColumnKind::token;
    if (of_slots && unslotted > 0) places = std::max(places, array.row_elements());
    if (array.type() != column.type || array.row_elements() != (of_slots ? places : 1))
      fail(array.path(), "not of the shape and type that the manifest says", -1);
    if (is_listed(column)) {
      const PackedArray begin = dataset.open_array(shard, column.name + std::string(kOffsetsSuffix));
      arrays.begin = read_offsets(begin, shard.segments, array.rows());
    }
  }
  if (places > std::numeric_limits<Length>::max()) fail(shown_, "rows of 2^31 places or more", -1);
  block_slots_ = static_cast<Length>(places);
}

void PackedRows::open_ids(const PackedDataset& dataset, const ManifestShard& shard) {
  if (!output_.native()) {
    trainer_ = open_rows(dataset, shard, output_);
    if (trainer_->rows() != shard.rows) fail(shown_, "the trainer's files do not have the shard's rows", -1);
    if (!output_.keeps_first_values) return;
    const PackedArray& array = first_labels_.emplace(dataset.open_array(shard, kFirstLabelStem));
    if (array.type() != label_column().type || array.row_elements() != 1 || array.rows() != shard.segments)
      fail(array.path(), "not of the shape and type that the manifest says", -1);
    return;
  }
  if (source_tokens_ != nullptr) return;
  ids_.emplace(dataset.open_array(shard, "input_ids"));
  if (ids_->row_elements() != manifest_.row_tokens || info(ids_->type()).name != info(manifest_.id_type).name)
    fail(ids_->path(), "not of the shape and type that the manifest says", -1);
}

std::int64_t PackedRows::rows_in_block(std::int64_t first_row, std::int64_t slots) const {
  const std::int64_t end = trainer_ ? trainer_->end_of_run(first_row) : rows();
  return std::clamp<std::int64_t>(slots / block_slots_, 1, end - first_row);
}

RowBlock PackedRows::read(std::int64_t first_row, std::int64_t rows) const {
  RowBlock block;
  block.first_row = first_row;
  block.first_segment = offsets_[static_cast<std::size_t>(first_row)];
  block.rows = rows;
  block.row_tokens = block_slots_;
  block.id_type = manifest_.id_type;
  for (std::int64_t row = first_row; row <= first_row + rows; ++row)
    block.row_begin.push_back(offsets_[static_cast<std::size_t>(row)] - block.first_segment);
  read_segments(block);
  if (!ids_ && !trainer_ && source_tokens_ == nullptr) return block;
  block.row_tokens = places_in(block);
  block.ids.resize(static_cast<std::size_t>(rows * block.row_tokens * info(block.id_type).bytes));
  if (ids_) ids_->read_bytes(first_row, block.ids);
  if (source_tokens_ != nullptr) read_in_sources(block);
  for (std::size_t c = 0; c < columns_.size(); ++c)
    block.columns.push_back(is_stored(c) ? read_column(c, block) : ColumnValues{});
  if (trainer_) read_trainer_rows(block);
  return block;
}

/// Room for a row: as many as the arrays have for each; else what the longest row of the block takes, for of rows without padding
/// only a manifest says how long they may be.
Length PackedRows::places_in(const RowBlock& block) const {
  bool stored = ids_.has_value();
  for (std::size_t c = 0; c < columns_.size(); ++c)
    stored = stored || (columns_[c].values && manifest_.columns[c].kind == ColumnKind::token);
  if (stored) return block_slots_;
  std::int64_t longest = 1;
  for (std::size_t row = 0; row + 1 < block.row_begin.size(); ++row) {
    std::int64_t slots = 0;
    for (std::int64_t s = block.row_begin[row]; s < block.row_begin[row + 1]; ++s)
      slots += block.segments[static_cast<std::size_t>(s)].slots;
    longest = std::max(longest, slots);
  }
  return static_cast<Length>(longest);  // check_row() compared it with block_slots_
}

/// The tokens of segments; what lies between them, and what was added, is left as it is.
void PackedRows::read_in_sources(RowBlock& block) const {
  const SequenceIndex& index = source_tokens_->index();
  std::vector<TokenRequest> requests;
  for (std::int64_t row = 0; row < block.rows; ++row) {
    std::int64_t slot = row * block.row_tokens;
    for (std::int64_t s = block.row_begin[static_cast<std::size_t>(row)]; s < block.row_begin[static_cast<std::size_t>(row) + 1];
         ++s) {
      const RowSegment& segment = block.segments[static_cast<std::size_t>(s)];
      const SequenceId sequence = index.first_sequence(segment.file) + segment.record;
      if (segment.first_token > index.place(sequence).tokens - segment.tokens)
        fail(shown_, "a segment of tokens that its record does not have", block.first_row + row);
      if (segment.tokens > 0)
        requests.push_back({sequence, segment.first_token, segment.tokens, slot + (segment.added & kAddedBos)});
      slot += segment.slots;
    }
  }
  source_tokens_->read_block(requests, block.id_type, block.ids.data());
}

/// Ids and labels, row by row as the sources had them. Places behind the last segment are left as they are.
void PackedRows::read_trainer_rows(RowBlock& block) const {
  const std::vector<ListValues> columns = trainer_->read(block.first_row, block.rows);
  std::vector<std::int64_t> first_values;
  if (first_labels_) {
    const ValueType type = label_column().type;
    ByteBuffer bytes(block.segments.size() * static_cast<std::size_t>(info(type).bytes));
    first_labels_->read_bytes(block.first_segment, bytes);
    widen_values(type, bytes, first_values);
  }
  ByteBuffer* labels = nullptr;
  if (output_.label_column >= 0) {
    labels = &block.columns[static_cast<std::size_t>(output_.label_column)].bytes;
    labels->resize(static_cast<std::size_t>(block.rows * block.row_tokens * info(label_column().type).bytes));
  }
  const ValueType id_type = block.id_type == IdType::u16 ? ValueType::u16 : ValueType::u32;
  TrainerRow row(output_);
  std::vector<SlotRun> segments;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const auto begin = static_cast<std::size_t>(block.row_begin[static_cast<std::size_t>(r)]);
    const auto end = static_cast<std::size_t>(block.row_begin[static_cast<std::size_t>(r) + 1]);
    segments.clear();
    std::int64_t slot = 0;
    for (std::size_t s = begin; s < end; ++s) {
      segments.push_back({slot, block.segments[s].length(), block.segments[s].slots});
      slot += block.segments[s].slots;
    }
    row.take(columns, r);
    for (std::size_t c = 0; c < output_.columns.size(); ++c) {
      if (static_cast<std::int64_t>(row.column(c).size()) != row.expected_values(output_.columns[c].source, segments))
        fail(shown_, fmt::format("{} does not have the values of its segments", output_.columns[c].name), block.first_row + r);
    }
    const std::span<const std::int64_t> ids = in_block(row.ids(), block);
    bool fit = narrow(ids, id_type, block.ids.data() + r * block.row_tokens * info(id_type).bytes);
    if (labels != nullptr) {
      const std::int64_t width = info(label_column().type).bytes;
      fit = take_labels(row, segments, std::span(first_values).subspan(first_labels_ ? begin : 0), block,
                        labels->data() + r * block.row_tokens * width) &&
            fit;
    }
    if (!fit) fail(shown_, "a value that the sources do not have", block.first_row + r);
  }
}

/// \return whether all of them are values of the column's type
bool PackedRows::take_labels(const TrainerRow& row, std::span<const SlotRun> segments, std::span<const std::int64_t> first_values,
                             const RowBlock& block, std::byte* out) const {
  std::vector<std::int64_t> stated, labels;
  row.stated_labels(segments, stated);
  row.source_labels(label_column(), segments, stated, first_values, labels);
  return narrow(in_block(labels, block), label_column().type, out);
}

void PackedRows::read_segments(RowBlock& block) const {
  const std::int64_t count = block.row_begin.back();
  const std::vector<std::int32_t> lengths = lengths_.read<std::int32_t>(block.first_segment, count);
  const std::vector<std::int64_t> source = source_.read<std::int64_t>(block.first_segment, count);
  const std::vector<std::int32_t> slots = slots_ ? slots_->read<std::int32_t>(block.first_segment, count) : lengths;
  std::vector<std::uint8_t> added(static_cast<std::size_t>(count));
  if (added_) added = added_->read<std::uint8_t>(block.first_segment, count);
  block.segments.resize(static_cast<std::size_t>(count));
  for (std::size_t s = 0; s < block.segments.size(); ++s) {
    RowSegment& segment = block.segments[s];
    segment.added = static_cast<std::uint8_t>(added[s] & (kAddedBos | kAddedEos));
    segment.slots = slots[s];
    segment.tokens = lengths[s] - (segment.added & 1) - (segment.added >> 1);
    segment.file = static_cast<std::int32_t>(
        std::clamp<std::int64_t>(source[3 * s], -1, static_cast<std::int64_t>(manifest_.sources.size())));
    segment.record = source[3 * s + 1];
    segment.first_token = source[3 * s + 2];
  }
  for (std::int64_t row = 0; row < block.rows; ++row) check_row(block, row);
}

void PackedRows::check_row(const RowBlock& block, std::int64_t row) const {
  std::int64_t slots = 0;
  const auto begin = static_cast<std::size_t>(block.row_begin[static_cast<std::size_t>(row)]);
  const auto end = static_cast<std::size_t>(block.row_begin[static_cast<std::size_t>(row) + 1]);
  for (std::size_t s = begin; s < end; ++s) {
    const RowSegment& segment = block.segments[s];
    if (segment.tokens < 0 || segment.length() > segment.slots)
      fail(shown_, "a segment of impossible length", block.first_row + row);
    slots += segment.slots;
    const bool known = segment.file >= 0 && segment.file < static_cast<std::int32_t>(manifest_.sources.size());
    const ManifestSource* const file = known ? &manifest_.sources[static_cast<std::size_t>(segment.file)] : nullptr;
    const bool there = known && segment.record >= 0 && segment.record < file->sequences && segment.first_token >= 0 &&
                       segment.tokens <= file->tokens && segment.first_token <= file->tokens - segment.tokens;
    if (!there) fail(shown_, "a segment of a record that the sources do not have", block.first_row + row);
  }
  const std::int64_t unslotted = unslotted_tokens(output_.preset->slot_rule) * static_cast<std::int64_t>(end - begin);
  if (slots > block.row_tokens || slots - unslotted > manifest_.row_tokens)
    fail(shown_, "the segments take more slots than a row has", block.first_row + row);
}

ColumnValues PackedRows::read_column(std::size_t c, const RowBlock& block) const {
  const Column& column = manifest_.columns[c];
  const ColumnArrays& arrays = columns_[c];
  ColumnValues result;
  std::int64_t first = block.first_row, count = block.rows;
  if (column.kind != ColumnKind::token) {
    first = block.first_segment;
    count = block.row_begin.back();
  }
  if (is_listed(column)) {
    const auto begin = arrays.begin.begin() + first;
    result.begin.assign(begin, begin + count + 1);
    first = result.begin.front();
    count = result.begin.back() - first;
  }
  const std::int64_t elements = column.kind == ColumnKind::token ? block.row_tokens : 1;
  result.bytes.resize(static_cast<std::size_t>(count * elements * info(column.type).bytes));
  arrays.values->read_bytes(first, result.bytes);
  return result;
}

std::int64_t PackedRows::value_count(std::size_t column, std::int64_t segment) const {
  const std::vector<std::int64_t>& begin = columns_[column].begin;
  return begin[static_cast<std::size_t>(segment) + 1] - begin[static_cast<std::size_t>(segment)];
}

}  // namespace shardpack
