// The files of a trainer that belong to no shard: what says how many rows there are, how long, and in which files.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "core/trainer_rows.h"
#include "io/packed_dataset.h"
#include "jobs/verify_issues.h"
#include "jobs/verify_rows.h"

namespace shardpack {

/// Hashes, and what the files say against the columns, the shards and, where every row could be read, `rows`.
/// \param rows  what the planned rows were found to be; null when some could not be read
/// \param whole  files that are there with their size (check_folder)
/// \return their bytes
std::int64_t check_trainer_files(const PackedDataset& dataset, const OutputRules& output, const RowFacts* rows,
                                 const std::set<std::string, std::less<>>& whole, IssueList& issues);

}  // namespace shardpack
