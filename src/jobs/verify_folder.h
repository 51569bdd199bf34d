// Is everything that the manifest lists in the folder, and nothing else?
#pragma once

#include <set>
#include <string>

#include "io/packed_dataset.h"
#include "jobs/verify_issues.h"

namespace shardpack {

/// Compare names and sizes. \return the listed files that are there with their size: "shard-00000-00000/input_ids.npy"
std::set<std::string, std::less<>> check_folder(const PackedDataset& dataset, IssueList& issues);

/// "folder/name", or the name alone beside the manifest.
std::string relative_name(const std::string& folder, const std::string& name);

}  // namespace shardpack
