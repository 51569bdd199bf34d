// Folders that are ours to delete, for a marker stands in them: what is in them, who holds them, and how they go.
#pragma once

#include <sys/stat.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"

namespace shardpack {

/// Stands in every folder that is ours to delete; the run that works there holds a lock on it, which a crash frees, and keeps its
/// journal in it. A run killed in the instant between renaming and removing it leaves it in OUT, where it means nothing.
inline constexpr std::string_view kOwnerMarker = ".shardpack-owner";

std::string in_folder(const std::string& folder, std::string_view name);

/// S_IFREG, S_IFDIR and so on, of the name itself: links are not followed. 0 when there is nothing.
mode_t kind_of(const std::string& path);
bool exists(const std::string& path);
bool is_folder(const std::string& path);
bool has_marker(const std::string& folder);

struct TreeEntry {
  std::string name;  ///< relative to the folder
  mode_t kind;
};
/// Everything below a folder. \throws Error{io}
std::vector<TreeEntry> list_tree(const std::string& folder);
/// What stands in a folder itself; others may change it meanwhile. \throws Error{io}
std::vector<TreeEntry> list_folder(const std::string& folder);

/// The marker of `folder`, made if need be, and locked as long as it is open.
/// \throws Error{usage} when a living run holds it, Error{io}
File lock_marker(const std::string& folder, bool shared = false);

/// A file, or a folder in which nothing is; no error where it is gone. \throws Error{io}
void delete_entry(const std::string& folder, const TreeEntry& entry);
/// Delete what is below a folder, but not what `keep` names. \throws Error{io}
void delete_except(const std::string& folder, const std::set<std::string>& keep);
/// Delete a folder of ours. The marker goes last: whatever a crash leaves is known as ours. \throws Error{io}
void delete_folder(const std::string& folder);

}  // namespace shardpack
