// Pulls the bytes of a file or of standard input, decompressed when they are gzip or zstd. Found by content, never by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "io/file.h"
#include "io/part_decoder.h"
#include "io/parts_ahead.h"
#include "shardpack/error.h"

namespace shardpack {

/// All members of a gzip file and all frames of a zstd file, skippable ones included, one after the other.
/// Memory: 256 KiB and the decoder's window (gzip 32 KiB; zstd as stored, at most `max_window_bytes`); with `ahead` that of
/// PartsAhead.
class ByteStream {
 public:
  /// \param path   "-" is standard input
  /// \param shown  how errors name it (default: the path, or "standard input")
  /// \param ahead  who decodes frames and BGZF blocks ahead of the reader; the plain bytes are the same without
  /// \throws Error{io}; Error{bad_data} for an empty file whose name says that it is compressed.
  explicit ByteStream(const std::string& path, std::string shown = {}, std::int64_t max_window_bytes = kDefaultWindowBytes,
                      const DecodeAhead& ahead = {});
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  /// Fill `out`; fewer bytes only at the end of the data. \throws Error{bad_data} with the byte of the stored file where
  /// compressed data are damaged, cut short or followed by something else; Error{limit} for a zstd window above the limit.
  std::size_t read(std::span<std::byte> out);

  /// Take the rest of the stored bytes without decoding them, for their number and hash.
  void skip_rest();

  Compression compression() const { return compression_; }
  /// Stored (compressed) bytes taken so far; after the end of the data, all of them.
  std::int64_t stored_bytes() const { return stored_bytes_; }
  /// XXH3-128 of those, as 32 hex digits.
  std::string stored_hash() const { return hash_.hex(); }

 private:
  std::size_t read_stored(std::span<std::byte> out);
  void refill();
  std::size_t read_plain(std::span<std::byte> out);
  std::size_t read_ahead(std::span<std::byte> out);
  [[noreturn]] void fail(ErrorCode code, std::string_view message) const;
  [[noreturn]] void fail_at(std::int64_t byte, ErrorCode code, std::string_view message) const;

  std::optional<File> file_;  // none: standard input
  std::string shown_;
  std::int64_t stored_bytes_ = 0;
  StreamHash hash_;
  std::vector<std::byte> buffer_;
  std::span<const std::byte> input_;  // the part of the buffer that is not decoded yet
  Compression compression_ = Compression::none;
  std::unique_ptr<PartDecoder> decoder_;
  std::unique_ptr<PartsAhead> ahead_;  // before decoder_ has anything to do
};

/// The first `bytes` of standard input, fewer when it ends before. They stay there for the next ByteStream("-").
std::string peek_standard_input(std::size_t bytes);

/// The first `bytes` of a file's plain data: fewer when they end before, none when they are damaged so early.
/// Of standard input ("-") the stored ones.
std::string peek_plain(const std::string& path, std::size_t bytes);

}  // namespace shardpack
