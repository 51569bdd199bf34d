// The one place where files are opened, read, changed and removed: nothing else in the tree calls the system for it (a house test
// looks). A test links another system_calls.cpp, which lets any of them fail; the tool itself has no trace of that.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>

/// Each is the system call of its name, errno included.
namespace shardpack::sys {

int open(const char* path, int flags, mode_t mode = 0);
int open_temporary(char* name_template, int flags);  ///< mkostemp
int close(int descriptor);
ssize_t read(int descriptor, void* bytes, std::size_t count);
ssize_t pread(int descriptor, void* bytes, std::size_t count, off_t offset);
ssize_t pwrite(int descriptor, const void* bytes, std::size_t count, off_t offset);
int ftruncate(int descriptor, off_t bytes);
int fsync(int descriptor);
/// fallocate, without a change of the size; a failure is none, for then room is found as bytes come.
void reserve(int descriptor, off_t bytes);
void start_writeback(int descriptor, off_t offset, off_t bytes);  ///< sync_file_range; a failure shows at fsync
int try_lock(int descriptor, bool shared);                        ///< flock, without waiting
int mkdir(const char* path, mode_t mode);
int unlink(const char* path);
int rmdir(const char* path);
int rename(const char* from, const char* to);
int exchange(const char* a, const char* b);  ///< renameat2 with RENAME_EXCHANGE
int set_modified(const char* path, const timespec& time);

}  // namespace shardpack::sys
