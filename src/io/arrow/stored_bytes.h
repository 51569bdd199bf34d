// The bytes of one buffer of an Arrow array, in memory or where they lie in the file.
#pragma once

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "io/file.h"

namespace shardpack {

/// Stands in Arrow's arrays for bytes that were left in the file. Arrow looks into no buffer of a record batch that it reads
/// unless it is compressed or of the other byte order, and these are not read this way.
class FileRegion final : public arrow::Buffer {
 public:
  FileRegion(std::shared_ptr<const File> file, std::int64_t begin_bytes, std::int64_t bytes)
      : arrow::Buffer(nullptr, bytes), file_(std::move(file)), begin_bytes_(begin_bytes) {}

  const std::shared_ptr<const File>& file() const { return file_; }
  std::int64_t begin_bytes() const { return begin_bytes_; }

 private:
  std::shared_ptr<const File> file_;
  std::int64_t begin_bytes_;
};

struct StoredBytes {
  std::shared_ptr<const File> file;  ///< none: in memory
  std::int64_t begin_bytes = 0;      ///< where they lie in the file
  std::shared_ptr<arrow::Buffer> memory;
  std::int64_t bytes = 0;

  StoredBytes() = default;
  explicit StoredBytes(const std::shared_ptr<arrow::Buffer>& buffer);  ///< no buffer: no bytes

  /// The bytes from `at` on; the caller has checked that they are there.
  void read(std::int64_t at, std::span<std::byte> out) const;

  /// `count` numbers of type T from number `first` on.
  template <class T>
  std::vector<T> array(std::int64_t first, std::int64_t count) const {
    std::vector<T> values(static_cast<std::size_t>(count));
    read(first * static_cast<std::int64_t>(sizeof(T)), std::as_writable_bytes(std::span(values)));
    return values;
  }

  /// `count` bits from bit `first` on, each as 0 or 1.
  std::vector<std::uint8_t> bits(std::int64_t first, std::int64_t count) const;
};

/// The body of a record batch as Arrow reads its buffers: FileRegions, or the bytes themselves where `in_memory`.
std::unique_ptr<arrow::io::RandomAccessFile> batch_body(std::shared_ptr<const File> file, std::int64_t begin_bytes,
                                                        std::int64_t bytes, bool in_memory);

}  // namespace shardpack
