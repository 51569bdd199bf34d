// From a block of rows to the columns that a trainer reads: what a preset's table says, done. Knows nothing of files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardpack/packed_row.h"
#include "shardpack/presets.h"
#include "shardpack/sequence_index.h"

namespace shardpack {

/// How the columns of one dataset become those of a preset. Made by output_rules().
struct OutputRules {
  const Preset* preset = nullptr;
  Container container = Container::npy;
  std::vector<OutputColumn> columns;  ///< those that are written, in the files' types
  std::vector<int> inputs;            ///< for each of these the number of the dataset's column that it shows; -1 for none
  int places_column = -1;             ///< of the dataset's: which tokens entry_values and entry_segments are of
  std::int64_t entry_width = 0;       ///< values a row of these
  std::int64_t segment_width = 0;     ///< values a row of segment_starts and the like
  int label_column = -1;              ///< of the dataset's: labels or a mask that labels are made of; -1: ids are the labels
  bool keeps_first_values = false;    ///< of that column: what a segment has at its first token is in no output column
  bool refuses_inner_eos = false;
  std::uint32_t eos_id = 0;
  std::uint32_t position_start = 0;
  Length row_tokens = 0;

  bool native() const { return preset == nullptr || is_native(*preset); }
  bool holds_tokens() const { return info(container).holds_tokens; }

  /// Values a row of a column whose rows are all equally wide; of a ragged preset's, at most.
  std::int64_t width(OutputSource source) const {
    return is_per_entry(source) ? entry_width : is_fixed_width(source) ? segment_width : row_tokens;
  }
  /// Bytes a row of all these columns.
  std::int64_t row_bytes() const {
    std::int64_t bytes = 0;
    for (const OutputColumn& column : columns) {
      if (column.source < OutputSource::seq_lengths || is_fixed_width(column.source))
        bytes += width(column.source) * info(column.type).bytes;
    }
    return bytes;
  }
};

/// \throws Error{usage} for a container that the preset cannot be in
Container chosen_container(const Preset& preset, std::optional<Container> wanted);

/// What of `columns` (the dataset's, ascending by name) the preset shows, and how. \throws Error{usage} when it cannot hold one
/// of them and it would be lost to the trainer.
OutputRules output_rules(const Preset& preset, Container container, std::span<const Column> columns, IdType id_type);

/// A column's values of some rows, one row after the other.
struct ListValues {
  std::vector<std::int32_t> begin;  ///< rows + 1; the first 0
  ByteBuffer values;
};

struct TrainerRows {
  std::int64_t rows = 0;
  std::vector<ListValues> columns;  ///< as OutputRules::columns
  ByteBuffer first_values;          ///< one a segment, in the label column's type, where OutputRules::keeps_first_values
  std::int64_t hidden_labels = 0;   ///< that took part in the loss before, and do no more
};

/// May take the block's ids. Thread-safe. \throws Error{usage} for labels that the preset cannot hold without losing something,
/// Error{bad_data} for an EOS inside of a sequence where it would be taken for a boundary; both name the record.
TrainerRows trainer_rows(RowBlock& block, const OutputRules& rules, std::span<const Column> columns, const SequenceIndex& index);

}  // namespace shardpack
