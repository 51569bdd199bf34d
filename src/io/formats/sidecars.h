// Which files belong to a data file beside them, judged by name.
#pragma once

#include <optional>
#include <string>

namespace shardpack {

/// The data file that `path` accompanies and that is there: train.idx -> train.bin. None for a data file or an orphan.
/// \param group_column  X.COLUMN.npy belongs to X too
std::optional<std::string> data_file_of(const std::string& path, const std::string& group_column);

/// The data file that X.WORD.npy is beside (X.npy, X.bin, X.ds, or an X with a list of boundaries), when it has no list of
/// boundaries itself: a column of it, or token ids with an unlucky name. Numbers are no words: X.1.npy is a shard.
std::optional<std::string> owner_of_column(const std::string& path);

/// WORD of X.WORD.npy.
std::string column_of_name(const std::string& path);

/// For a sidecar whose data file is missing: the name that was looked for; "" for anything else.
std::string missing_data_file_of(const std::string& path);

}  // namespace shardpack
