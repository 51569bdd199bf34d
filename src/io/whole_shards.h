// Are the files of finished shards still what was noted of them, byte for byte?
#pragma once

#include <map>
#include <string>
#include <vector>

#include "shardpack/manifest.h"
#include "shardpack/run_context.h"

namespace shardpack {

/// False for a file that is missing too. \throws Error{io} when it cannot be read
bool is_whole(const std::string& path, const ManifestFile& noted);

/// The files of a shard, by their names in the output; `folder_prefix`: what its folder's name begins with there.
std::vector<ManifestFile> files_in_output(const ManifestShard& shard, const std::string& folder_prefix);

/// What becomes of a file that is there and cannot be read.
enum class Unreadable { is_written_anew, is_a_fault };

/// Those of `shards` whose files are whole in the folder `output`, by name. Of a name that is there twice the last one counts.
/// \throws Error{io}
std::map<std::string, ManifestShard> whole_shards(const std::string& output, const std::string& folder_prefix,
                                                  const std::vector<ManifestShard>& shards, Unreadable unreadable,
                                                  const RunContext& context);

}  // namespace shardpack
