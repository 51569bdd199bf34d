// Decoders of compressed data, part by part: a part is a member of a gzip file or a frame of a zstd file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace shardpack {

enum class Compression : std::uint8_t { none, gzip, zstd };

/// By the first bytes. \param head  at least the first 4 bytes, where there are as many
Compression compression_of(std::string_view head);

/// zstd's own limit for what a decoder should grant without being asked; `zstd --long` goes above it.
constexpr std::int64_t kDefaultWindowBytes = std::int64_t{1} << 27;

/// Turns stored bytes into plain ones.
class PartDecoder {
 public:
  virtual ~PartDecoder() = default;

  /// Decode from the front of `in` to the front of `out` and take off both what was used. Does nothing only when it needs more
  /// input. \throws Error without a place, with `in` at the fault: the caller adds name and offset.
  virtual void decode(std::span<const std::byte>& in, std::span<std::byte>& out) = 0;
  virtual std::string_view part() const = 0;  ///< what messages call one

  bool between_parts() const { return between_parts_; }
  std::int64_t parts() const { return parts_; }  ///< complete ones
  /// So many have been decoded elsewhere.
  void begin_after(std::int64_t parts) { parts_ = parts; }

 protected:
  void begin_part() { between_parts_ = false; }
  void end_part() {
    between_parts_ = true;
    ++parts_;
  }
  [[noreturn]] void fail_damaged(std::string_view reason) const;
  [[noreturn]] void fail_foreign() const;

 private:
  bool between_parts_ = true;
  std::int64_t parts_ = 0;
};

/// \param compression       not none
/// \param max_window_bytes  of zstd; kDefaultWindowBytes at least
std::unique_ptr<PartDecoder> make_part_decoder(Compression compression, std::int64_t max_window_bytes);

/// What the front of some stored bytes says of the length of the part that begins there.
struct PartLength {
  enum class Known : std::uint8_t {
    yes,
    needs_more,  ///< bytes than there are
    no,          ///< it has to be decoded to be known: every gzip member that is not a BGZF block, or data are damaged
  } known = Known::no;
  std::size_t bytes = 0;
};
PartLength part_length(Compression compression, std::span<const std::byte> stored);

}  // namespace shardpack
