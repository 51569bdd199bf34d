// The seekable zstd layout: independent frames, then a skippable frame with a table of their sizes. Ordinary decoders read such a
// file as one stream; with the table any frame is found and decoded alone. docs/formats.md has the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "io/file.h"
#include "shardpack/byte_buffer.h"

namespace shardpack {

/// Makes frames; keeps the library's working memory from one to the next. Not thread-safe.
class ZstdCompressor {
 public:
  /// \param level  1 to max_level()
  explicit ZstdCompressor(int level);
  ~ZstdCompressor();
  static int max_level();

  /// One whole frame, with its content size and a checksum of the content. Equal bytes give an equal frame, on any thread.
  ByteBuffer frame(std::span<const std::byte> bytes);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// Collects the sizes of the frames of a file as they are written.
class ZstdSeekTable {
 public:
  /// \param frame  as ZstdCompressor made it
  /// \return bytes of its content. \throws Error{limit} for a frame of 4 GiB or more
  std::int64_t add(std::span<const std::byte> frame);
  /// The skippable frame that ends the file.
  std::vector<std::byte> bytes() const;

 private:
  struct Entry {
    std::uint32_t compressed, decompressed;  // bytes
  };
  std::vector<Entry> entries_;
};

/// Reads a seekable file at any place. Immutable but for a cache of one frame behind a lock, so thread-safe.
class ZstdSeekableReader {
 public:
  /// Takes the file; reads and checks the table. \throws Error{bad_data} when there is none or it disagrees with the file.
  explicit ZstdSeekableReader(File file);

  std::int64_t size() const { return frames_.back().decompressed_begin; }  ///< bytes, decompressed
  std::int64_t frames() const { return static_cast<std::int64_t>(frames_.size()) - 1; }

  /// \throws Error{bad_data} naming the frame when it is damaged, or when the bytes end before.
  void read_at(std::int64_t offset, std::span<std::byte> out) const;

 private:
  struct Frame {
    std::int64_t compressed_begin = 0, decompressed_begin = 0;  // bytes
  };
  using Content = std::shared_ptr<const std::vector<std::byte>>;
  Content frame(std::size_t index) const;
  Content decode(std::size_t index) const;

  File file_;
  std::vector<Frame> frames_;  // one more than there are: the last holds the ends
  mutable std::mutex mutex_;   // guards the two below: a reader of consecutive rows decodes each frame once
  mutable std::size_t cached_index_ = 0;
  mutable Content cached_;
};

}  // namespace shardpack
