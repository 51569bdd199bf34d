// One shard of a packed dataset while it is verified: its files, what their headers promise, and their hashes as the bytes come
// by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "io/packed_dataset.h"
#include "io/row_reader.h"
#include "jobs/verify_issues.h"
#include "jobs/verify_rows.h"

namespace shardpack {

/// A run of rows of a shard, or of bytes of a file.
struct Range {
  std::int64_t first = 0, count = 0;
};

/// Room for one block, used again and again.
struct BlockBuffers {
  std::vector<std::byte> chunk, ids, segment_ids, position_ids;
  std::vector<std::int32_t> lengths, slots;
  std::vector<std::int64_t> source, begins;
  std::vector<std::uint8_t> added;
  std::vector<std::vector<std::byte>> columns;  // one for each of the dataset's
  std::vector<std::byte> first_labels;
  std::vector<ListValues> trainer;
};

/// Blocks may be read by any thread; everything else is one thread's. Blocks are hashed in order.
class ShardFiles {
 public:
  /// Open the files that are there with their size (`whole`), and compare headers and row offsets with the manifest.
  /// \param output  how its rows became a trainer's; must outlive it
  /// \param trainer_name  of its trainer files, without what tells them apart
  ShardFiles(const PackedDataset& dataset, const ManifestShard& listed, const OutputRules& output,
             const std::string& trainer_name, const std::set<std::string, std::less<>>& whole, IssueList& issues);

  /// Every array is there and has the right form: rows can be read.
  bool readable() const { return readable_; }

  /// Files that rows do not cover: those of a shard that is not readable, those of a trainer, and compressed ones, whose hash is
  /// of their own bytes.
  std::size_t files() const { return files_.size(); }
  std::vector<Range> chunks(std::size_t file) const;
  void read_chunk(std::size_t file, Range bytes, BlockBuffers& to) const;
  void hash_chunk(std::size_t file, Range bytes, BlockBuffers& from);

  std::vector<Range> blocks() const;
  /// \throws Error{bad_data} for a damaged compressed frame or trainer file, naming the file
  StoredRows read_rows(Range rows, BlockBuffers& to) const;
  void hash_rows(Range rows, BlockBuffers& from);

  /// Compare the hashes. \return bytes of the files
  std::int64_t finish(IssueList& issues) const;

 private:
  struct CheckedFile {
    const ManifestFile* listed = nullptr;
    std::string shown, path, stem;
    bool compressed = false;
    std::optional<PackedArray> array;
    StreamHash hash;
  };

  void open_files(const PackedDataset& dataset, const std::set<std::string, std::less<>>& whole, IssueList& issues);
  void open_trainer_files(const PackedDataset& dataset, const std::set<std::string, std::less<>>& whole);
  bool trainer_rows_open(const PackedDataset& dataset, const std::string& trainer_name, IssueList& issues);
  bool arrays_are_there(IssueList& issues) const;
  void find_column_slots();
  bool shapes_fit(IssueList& issues) const;
  bool read_offsets(IssueList& issues);
  bool read_offsets(std::string_view stem, std::int64_t last, std::vector<std::int64_t>& offsets, IssueList& issues) const;
  bool hashed_with_rows(const CheckedFile& file) const { return readable_ && file.array && !file.compressed; }
  void hash_header(CheckedFile& file) const;

  const CheckedFile* find(std::string_view stem) const;
  std::int64_t offset(std::int64_t row) const { return offsets_[static_cast<std::size_t>(row)]; }
  std::int64_t ids_bytes(const CheckedFile& file, std::int64_t rows) const;
  Range column_values(std::size_t column, Range rows) const;
  /// Is the column in an array of the shard's folder?
  bool is_stored(std::size_t column) const { return output_.native() || static_cast<int>(column) != output_.label_column; }
  std::int64_t column_bytes(std::size_t column, std::int64_t values) const;

  const Manifest& manifest_;
  const ManifestShard& listed_;
  const OutputRules& output_;
  std::vector<CheckedFile> files_;
  std::vector<std::int64_t> offsets_;                     // of rows, in segments
  std::vector<std::vector<std::int64_t>> value_offsets_;  // by column: of segments, in values, where its kind is list or text
  std::int64_t column_slots_ = 0;                         // of a row, in columns of kind token
  std::unique_ptr<RowReader> reader_;                     // of the trainer's files
  bool readable_ = false;
};

inline constexpr std::string_view kDamagedBytes = "the bytes differ from what was written (XXH3-128)";

/// Bytes of a block in memory, at most, unless one row has more.
std::int64_t block_bytes(const Manifest& manifest, const OutputRules& output);

}  // namespace shardpack
