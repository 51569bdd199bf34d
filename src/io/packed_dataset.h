// Reads a packed dataset: its manifest, and its arrays whole or block by block. Trusts nothing: names, shapes and sizes are
// checked before they are used, and every access is bounds-checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/manifest_parts.h"
#include "io/npy.h"
#include "shardpack/manifest.h"
#include "shardpack/types.h"

namespace shardpack {

/// An array of numbers in one file, `X.npy` or `X.npy.zst`. Immutable after construction, so thread-safe.
/// A "row" is one index of the first dimension: row_tokens ids of input_ids.npy, three numbers of seq_source.npy.
class PackedArray {
 public:
  /// \throws Error{io} when it cannot be opened, Error{bad_data} when it is not a whole C-order little-endian array of numbers.
  explicit PackedArray(const std::string& path);
  ~PackedArray();
  PackedArray(PackedArray&&) noexcept;
  PackedArray& operator=(PackedArray&&) noexcept;

  const std::string& path() const;
  ValueType type() const;  ///< of the stored elements
  const std::vector<std::int64_t>& shape() const;
  std::int64_t rows() const;          ///< shape()[0]
  std::int64_t row_elements() const;  ///< product of the other dimensions; 1 for a 1-D array

  /// The stored bytes of the rows [first_row, first_row + n), n = out.size() / bytes of a row, which must divide it.
  /// \throws Error{bad_data} when the rows are not there or a compressed frame is damaged.
  void read_bytes(std::int64_t first_row, std::span<std::byte> out) const;

  /// The same as integers, n = out.size() / row_elements(). \throws Error{bad_data} for a value that T cannot hold, and for an
  /// array of floating-point numbers. T is std::uint8_t, std::uint16_t, std::uint32_t, std::int32_t or std::int64_t.
  template <class T>
  void read(std::int64_t first_row, std::span<T> out) const;
  template <class T>
  std::vector<T> read(std::int64_t first_row, std::int64_t count) const;
  template <class T>
  std::vector<T> read_all() const {
    return read<T>(0, rows());
  }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class PackedDataset {
 public:
  /// Reads and checks the manifest; opens nothing else. `path`: the folder, or its manifest.json, hidden or not.
  /// \throws Error{io} when there is no such folder, Error{bad_data} when it has no manifest of ours or a damaged one.
  explicit PackedDataset(const std::string& path);

  const std::string& folder() const { return folder_; }  ///< of the manifest, plans and shards
  /// Of what a trainer reads: folder() in the native layout, else the one above it.
  const std::string& trainer_folder() const { return trainer_folder_; }
  bool native() const { return folder_ == trainer_folder_; }
  const Manifest& manifest() const { return manifest_; }
  const std::vector<ManifestShard>& shards() const { return manifest_.shards; }

  /// Is the array `stem` ("segment_ids") among the shard's files in the manifest, as `.npy` or `.npy.zst`?
  bool has_array(const ManifestShard& shard, std::string_view stem) const;
  /// \throws Error{bad_data} when it is not, and what file_path() and PackedArray throw.
  PackedArray open_array(const ManifestShard& shard, std::string_view stem) const;

  /// Path of a file that the manifest names, `shard_folder` empty for those beside it. \throws Error{bad_data} when the name
  /// leads out of the folder (also by a symbolic link), Error{io} when it is not there.
  std::string file_path(std::string_view shard_folder, std::string_view name) const;
  std::string trainer_path(std::string_view name) const;  ///< the same for a trainer file

 private:
  std::string path_inside(const std::string& folder, const std::string& path, bool plain) const;

  std::string folder_, trainer_folder_;
  Manifest manifest_;
};

/// All of an array of offsets: one more than there are things, from 0, ascending, up to `last`. \throws Error{bad_data} for any
/// others
std::vector<std::int64_t> read_offsets(const PackedArray& array, std::int64_t things, std::int64_t last);

/// Where the rows of a shard begin, in segments, and the tokens of each segment.
struct RowLengths {
  std::vector<std::int64_t> begin;
  std::vector<std::int32_t> tokens;
};
/// \throws Error{bad_data} unless there are as many as the manifest says, none below 0, and no row has more than fit in it
RowLengths read_row_lengths(const PackedDataset& dataset, const ManifestShard& shard);

}  // namespace shardpack
