#include "io/part_notes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "io/owned_folder.h"
#include "io/system_calls.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::string_view kPartitionPrefix = "partition-", kPartitionSuffix = ".journal";

/// The partition's number; nothing for another name.
std::optional<std::int64_t> partition_of(std::string_view name) {
  if (!name.starts_with(kPartitionPrefix) || !name.ends_with(kPartitionSuffix)) return std::nullopt;
  name.remove_prefix(kPartitionPrefix.size());
  name.remove_suffix(kPartitionSuffix.size());
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (problem != std::errc{} || end != name.data() + name.size() || number < 0) return std::nullopt;
  return number;
}

std::string partition_file(std::int64_t number) { return fmt::format("{}{:05}{}", kPartitionPrefix, number, kPartitionSuffix); }

}  // namespace

PartNotes::PartNotes(const std::string& partial) : folder_(in_folder(partial, kPartsFolder)) {}

bool PartNotes::there() const { return is_folder(folder_); }

void PartNotes::make_folder() const {
  if (sys::mkdir(folder_.c_str(), 0777) != 0 && errno != EEXIST) throw_errno("create", folder_);
}

void PartNotes::sync() const { sync_folder(folder_); }

File PartNotes::lock_journal(std::int64_t partition) const {
  const std::string path = file(partition_file(partition));
  const bool was_there = exists(path);
  File journal(path, File::Mode::update);
  const bool locked = journal.try_lock();
  if (!locked && (errno == EWOULDBLOCK || was_there)) {
    throw Error(ErrorCode::usage,
                fmt::format("partition {} is being packed by another process{}", partition,
                            errno == EWOULDBLOCK ? "" : " (or was, on a file system without locks: then delete this file)"),
                path);
  }
  return journal;
}

void PartNotes::write(const std::string& name, std::string_view bytes) const {
  const std::string path = file(name), draft = fmt::format("{}.{}", path, ::getpid());
  write_small_file(draft, bytes);
  if (sys::rename(draft.c_str(), path.c_str()) != 0) throw_errno("rename", draft);
  sync();
}

std::vector<NotedPartition> PartNotes::partitions() const {
  std::vector<NotedPartition> noted;
  for (const TreeEntry& entry : list_folder(folder_)) {
    const std::optional<std::int64_t> number = partition_of(entry.name);
    if (!number || entry.kind != S_IFREG) continue;
    const File stored(file(entry.name), File::Mode::read);
    const Journal journal(stored);
    if (!journal.begun()) continue;
    std::map<std::string, ManifestShard> shards;
    for (const ManifestShard& shard : journal.shards()) shards[shard.folder] = shard;
    NotedPartition& partition = noted.emplace_back();
    partition.number = *number;
    partition.identity = journal.identity();
    partition.record = journal.closing();
    for (auto& [name, shard] : shards) partition.shards.push_back(std::move(shard));
  }
  std::sort(noted.begin(), noted.end(), [](const NotedPartition& a, const NotedPartition& b) { return a.number < b.number; });
  return noted;
}

}  // namespace shardpack
