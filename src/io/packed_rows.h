// Rows of a packed shard read back as the blocks that they were written from, whichever preset they were written for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/trainer_row.h"
#include "io/packed_dataset.h"
#include "io/row_reader.h"
#include "shardpack/packed_row.h"
#include "shardpack/sequence_source.h"

namespace shardpack {

/// One shard, its arrays open. Immutable after construction, so thread-safe. Memory: 8 bytes a row, and 8 a segment for each
/// column of kind list and text. Trusts nothing: what could lead a reader astray is Error{bad_data}.
class PackedRows {
 public:
  /// \param values  also read ids and columns, else segments alone
  /// \param source  where the ids of rows without tokens are read; nothing then stands between them
  PackedRows(const PackedDataset& dataset, const ManifestShard& shard, bool values, const SequenceSource* source = nullptr);
  PackedRows(const PackedRows&) = delete;
  PackedRows& operator=(const PackedRows&) = delete;

  std::int64_t rows() const { return static_cast<std::int64_t>(offsets_.size()) - 1; }
  std::int64_t segments() const { return offsets_.back(); }

  /// Rows of about `slots` slots from `first_row` on, at least one.
  std::int64_t rows_in_block(std::int64_t first_row, std::int64_t slots) const;

  /// Rows [first_row, first_row + rows). Every segment names a source record of the manifest, and lies in its row.
  RowBlock read(std::int64_t first_row, std::int64_t rows) const;

  /// How many values segment `segment` has in a column of kind list or text.
  std::int64_t value_count(std::size_t column, std::int64_t segment) const;

 private:
  struct ColumnArrays {
    std::optional<PackedArray> values;
    std::vector<std::int64_t> begin;  // list, text: of each segment, and the end
  };

  void open_columns(const PackedDataset& dataset, const ManifestShard& shard, bool values);
  void open_ids(const PackedDataset& dataset, const ManifestShard& shard);
  void read_segments(RowBlock& block) const;
  void check_row(const RowBlock& block, std::int64_t row) const;
  ColumnValues read_column(std::size_t column, const RowBlock& block) const;
  void read_trainer_rows(RowBlock& block) const;
  void read_in_sources(RowBlock& block) const;
  bool take_labels(const TrainerRow& row, std::span<const SlotRun> segments, std::span<const std::int64_t> first_values,
                   const RowBlock& block, std::byte* out) const;
  Length places_in(const RowBlock& block) const;
  bool is_stored(std::size_t column) const { return output_.native() || static_cast<int>(column) != output_.label_column; }
  const Column& label_column() const { return manifest_.columns[static_cast<std::size_t>(output_.label_column)]; }

  const Manifest& manifest_;
  const OutputRules output_;
  const SequenceSource* const source_tokens_;  // where the rows hold none and ids are asked for
  std::string shown_;                          // the shard's folder
  PackedArray lengths_, source_;
  std::optional<PackedArray> slots_, added_, ids_;
  std::unique_ptr<RowReader> trainer_;       // of ids and labels, where they are in a trainer's files
  std::optional<PackedArray> first_labels_;  // of each segment, where the trainer's files do not have them
  Length block_slots_ = 0;                   // of a row of a block: room for tokens that take no slot too
  std::vector<std::int64_t> offsets_;        // of rows, in segments
  std::vector<ColumnArrays> columns_;        // as the manifest's
};

}  // namespace shardpack
