// The input formats, in one table, and how to open shards with it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardpack/column.h"
#include "shardpack/types.h"

namespace shardpack {

enum class Unit : std::uint8_t { document, sequence };  ///< Megatron: what is one sequence of ours
enum class NullRow : std::uint8_t { error, drop };

/// How inputs are read. Part of what decides the bytes, so it is recorded in the manifest.
struct ReadOptions {
  std::string format;                          ///< name in the table; empty = found by content, then sidecar, then suffix
  std::string ids_column = "input_ids";        ///< of records with named columns
  ColumnChoice columns;                        ///< which others are carried along
  std::vector<std::string> positions_columns;  ///< of these: lists of token places in their sequence
  std::string split;                           ///< of a dataset with several (dataset_dict.json); empty = it has one
  Unit unit = Unit::document;
  NullRow null_row = NullRow::error;
  std::string group_column;            ///< rows never mix two values of it; empty = no groups
  std::optional<IdType> dtype;         ///< raw files: how ids are stored
  std::optional<std::int64_t> eos_id;  ///< raw files: the delimiter; also what --append-eos adds
  std::optional<std::int64_t> bos_id;
  std::int64_t limit = 0;      ///< only the first N sequences; 0 = all
  bool allow_repeats = false;  ///< the same file more than once
};

/// What source files can be made again as.
enum class UnpackFormat : std::uint8_t { jsonl, npy, megatron, arrow, parquet };
inline constexpr std::array<std::string_view, 5> kUnpackFormats{"jsonl", "npy", "megatron", "arrow",
                                                                "parquet"};  // index = UnpackFormat

struct FormatSummary {
  std::string_view name;        ///< as in --format
  std::string_view summary;     ///< one line
  std::string_view boundaries;  ///< what tells sequences apart
};
std::span<const FormatSummary> input_format_summaries();

}  // namespace shardpack
