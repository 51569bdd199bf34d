// Where packed rows go: one implementation per container.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "shardpack/byte_buffer.h"
#include "shardpack/column.h"
#include "shardpack/manifest.h"
#include "shardpack/packed_row.h"

namespace shardpack {

/// What a shard will hold; known before its first row is written.
struct ShardPlan {
  std::string folder;  ///< path of the shard's folder, to be created
  std::int64_t rows = 0, segments = 0;
  Length row_tokens = 0;  ///< slots of each row; 0: rows differ, and `row_slots` are all of them
  std::int64_t row_slots = 0;
  IdType id_type = IdType::u16;
  std::uint32_t position_start = 0;
  bool slots = true;         ///< write ids and what is derived from them; else where everything came from, and columns
  bool begins = false;       ///< write where segments lie in the sources' files
  bool derived = true;       ///< write segment and position ids
  bool write_added = false;  ///< some segment of the dataset has an added token
  bool write_slots = false;  ///< some segment's slots differ from its length
  std::int32_t max_segments_in_row = 0;   ///< decides the segment ids' dtype
  int zstd_level = 0;                     ///< 0 = not compressed
  std::vector<Column> columns;            ///< the dataset's
  std::vector<std::int64_t> list_values;  ///< for each column: how many values the shard has, where its kind is list or text
};

/// One file's part of an encoded block.
struct EncodedPart {
  std::size_t file = 0;  ///< index of the sink's file
  ByteBuffer bytes;
};
/// A block's part of what a trainer reads; each container has its own.
struct EncodedRows {
  virtual ~EncodedRows() = default;
};
struct EncodedBlock {
  std::vector<EncodedPart> parts;
  std::unique_ptr<EncodedRows> trainer{};  ///< none in the native layout
  std::int64_t hidden_labels = 0;
};

/// Writes the rows of one shard. encode() is thread-safe and does the work; write() takes the blocks in row order, from one
/// thread; finish() completes, syncs and hashes the files. A sink destroyed before finish() leaves its unfinished files to the
/// owner of the staging folder.
class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual EncodedBlock encode(RowBlock&& block) const = 0;
  virtual void write(EncodedBlock&& block) = 0;
  /// \return name, bytes and hash of every file in the shard's folder, sorted by name
  virtual std::vector<ManifestFile> finish() = 0;

  // After finish(): the files that a trainer reads, where they are others, and how many labels were hidden in them.
  virtual std::vector<ManifestFile> trainer_files() const { return {}; }
  virtual std::int64_t hidden_labels() const { return 0; }
};

/// The native layout (docs/formats.md): NPY v1 files, data 64-byte aligned. Creates the folder. \throws Error{io}
std::unique_ptr<RowSink> make_native_sink(const ShardPlan& plan);

}  // namespace shardpack
