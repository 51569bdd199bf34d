// Is a block of rows what shardpack/packed_row.h says? Works on the stored arrays, and shares no code with the row layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/trainer_rows.h"
#include "jobs/verify_fingerprint.h"
#include "jobs/verify_issues.h"
#include "jobs/verify_plan.h"
#include "shardpack/item.h"
#include "shardpack/manifest.h"
#include "shardpack/sequence_index.h"
#include "shardpack/sequence_ranges.h"
#include "shardpack/sequence_source.h"
#include "shardpack/types.h"

namespace shardpack {

/// What all rows of a dataset obey.
struct RowRules {
  Length row_tokens = 0, segment_multiple = 1;
  Length unslotted = 0;           ///< tokens of every segment that take no slot
  std::int32_t max_segments = 0;  ///< 0 = no limit
  std::int64_t position_start = 0, pad_id = 0;
  std::int64_t id_min = 0, id_max = -1;  ///< of source tokens
  std::optional<std::int64_t> eos_id, bos_id;
  const std::vector<ManifestSource>& sources;
  std::vector<SequenceId> first_sequence;  ///< of each source, and one past the last
  std::vector<Column> columns;
  std::string loss_column;              ///< "" for none
  bool single_segments = false;         ///< a sequence has one segment at most, wherever that begins
  const OutputRules* output = nullptr;  ///< how rows became a trainer's; null in the native layout
  bool holds_tokens = true;             ///< else only where they lie in the sources is stored
};

/// Ids of a block in their own width; nothing when the dataset does not have them.
struct StoredIds {
  IdType type = IdType::u16;  ///< u16 or u32
  std::span<const std::byte> bytes;
};

/// Values of one of the dataset's columns: of the block's slots or, where they belong to sequences, of its segments.
struct StoredColumn {
  std::span<const std::byte> bytes;
  std::span<const std::int64_t> offsets;  ///< kind list and text: one a segment and one more; offsets[0] is the first value here
};

/// The stored arrays of the rows [first_row, first_row + rows) of a shard.
struct StoredRows {
  std::string_view shard;       ///< folder, for issues
  std::string_view slots_file;  ///< where the ids are, for issues: a file of the trainer, else the folder
  std::int64_t first_row = 0, rows = 0;
  std::int64_t column_slots = 0;          ///< places of a row in columns of kind token: row_tokens, or more for unslotted tokens
  std::span<const std::int64_t> offsets;  ///< rows + 1, ascending; offsets[0] is the first segment below
  std::span<const std::int32_t> lengths;
  std::span<const std::int32_t> slots;   ///< empty: equal to the lengths
  std::span<const std::int64_t> source;  ///< three a segment
  std::span<const std::uint8_t> added;   ///< empty: none
  std::span<const std::int64_t> begins;  ///< without tokens: where each segment's lie in its data file; empty: nowhere
  StoredIds ids, segment_ids, position_ids;
  std::vector<StoredColumn> columns;        ///< as RowRules::columns; of one that a trainer's files have, nothing
  std::span<const ListValues> trainer;      ///< as RowRules::output has them, instead of ids and what is derived from them
  std::span<const std::byte> first_labels;  ///< of each segment, where OutputRules::keeps_first_values
};

/// What the rows of a block belong to.
struct RowsOrigin {
  const SequenceRanges* sequences = nullptr;  ///< of the partition
  const PlanRealisation* plan = nullptr;      ///< null: rows are not compared with a plan
  std::string plan_file;
  const SequenceIndex* index = nullptr;    ///< of the sources read again, when they have groups
  const SequenceSource* source = nullptr;  ///< the sources read again, where rows hold no tokens: they are read there
  bool fill = false;                       ///< rows without a segment are right here, and others are not
  bool digest_rows = false;                ///< wanted for comparing repeated rows
};

struct PlacedPiece {
  SequenceId sequence = 0;
  std::int64_t first_token = 0;
  Length tokens = 0;
};

/// What a block holds; adds up.
struct RowFacts {
  std::int64_t rows = 0, segments = 0, tokens = 0, loss_tokens = 0, added_eos = 0, added_bos = 0, max_segments = 0;
  std::int64_t hidden_labels = 0;                      ///< that the preset hid
  std::int64_t longest_segment = 0, least_slots = -1;  ///< slots of one segment, and of one row's segments together; -1: no row
  std::int64_t id_min = 0, id_max = -1;                ///< of source tokens
  Fingerprint fingerprint;

  void add_ids(std::int64_t low, std::int64_t high);
  RowFacts& operator+=(const RowFacts& other);
};

struct CheckedRows {
  RowFacts facts;
  IssueList issues;
  std::vector<PlacedPiece> pieces;       ///< of the segments whose source is possible
  std::vector<std::int64_t> strategies;  ///< of the rows that have one
  std::vector<std::uint64_t> digests;    ///< one a row, when wanted: equal rows have equal ones
};

/// Check every slot of every row. Thread-safe.
/// `recounts`: of the ids, and then of each column.
CheckedRows check_stored_rows(const StoredRows& rows, const RowRules& rules, const RowsOrigin& origin,
                              std::span<const FingerprintRecount> recounts);

}  // namespace shardpack
