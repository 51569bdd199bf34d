#include "io/system_calls.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

namespace shardpack::sys {

int open(const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); }
int open_temporary(char* name_template, int flags) { return ::mkostemp(name_template, flags); }
int close(int descriptor) { return ::close(descriptor); }
ssize_t read(int descriptor, void* bytes, std::size_t count) { return ::read(descriptor, bytes, count); }
ssize_t pread(int descriptor, void* bytes, std::size_t count, off_t offset) { return ::pread(descriptor, bytes, count, offset); }
ssize_t pwrite(int descriptor, const void* bytes, std::size_t count, off_t offset) {
  return ::pwrite(descriptor, bytes, count, offset);
}
int ftruncate(int descriptor, off_t bytes) { return ::ftruncate(descriptor, bytes); }
int fsync(int descriptor) { return ::fsync(descriptor); }
void reserve(int descriptor, off_t bytes) { ::fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, bytes); }
void start_writeback(int descriptor, off_t offset, off_t bytes) {
  ::sync_file_range(descriptor, offset, bytes, SYNC_FILE_RANGE_WRITE);
}
int try_lock(int descriptor, bool shared) { return ::flock(descriptor, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB); }
int mkdir(const char* path, mode_t mode) { return ::mkdir(path, mode); }
int unlink(const char* path) { return ::unlink(path); }
int rmdir(const char* path) { return ::rmdir(path); }
int rename(const char* from, const char* to) { return ::rename(from, to); }
int exchange(const char* a, const char* b) { return ::renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE); }
int set_modified(const char* path, const timespec& time) {
  const timespec times[] = {{0, UTIME_OMIT}, time};
  return ::utimensat(AT_FDCWD, path, times, 0);
}

}  // namespace shardpack::sys
