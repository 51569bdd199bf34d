// A small, valid packed dataset, and the means to damage it: verify and inspect are tested on it without a whole pack.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "shardpack/assignment.h"
#include "shardpack/item.h"
#include "shardpack/manifest.h"

namespace shardpack {

struct TinyOptions {
  std::vector<std::int64_t> lengths{5,  9, 3, 12, 0, 7,
                                    16, 1, 4, 8,  2, 6};  ///< tokens of the sequences, dealt to two source files
  std::uint32_t first_id = 100;                           ///< ids rise from here
  LengthPolicy policy{.row_tokens = 16};
  std::string packer = "lpfhp";
  std::int32_t max_segments = 0;
  std::int64_t partition_sequences = 1000, shard_rows = 1000;
  IdType id_type = IdType::u16;
  std::int64_t position_start = 0;
  bool derived = true;
  int zstd_level = 0;
  std::int64_t repeated_rows = 0, fill_rows = 0;

  friend bool operator==(const TinyOptions&, const TinyOptions&) = default;
};

inline constexpr std::uint32_t kTinyPad = 7, kTinyBos = 8, kTinyEos = 9;

/// Write it into the existing, empty `folder`. \return its manifest
Manifest write_tiny_dataset(const std::string& folder, const TinyOptions& options = {});

/// The source token `position` of sequence `sequence`: what the rows must hold.
std::uint32_t tiny_token(const TinyOptions& options, std::int64_t sequence, std::int64_t position);

/// Paths of all files below `folder`, relative to it, sorted.
std::vector<std::string> files_below(const std::string& folder);

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& bytes);

/// Write the manifest anew with the sizes and hashes that its files have now: what is wrong then is for logic to find.
/// `folder`: of the manifest, which is a hidden one where a trainer reads what is above it.
void write_manifest_of_what_is_there(const std::string& folder, Manifest manifest);

}  // namespace shardpack
