// manifest.json of a packed dataset: the commit record, and all that verify needs. docs/formats.md describes every key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shardpack/column.h"
#include "shardpack/fingerprint.h"
#include "shardpack/group_key.h"
#include "shardpack/item.h"
#include "shardpack/sequence_ranges.h"
#include "shardpack/types.h"

namespace shardpack {

struct ManifestFile {
  std::string name;  ///< relative to its folder; a trainer file to the dataset's
  std::int64_t bytes = 0;
  std::string hash;  ///< XXH3-128, 32 hex digits
};

struct ManifestShard {
  std::string folder;
  std::int64_t rows = 0, tokens = 0, segments = 0;  ///< tokens: real ones, added ones included
  /// Of its source tokens and what the columns hold for them; none in a dataset without tokens.
  std::optional<Fingerprint> fingerprint = Fingerprint{};
  std::vector<ManifestFile> files;          ///< in its folder
  std::vector<ManifestFile> trainer_files;  ///< its rows as a trainer reads them; none in the native layout
  std::int64_t loss_tokens = 0;             ///< stays 0 where no column tells them
  std::int64_t hidden_labels = 0;           ///< first labels of segments that the preset set to -100
};

/// The rows of one value of the group column.
struct ManifestGroup {
  GroupKey key;
  std::int64_t rows = 0, bound = 0;

  friend bool operator==(const ManifestGroup&, const ManifestGroup&) = default;
};

struct ManifestPartition {
  SequenceRanges sequences;
  std::int64_t rows = 0, bound = 0;
  std::string plan;                   ///< file name
  std::vector<std::string> shards;    ///< folders
  std::vector<ManifestGroup> groups;  ///< ascending by key; empty without a group column
};

struct ManifestSource {
  std::string name, format;
  std::int64_t bytes = 0, sequences = 0, tokens = 0;  ///< sequences: all records, empty and null ones too
  std::string hash;
  std::optional<std::string> ids_dtype{};  ///< SourceFile::ids_dtype, in a dataset without tokens

  /// Of one id in its data file; 0 where ids have to be decoded, or nobody says.
  int id_bytes() const { return ids_dtype.value_or("").empty() ? 0 : ids_dtype->back() - '0'; }
};

struct Manifest {
  std::string tool_version, solver;
  std::string preset = "native", container = "npy";  ///< by their names in shardpack/presets.h
  Length row_tokens = 0;
  std::int64_t rows = 0;  ///< with repeated and fill rows; every other figure is over the planned rows
  std::int64_t source_sequences = 0, source_tokens = 0, sequences = 0, segments = 0, tokens = 0, padding_tokens = 0;
  std::int64_t max_segments_in_row = 0;

  struct Plan {
    std::string packer, bound_kind;
    std::int32_t max_segments = 0;
    Length segment_multiple = 1;
    std::int64_t rows = 0, bound = 0;
  } plan;

  IdType id_type = IdType::u16;
  std::int64_t id_min = 0, id_max = 0;  ///< of the source ids; 0 and -1 when there are none
  std::int64_t pad_id = 0;
  std::optional<std::int64_t> eos_id, bos_id;
  std::int64_t position_start = 0;
  bool derived = true;   ///< segment and position ids are written
  std::string compress;  ///< "" or "zstd:LEVEL"

  std::int64_t entry_width = 0, segment_width = 0;  ///< of presets with fixed widths: values a row of masked tokens, of segments

  std::vector<Column> columns;  ///< ascending by name
  std::vector<std::string> not_carried;
  std::string loss_column;  ///< "" where no column tells which tokens take part in the loss
  std::int64_t source_loss_tokens = 0, loss_tokens = 0;
  /// Every option that decides the bytes, in a fixed order: name and value as JSON text ("\"error\"", "0", "null", "true").
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<ManifestSource> sources;
  Fingerprint source_fingerprint;
  std::optional<Fingerprint> packed_fingerprint = Fingerprint{}, removed_fingerprint = Fingerprint{};  ///< none without tokens
  RemovedCounts removed{};
  std::int64_t added_eos = 0, added_bos = 0;
  std::int64_t repeated_rows = 0, repeated_sequences = 0, repeated_tokens = 0, fill_rows = 0;

  std::vector<ManifestPartition> partitions;
  std::vector<ManifestShard> shards;
  std::int64_t hidden_labels = 0;           ///< over the planned rows
  std::vector<ManifestFile> files;          ///< beside the manifest: plans, removed.csv
  std::vector<ManifestFile> trainer_files;  ///< what a trainer reads that belongs to no shard; not in the native layout

  bool holds_tokens() const;      ///< else its rows say where their tokens lie in the sources
  bool has_begins() const;        ///< the same by number, for one source at least (seq_begin.npy)
  std::int64_t slots() const;     ///< that real tokens take
  double efficiency() const;      ///< of all slots of the planned rows, what real tokens take; 1 for no rows
  double packing_factor() const;  ///< sequences / planned rows; 0 for no rows
  std::int64_t planned_rows() const { return rows - repeated_rows - fill_rows; }
};

/// The exact bytes of manifest.json: key order fixed, no clock, host, absolute path or thread count, checksum last.
std::string to_json(const Manifest& manifest);

/// Inverse of to_json(). \throws Error{bad_data} for a bad checksum, a missing or mistyped key, or another format or version,
/// naming `path` and the key.
Manifest manifest_from_json(const std::string& text, const std::string& path);

}  // namespace shardpack
