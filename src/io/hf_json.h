// The two JSON files that make a folder of Arrow streams one that `datasets` loads, and the features of its columns.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "shardpack/manifest.h"
#include "shardpack/presets.h"

namespace shardpack {

/// Value of the key "huggingface" in the metadata of Arrow and Parquet files.
std::string hf_metadata(std::span<const OutputColumn> columns);

std::string dataset_info_json(std::span<const OutputColumn> columns);
/// `files`: those with the rows, in order. They also make the fingerprint by which `datasets` caches what it derives.
std::string hf_state_json(const std::vector<ManifestFile>& files);

}  // namespace shardpack
