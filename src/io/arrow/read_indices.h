// Saved datasets of which an indices table picks the rows: what select, shuffle, filter and train_test_split leave behind.
#pragma once

#include "io/formats/format.h"

namespace shardpack {

/// `state_file`: the state.json that names both the data files and the table's. The rows that the table names are gathered, in
/// its order, into a spool; rows that it does not name are not looked at.
OpenedShard open_with_indices(const InputFile& state_file, const ReadOptions& options, const OpenContext& context);

}  // namespace shardpack
