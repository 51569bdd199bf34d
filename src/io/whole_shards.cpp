#include "io/whole_shards.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "exec/ordered_map.h"
#include "io/file.h"
#include "io/owned_folder.h"
#include "shardpack/error.h"

namespace shardpack {

bool is_whole(const std::string& path, const ManifestFile& noted) {
  if (!exists(path)) return false;
  const File file(path, File::Mode::read);
  return file.size() == noted.bytes && hash_file(file) == noted.hash;
}

std::vector<ManifestFile> files_in_output(const ManifestShard& shard, const std::string& folder_prefix) {
  std::vector<ManifestFile> files = shard.trainer_files;
  for (const ManifestFile& file : shard.files)
    files.push_back({fmt::format("{}{}/{}", folder_prefix, shard.folder, file.name), file.bytes, file.hash});
  return files;
}

std::map<std::string, ManifestShard> whole_shards(const std::string& output, const std::string& folder_prefix,
                                                  const std::vector<ManifestShard>& shards, Unreadable unreadable,
                                                  const RunContext& context) {
  std::map<std::string, ManifestShard> whole;
  for (const ManifestShard& shard : shards) whole[shard.folder] = shard;

  struct Check {
    std::string shard;
    ManifestFile file;
    bool good;
  };
  std::vector<Check> checks;
  std::int64_t bytes = 0;
  for (const auto& [name, shard] : whole) {
    for (const ManifestFile& file : files_in_output(shard, folder_prefix)) {
      checks.push_back({name, file, false});
      bytes += file.bytes;
    }
  }
  context.progress.begin_stage("checking", bytes, "bytes");
  std::size_t next = 0;
  const auto produce = [&]() -> std::optional<Check> {
    if (next == checks.size()) return std::nullopt;
    return checks[next++];
  };
  const auto hash = [&](Check&& check) {
    try {
      check.good = is_whole(in_folder(output, check.file.name), check.file);
    } catch (const Error&) {
      if (unreadable == Unreadable::is_a_fault) throw;
    }
    return std::move(check);
  };
  ordered_map(context.pool, default_in_flight(context.pool), context.stop, produce, hash, [&](Check&& check) {
    if (!check.good) whole.erase(check.shard);
    context.progress.advance(check.file.bytes);
  });
  context.progress.end_stage();
  return whole;
}

}  // namespace shardpack
