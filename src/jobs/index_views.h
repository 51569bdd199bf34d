// Small views of a SequenceIndex that several jobs need.
#pragma once

#include <vector>

#include "shardpack/batch_manifest.h"
#include "shardpack/length_histogram.h"
#include "shardpack/manifest.h"
#include "shardpack/sequence_index.h"

namespace shardpack {

/// Tokens of every record, the empty ones included.
LengthHistogram lengths_of(const SequenceIndex& index);
std::vector<std::int64_t> record_lengths_of(const SequenceIndex& index);  ///< in input order

/// The manifest's entries for the source files.
std::vector<ManifestSource> sources_of(const SequenceIndex& index);

/// Of all files that the manifest lists.
std::int64_t listed_bytes(const Manifest& manifest);
std::int64_t listed_bytes(const BatchManifest& manifest);

}  // namespace shardpack
