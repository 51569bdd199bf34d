#include "io/owned_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "io/system_calls.h"
#include "shardpack/error.h"

namespace shardpack {

namespace fs = std::filesystem;

std::string in_folder(const std::string& folder, std::string_view name) { return fmt::format("{}/{}", folder, name); }

mode_t kind_of(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & S_IFMT : 0;
}
bool exists(const std::string& path) { return kind_of(path) != 0; }
bool is_folder(const std::string& path) { return kind_of(path) == S_IFDIR; }
bool has_marker(const std::string& folder) { return kind_of(in_folder(folder, kOwnerMarker)) == S_IFREG; }

std::vector<TreeEntry> list_tree(const std::string& folder) {
  std::vector<TreeEntry> entries;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    entries.push_back({entry->path().lexically_relative(folder).string(), kind_of(entry->path().string())});
  }
  if (error) throw Error(ErrorCode::io, fmt::format("cannot list: {}", error.message()), folder);
  return entries;
}

std::vector<TreeEntry> list_folder(const std::string& folder) {
  std::vector<TreeEntry> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator(); entry.increment(error)) {
    entries.push_back({entry->path().filename().string(), kind_of(entry->path().string())});
  }
  if (error) throw Error(ErrorCode::io, fmt::format("cannot list: {}", error.message()), folder);
  return entries;
}

File lock_marker(const std::string& folder, bool shared) {
  const std::string marker = in_folder(folder, kOwnerMarker);
  while (true) {
    const bool was_there = exists(marker);
    File file(marker, File::Mode::update);
    std::string refusal;
    if (!(shared ? file.try_lock_shared() : file.try_lock())) {
      if (errno == EWOULDBLOCK) {
        refusal = "another run of shardpack is writing here; wait for it, or choose another output";
      } else if (was_there && !shared) {  // a file system without locks
        refusal = "left by another run of shardpack; delete it if that run has ended";
      }
    }
    struct stat locked {
    }, named{};
    const bool same = ::fstat(file.descriptor(), &locked) == 0 && ::lstat(marker.c_str(), &named) == 0 &&
                      locked.st_ino == named.st_ino && locked.st_dev == named.st_dev;
    if (refusal.empty() && same) return file;
    if (!refusal.empty()) throw Error(ErrorCode::usage, refusal, folder);
    // Its owner ended and deleted it between the opening and the lock: once more.
  }
}

void delete_entry(const std::string& folder, const TreeEntry& entry) {
  const std::string path = in_folder(folder, entry.name);
  const int result = entry.kind == S_IFDIR ? sys::rmdir(path.c_str()) : sys::unlink(path.c_str());
  if (result != 0 && errno != ENOENT) throw_errno("delete", path);
}

void delete_except(const std::string& folder, const std::set<std::string>& keep) {
  std::vector<TreeEntry> entries = list_tree(folder);
  std::reverse(entries.begin(), entries.end());  // what is in a folder goes before the folder
  for (const TreeEntry& entry : entries) {
    if (keep.find(entry.name) == keep.end()) delete_entry(folder, entry);
  }
}

void delete_folder(const std::string& folder) {
  delete_except(folder, {std::string(kOwnerMarker)});
  sys::unlink(in_folder(folder, kOwnerMarker).c_str());
  if (sys::rmdir(folder.c_str()) != 0) throw_errno("delete", folder);
}

}  // namespace shardpack
