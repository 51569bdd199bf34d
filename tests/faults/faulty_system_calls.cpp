#include "faulty_system_calls.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "io/system_calls.h"

namespace shardpack::faults {

namespace {

namespace fs = std::filesystem;

std::mutex mutex;  // of everything below: calls come one at a time
Plan plan;
Counts count;
bool first_write_on_full_disk = true;

// ---- what a power cut takes ---------------------------------------------------------------------------------------------------

struct Content {
  std::string synced;
  bool dirty = false;
};
std::map<ino_t, Content> contents;     // of files that were opened for writing
std::set<std::string> unsynced_names;  // paths that were made, and whose folder was not synced since
struct Rename {
  std::string from, to;
  bool exchange;
};
std::vector<Rename> unsynced_renames;

std::string absolute(const char* path) { return fs::absolute(path).lexically_normal().string(); }
std::string path_of(int descriptor) {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor), ignored).string();
}
ino_t inode_of(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}
std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void note_opened(int descriptor, const std::string& path, bool is_new) {
  const ino_t inode = inode_of(descriptor);
  if (is_new) {
    contents[inode] = {};
    unsynced_names.insert(path);
  } else if (contents.find(inode) == contents.end()) {
    contents[inode].synced = bytes_of(path);
  }
}

void note_synced(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return;
  const std::string path = path_of(descriptor);
  if (!S_ISDIR(status.st_mode)) {
    contents[status.st_ino] = {bytes_of("/proc/self/fd/" + std::to_string(descriptor)), false};
    return;
  }
  const auto is_in_it = [&](const std::string& name) { return fs::path(name).parent_path() == path; };
  for (auto name = unsynced_names.begin(); name != unsynced_names.end();) {
    name = is_in_it(*name) ? unsynced_names.erase(name) : std::next(name);
  }
  unsynced_renames.erase(
      std::remove_if(unsynced_renames.begin(), unsynced_renames.end(), [&](const Rename& rename) { return is_in_it(rename.to); }),
      unsynced_renames.end());
}

/// What is below `from` is below `to` now. The entry itself counts as there: a journal keeps the order of changes to names.
void note_renamed(const std::string& from, const std::string& to, bool exchange) {
  unsynced_renames.push_back({from, to, exchange});
  std::set<std::string> names;
  for (const std::string& name : unsynced_names) {
    if (name == from || (exchange && name == to)) continue;
    const auto moved = [&](const std::string& old, const std::string& now) {
      return name.compare(0, old.size() + 1, old + "/") == 0 ? now + name.substr(old.size()) : std::string();
    };
    std::string now = moved(from, to);
    if (now.empty() && exchange) now = moved(to, from);
    names.insert(now.empty() ? name : now);
  }
  unsynced_names = std::move(names);
}

[[noreturn]] void end_process() {
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

[[noreturn]] void cut_power() {
  for (const std::string& name : unsynced_names) fs::remove_all(name);
  for (const auto& entry : fs::recursive_directory_iterator(plan.root)) {
    struct stat status {};
    if (!entry.is_regular_file() || ::stat(entry.path().c_str(), &status) != 0) continue;
    const auto content = contents.find(status.st_ino);
    if (content == contents.end() || !content->second.dirty) continue;
    std::ofstream(entry.path(), std::ios::binary | std::ios::trunc) << content->second.synced;
  }
  if (plan.kind == Kind::power_cut_before_renames) {
    for (auto rename = unsynced_renames.rbegin(); rename != unsynced_renames.rend(); ++rename) {
      ::renameat2(AT_FDCWD, rename->to.c_str(), AT_FDCWD, rename->from.c_str(), rename->exchange ? RENAME_EXCHANGE : 0);
    }
  }
  end_process();
}

// ---- which call fails ---------------------------------------------------------------------------------------------------------

enum class Effect : std::uint8_t { reads, removes, adds };  // removes: room stays as it is or grows

/// Counts the call. \return the errno with which it fails; 0 = it works
int fault(Effect effect) {
  const std::int64_t number = count.calls++;
  switch (plan.kind) {
    case Kind::none:
    case Kind::short_transfers:
      return 0;
    case Kind::error:
      return number == plan.at ? EIO : 0;
    case Kind::disk_full:
      return number >= plan.at && effect == Effect::adds ? ENOSPC : 0;
    case Kind::read_only:
      return number >= plan.at && effect != Effect::reads ? EROFS : 0;
    case Kind::kill:
      if (number == plan.at) end_process();
      return 0;
    case Kind::power_cut:
    case Kind::power_cut_before_renames:
      if (number == plan.at) cut_power();
      return 0;
  }
  return 0;
}

int fail(int error) {
  errno = error;
  return -1;
}

/// Bytes of a transfer; 0 = it is interrupted.
std::size_t transferred(std::size_t bytes) {
  if (plan.kind != Kind::short_transfers) return bytes;
  static int turn = 0;
  turn = (turn + 1) % 4;
  return turn % 2 == 0 ? 0 : std::min<std::size_t>(bytes, turn == 1 ? 4093 : 1);
}

}  // namespace

void begin(const Plan& next) {
  plan = next;
  count = {};
}
Counts counts() { return count; }

}  // namespace shardpack::faults

namespace shardpack::sys {

using namespace shardpack::faults;
using Lock = std::lock_guard<std::mutex>;

int open(const char* path, int flags, mode_t mode) {
  const Lock lock(mutex);
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  const bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
  struct stat status {};
  const bool is_new = (flags & O_CREAT) != 0 && ::lstat(path, &status) != 0;
  if (unnamed && !plan.has_unnamed) return fail(EOPNOTSUPP);
  if (const int error = fault(is_new || unnamed ? Effect::adds : writes ? Effect::removes : Effect::reads)) return fail(error);
  const int descriptor = ::open(path, flags, mode);
  if (descriptor >= 0 && writes && !unnamed) {
    note_opened(descriptor, absolute(path), is_new);
    if ((flags & O_TRUNC) != 0 && !is_new) contents[inode_of(descriptor)].dirty = true;
  }
  return descriptor;
}

int open_temporary(char* name_template, int flags) {
  const Lock lock(mutex);
  if (const int error = fault(Effect::adds)) return fail(error);
  const int descriptor = ::mkostemp(name_template, flags);
  if (descriptor >= 0) note_opened(descriptor, absolute(name_template), true);
  return descriptor;
}

int close(int descriptor) {
  const Lock lock(mutex);
  const int error = fault(Effect::reads);
  const int result = ::close(descriptor);
  return error != 0 ? fail(error) : result;
}

ssize_t read(int descriptor, void* bytes, std::size_t count_) {
  const Lock lock(mutex);
  if (const int error = fault(Effect::reads)) return fail(error);
  const std::size_t part = transferred(count_);
  return part == 0 && count_ > 0 ? fail(EINTR) : ::read(descriptor, bytes, part);
}

ssize_t pread(int descriptor, void* bytes, std::size_t count_, off_t offset) {
  const Lock lock(mutex);
  if (const int error = fault(Effect::reads)) return fail(error);
  const std::size_t part = transferred(count_);
  return part == 0 && count_ > 0 ? fail(EINTR) : ::pread(descriptor, bytes, part, offset);
}

ssize_t pwrite(int descriptor, const void* bytes, std::size_t count_, off_t offset) {
  const Lock lock(mutex);
  std::size_t part = transferred(count_);
  if (part == 0 && count_ > 0) return fail(EINTR);
  if (const int error = fault(Effect::adds)) {
    if (error != ENOSPC || !std::exchange(first_write_on_full_disk, false) || count_ < 2) return fail(error);
    part = count_ / 2;
  }
  contents[inode_of(descriptor)].dirty = true;
  return ::pwrite(descriptor, bytes, part, offset);
}

int ftruncate(int descriptor, off_t bytes) {
  const Lock lock(mutex);
  if (const int error = fault(Effect::removes)) return fail(error);
  contents[inode_of(descriptor)].dirty = true;
  return ::ftruncate(descriptor, bytes);
}

int fsync(int descriptor) {
  const Lock lock(mutex);
  if (const int error = fault(Effect::reads)) return fail(error);
  note_synced(descriptor);
  return 0;
}

void reserve(int, off_t) {}
void start_writeback(int, off_t, off_t) {}

int try_lock(int descriptor, bool shared) {
  const Lock lock(mutex);
  return ::flock(descriptor, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB);
}

int mkdir(const char* path, mode_t mode) {
  const Lock lock(mutex);
  if (const int error = fault(Effect::adds)) return fail(error);
  const int result = ::mkdir(path, mode);
  if (result == 0) {
    unsynced_names.insert(absolute(path));
    if (std::filesystem::path(path).filename().string().rfind("shard-", 0) == 0) ++count.shard_folders;
  }
  return result;
}

int unlink(const char* path) {
  const Lock lock(mutex);
  if (const int error = fault(Effect::removes)) return fail(error);
  unsynced_names.erase(absolute(path));
  return ::unlink(path);
}

int rmdir(const char* path) {
  const Lock lock(mutex);
  if (const int error = fault(Effect::removes)) return fail(error);
  unsynced_names.erase(absolute(path));
  return ::rmdir(path);
}

int rename(const char* from, const char* to) {
  const Lock lock(mutex);
  if (const int error = fault(Effect::removes)) return fail(error);
  const int result = ::rename(from, to);
  if (result == 0) note_renamed(absolute(from), absolute(to), false);
  return result;
}

int exchange(const char* a, const char* b) {
  const Lock lock(mutex);
  if (!plan.can_exchange) return fail(EINVAL);
  if (const int error = fault(Effect::removes)) return fail(error);
  const int result = ::renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
  if (result == 0) note_renamed(absolute(a), absolute(b), true);
  return result;
}

int set_modified(const char* path, const timespec& time) {
  const Lock lock(mutex);
  if (const int error = fault(Effect::removes)) return fail(error);
  const timespec times[] = {{0, UTIME_OMIT}, time};
  return ::utimensat(AT_FDCWD, path, times, 0);
}

}  // namespace shardpack::sys
