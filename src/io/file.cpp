#include "io/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/hash.h"
#include "base/units.h"
#include "io/file_hash.h"
#include "io/system_calls.h"
#include "shardpack/error.h"

namespace shardpack {

void throw_errno(std::string_view verb, const std::string& path) {
  const int error = errno;
  std::string help;
  if (error == ENOSPC || error == EDQUOT) help = "; free some space or choose another place with -o or --temp-dir";
  throw Error(ErrorCode::io, fmt::format("cannot {}: {}{}", verb, std::strerror(error), help), path);
}

File::File(const std::string& path, Mode mode, std::string shown) : shown_(std::move(shown)) {
  if (shown_.empty()) shown_ = path;
  int flags = O_CLOEXEC;
  if (mode == Mode::read) flags |= O_RDONLY | O_NONBLOCK;  // a pipe without a writer must not block the open
  if (mode == Mode::create) flags |= O_RDWR | O_CREAT | O_TRUNC;
  if (mode == Mode::create_exclusive) flags |= O_RDWR | O_CREAT | O_EXCL;
  if (mode == Mode::update) flags |= O_RDWR | O_CREAT | O_NOFOLLOW;
  descriptor_ = sys::open(path.c_str(), flags, 0666);
  if (descriptor_ < 0) throw_errno(mode == Mode::read ? "open" : "create", shown_);
  if (mode == Mode::read) {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
      sys::close(std::exchange(descriptor_, -1));
      throw Error(ErrorCode::io, "not a regular file; a pipe is read as standard input: give -", shown_);
    }
  }
}

File File::temporary(const std::string& folder) {
  int descriptor = sys::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor < 0) {  // not every file system has O_TMPFILE
    std::string name = folder + "/.shardpack-spool-XXXXXX";
    descriptor = sys::open_temporary(name.data(), O_CLOEXEC);
    if (descriptor < 0) throw_errno("create a temporary file in", folder);
    if (sys::unlink(name.c_str()) != 0) {  // or it would be published with what is in the folder
      const int error = errno;
      sys::close(descriptor);
      errno = error;
      throw_errno("create a temporary file in", folder);
    }
  }
  return File(descriptor, "temporary file in " + folder);
}

File::~File() {
  if (descriptor_ >= 0) sys::close(descriptor_);
}

File::File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), shown_(std::move(other.shown_)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(shown_, other.shown_);
  return *this;
}

std::int64_t File::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) throw_errno("stat", shown_);
  return status.st_size;
}

std::size_t File::read_some_at(std::int64_t offset, std::span<std::byte> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = sys::pread(descriptor_, out.data() + done, out.size() - done, offset + static_cast<std::int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno("read", shown_);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

void File::read_at(std::int64_t offset, std::span<std::byte> out) const {
  const std::size_t done = read_some_at(offset, out);
  if (done != out.size()) {
    throw Error(ErrorCode::io,
                fmt::format("the file ends {} bytes early: it was cut short while being read",
                            with_commas(static_cast<std::int64_t>(out.size() - done))),
                shown_, fmt::format("byte {}", with_commas(offset + static_cast<std::int64_t>(done))));
  }
}

void File::write_at(std::int64_t offset, std::span<const std::byte> bytes) const {
  // For a larger piece the kernel looks for huge pages of its cache, for seconds a gigabyte where memory is fragmented.
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 20;
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = sys::pwrite(descriptor_, bytes.data() + done, std::min(bytes.size() - done, kMostAtOnce),
                                  offset + static_cast<std::int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno("write", shown_);
    done += static_cast<std::size_t>(n);
  }
}

void File::truncate(std::int64_t bytes) const {
  if (sys::ftruncate(descriptor_, bytes) != 0) throw_errno("cut", shown_);
}

void File::reserve(std::int64_t bytes) const { sys::reserve(descriptor_, bytes); }
void File::start_writeback(std::int64_t offset, std::int64_t bytes) const { sys::start_writeback(descriptor_, offset, bytes); }

void File::sync() const {
  if (sys::fsync(descriptor_) != 0) throw_errno("sync", shown_);
}

bool File::try_lock() const { return sys::try_lock(descriptor_, false) == 0; }
bool File::try_lock_shared() const { return sys::try_lock(descriptor_, true) == 0; }

void File::close() {
  if (sys::close(std::exchange(descriptor_, -1)) != 0) throw_errno("close", shown_);
}

std::string read_small_file(const std::string& path, std::int64_t max_bytes) {
  const File file(path, File::Mode::read);
  const std::int64_t size = file.size();
  if (size > max_bytes) {
    throw Error(ErrorCode::limit,
                fmt::format("{} is too large for this file (at most {})", short_bytes(size), short_bytes(max_bytes)), path);
  }
  std::string text(static_cast<std::size_t>(size), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void write_small_file(const std::string& path, std::string_view bytes) {
  File file(path, File::Mode::create);
  file.write_at(0, std::as_bytes(std::span(bytes)));
  file.sync();
  file.close();
}

void hash_file(const File& file, StreamHash& hash) {
  constexpr std::int64_t kChunkBytes = std::int64_t{4} << 20;
  std::vector<std::byte> chunk(static_cast<std::size_t>(std::min(kChunkBytes, std::max<std::int64_t>(file.size(), 1))));
  for (std::int64_t at = 0;; at += static_cast<std::int64_t>(chunk.size())) {
    const std::size_t read = file.read_some_at(at, chunk);
    hash.update(std::span<const std::byte>(chunk).first(read));
    if (read < chunk.size()) return;
  }
}

std::string hash_file(const File& file) {
  StreamHash hash;
  hash_file(file, hash);
  return hash.hex();
}

void make_folder(const std::string& path) {
  if (sys::mkdir(path.c_str(), 0777) != 0) throw_errno("create the folder", path);
}

void sync_folder(const std::string& path) {
  const int descriptor = sys::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw_errno("open", path);
  const int result = sys::fsync(descriptor);
  const int error = errno;
  sys::close(descriptor);
  errno = error;
  // Some file systems cannot sync a folder; their renames are as durable as they get.
  if (result != 0 && error != EINVAL && error != ENOTSUP) throw_errno("sync", path);
}

}  // namespace shardpack
