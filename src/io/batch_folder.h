// Reads a batch plan's folder. Trusts nothing: names, shapes and sizes are checked before they are used.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/manifest_parts.h"
#include "io/packed_dataset.h"
#include "shardpack/batch_manifest.h"

namespace shardpack {

/// XXH3-128 of the lengths as little-endian 64-bit numbers: what a plan was made for.
std::string lengths_hash(const std::vector<std::int64_t>& lengths);

class BatchFolder {
 public:
  /// Reads and checks the manifest; opens nothing else. \throws what batch_manifest_from_json() throws, Error{io}
  explicit BatchFolder(const std::string& path);

  /// Empty for the working folder, else with a slash at its end.
  const std::string& folder() const { return folder_; }
  const BatchManifest& manifest() const { return manifest_; }
  bool lists(std::string_view file) const;

  /// The array `stem` ("members"). \throws Error{bad_data} when it is not listed or not a one-dimensional array
  PackedArray open_array(std::string_view stem) const;
  /// The array in `file` ("input_ids.npy", "input_ids.npy.zst") of a shard.
  PackedArray open_array(const ManifestShard& shard, std::string_view file) const;
  /// Tokens of every sequence of the sources, or real tokens of every row. \throws Error{bad_data} when they are not those that
  /// the manifest's hash is of
  std::vector<std::int64_t> read_lengths() const;
  /// weights.npy [first, first + count); all 1 when there is no such file.
  std::vector<float> read_weights(std::int64_t first, std::int64_t count) const;

 private:
  std::string folder_;
  BatchManifest manifest_;
};

}  // namespace shardpack
