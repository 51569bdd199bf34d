// Output presets: what each trainer reads, one row of one table each. A new trainer is a row, not code.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "shardpack/column.h"
#include "shardpack/item.h"
#include "shardpack/types.h"

namespace shardpack {

/// Kinds of files that rows are written in.
enum class Container : std::uint8_t { npy, arrow, parquet, megatron, index };

struct ContainerInfo {
  Container container;
  std::string_view name;     ///< as in --as
  std::string_view summary;  ///< one line
  bool holds_tokens = true;  ///< else rows say where their tokens lie in the sources
};
std::span<const ContainerInfo> containers();  ///< index = Container
const ContainerInfo& info(Container container);

/// Where the values of an output column come from.
enum class OutputSource : std::uint8_t {
  ids,           ///< token ids; padding is the pad id
  labels,        ///< the sources' labels or mask, else the ids; -100 takes no part in the loss
  loss_mask,     ///< the same as 1 and 0; ones where the sources have neither
  targets,       ///< the labels, 0 where they are -100
  target_ids,    ///< segment ids, 0 where the label is -100
  segment_ids,   ///< 1..k, 0 on padding
  position_ids,  ///< anew in every segment; the first one's on padding
  token_values,  ///< what the sources have for every token
  seq_lengths,   ///< one a segment
  seq_ends,      ///< the same, and what is left of the row as one more: they add up to the row
  seq_starts,    ///< one a segment: where it begins in the row
  // A fixed number a row, 0 behind the last. Of the tokens that OutputColumn::from names (Column::places): ...
  entry_values,    ///< ... what the sources have, places as slots of the row
  entry_segments,  ///< ... their segments, 1..k
  // Of the segments: ...
  segment_starts,   ///< ... where they begin in the row
  segment_values,   ///< ... what the sources have for the sequence
  segment_numbers,  ///< ... 1..k
};
constexpr bool is_per_entry(OutputSource source) {
  return source == OutputSource::entry_values || source == OutputSource::entry_segments;
}
/// Does it have the same number of values in every row, however many tokens or segments that has?
constexpr bool is_fixed_width(OutputSource source) { return source >= OutputSource::entry_values; }

struct OutputColumn {
  std::string_view name;
  OutputSource source = OutputSource::ids;
  ValueType type = ValueType::i32;
  bool if_labels = false;  ///< only where the sources have labels or a mask
  /// Names of the sources' column, in the order in which they are tried. Without it the output column is left out, or the preset
  /// refuses. entry_segments: a weight of each token, 1 or, of what only fills the lists up, 0, which is left out; may be
  /// missing.
  std::span<const std::string_view> from{};
  bool needed = false;
};

/// What becomes of labels so that no segment's last token learns the first one of the next.
enum class LabelRule : std::uint8_t {
  none,          ///< labels cannot be held
  as_they_are,   ///< the trainer's collator sees to it
  first_hidden,  ///< the model shifts labels itself: the first of every segment is -100
  shifted,       ///< shifted left by one in every segment, and nothing to learn at its end
};

struct Preset {
  std::string_view name;                  ///< as in --for
  std::string_view summary;               ///< one line
  std::span<const Container> containers;  ///< it may be written in; the first is the default
  std::span<const OutputColumn> columns;  ///< of the files that the trainer reads
  LabelRule labels = LabelRule::none;
  bool ragged = false;  ///< rows end with their last token: no padding is stored
  SlotRule slot_rule = SlotRule::tokens;
  bool needs_eos_id = false;
  std::string_view positions_column{};  ///< what --positions-columns names unless it is given
  bool ends_in_eos = false;             ///< EOS is what tells segments apart: appended where missing, and padding too
  std::int64_t group_rows = 0;          ///< Parquet: rows of a row group
  std::string_view file_suffix{};       ///< Parquet: of the files; ".parquet" where it says nothing
  std::string_view shuffled_by{};       ///< who takes the rows in an order of its own; empty where whoever reads them decides
  std::string_view keep_order{};        ///< the setting under which it takes them as they are written; empty where there is none
  /// How to train with it. OUT, LENGTH and 0000N stand for the output, its row length and its number of files.
  std::string_view train_with{};
};
std::span<const Preset> presets();

const Preset* try_preset(std::string_view name);  ///< nullptr for a name that is not in the table

/// \throws Error{usage} for a name that is not in the table, with the nearest one that is
const Preset& find_preset(std::string_view name);

/// Is its manifest beside what a trainer reads, and not in a folder of its own?
inline bool is_native(const Preset& preset) { return preset.name == "native"; }

bool has_source(const Preset& preset, OutputSource source);

}  // namespace shardpack
