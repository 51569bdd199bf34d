// Which files belong to a data file beside them, judged by name.
#pragma once

#include <optional>
#include <string>

namespace shardpack {

/// The data file that `path` accompanies and that is there: train.idx -> train.bin. None for a data file or an orphan.
/// \param group_column  X.COLUMN.npy belongs to X too
std::optional<std::string> data_file_of(const std::string& path, const std::string& group_column);

/// X for a file X.WORD.npy beside a data file X that has a list of boundaries, when X.WORD.npy has none itself: more likely a column
/// of X than token ids. Numbers are no words: X.1.npy is a shard.
std::optional<std::string> owner_of_column(const std::string& path);

/// For a sidecar whose data file is missing: the name that was looked for; "" for anything else.
std::string missing_data_file_of(const std::string& path);

}  // namespace shardpack
