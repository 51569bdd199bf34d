// Files by descriptor: every read and write is complete or an Error that names the path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shardpack {

/// Owns a descriptor. Reading and writing at an offset is thread-safe.
class File {
 public:
  enum class Mode {
    read,
    create,            ///< or make empty
    create_exclusive,  ///< it must not be there
    update,            ///< for reading and writing, created where it is missing; never a link
  };

  /// `shown` is how errors name the file (default: the path). Regular files only for Mode::read: a folder, pipe or device is
  /// Error{io}, so that no input can block or never end.
  File(const std::string& path, Mode mode, std::string shown = {});
  /// An unlinked file in `folder`, for spools.
  static File temporary(const std::string& folder);
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;

  std::int64_t size() const;
  const std::string& shown() const { return shown_; }
  int descriptor() const { return descriptor_; }

  /// Read exactly out.size() bytes at `offset`. \throws Error{io} when the file ends before (it was cut short while in use).
  void read_at(std::int64_t offset, std::span<std::byte> out) const;
  /// Read up to out.size() bytes at `offset`; fewer only at the end of the file.
  std::size_t read_some_at(std::int64_t offset, std::span<std::byte> out) const;
  void write_at(std::int64_t offset, std::span<const std::byte> bytes) const;
  void truncate(std::int64_t bytes) const;
  void reserve(std::int64_t bytes) const;  ///< room on the disk, in one piece if there is one; what is too much is truncated
  void start_writeback(std::int64_t offset, std::int64_t bytes) const;  ///< the disk may begin; sync() is still needed
  void sync() const;                                                    ///< data and size reach the disk
  /// Until the file is closed or the process ends, however it ends. \return false, with errno, when it cannot be had at once
  bool try_lock() const;
  bool try_lock_shared() const;  ///< with others that share it, and none that has it alone
  void close();                  ///< \throws Error{io}: a delayed write error is an error

 private:
  File(int descriptor, std::string shown) : descriptor_(descriptor), shown_(std::move(shown)) {}
  int descriptor_ = -1;
  std::string shown_;
};

/// The whole of a small file (plan, manifest, sidecar). \throws Error{limit} above `max_bytes`.
std::string read_small_file(const std::string& path, std::int64_t max_bytes = std::int64_t{1} << 30);

/// A file of these bytes, durable on return; its name is not. \throws Error{io}
void write_small_file(const std::string& path, std::string_view bytes);

/// XXH3-128 of a whole file, 32 hex digits. \throws Error{io}
std::string hash_file(const File& file);

void make_folder(const std::string& path);  ///< \throws Error{io}, also when it is there
/// Make a folder's entries durable (a rename, a new file).
void sync_folder(const std::string& path);

/// Error{io} for the current errno: "cannot VERB: REASON".
[[noreturn]] void throw_errno(std::string_view verb, const std::string& path);

}  // namespace shardpack
