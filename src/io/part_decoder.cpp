#include "io/part_decoder.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <bit>
#include <new>

#include "shardpack/error.h"

namespace shardpack {

Compression compression_of(std::string_view head) {
  const auto byte = [&](std::size_t i) { return i < head.size() ? static_cast<unsigned char>(head[i]) : 0u; };
  if (byte(0) == 0x1F && byte(1) == 0x8B) return Compression::gzip;
  const bool frame = byte(0) == 0x28 && byte(1) == 0xB5 && byte(2) == 0x2F && byte(3) == 0xFD;
  const bool skippable = (byte(0) & 0xF0u) == 0x50 && byte(1) == 0x2A && byte(2) == 0x4D && byte(3) == 0x18;
  return frame || skippable ? Compression::zstd : Compression::none;
}

void PartDecoder::fail_damaged(std::string_view reason) const {
  throw Error(ErrorCode::bad_data, fmt::format("damaged {}: {}", part(), reason));
}

void PartDecoder::fail_foreign() const { throw Error(ErrorCode::bad_data, fmt::format("other data follow the last {}", part())); }

namespace {

class GzipDecoder final : public PartDecoder {
 public:
  GzipDecoder() {
    constexpr int kGzipOnly = 16;  // neither zlib's wrapper nor none
    if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~GzipDecoder() override { inflateEnd(&stream_); }

  std::string_view part() const override { return "gzip member"; }

  void decode(std::span<const std::byte>& in, std::span<std::byte>& out) override {
    const std::span<const std::byte> given = in;
    if (between_parts()) inflateReset(&stream_);
    begin_part();
    const uInt in_bytes = at_once(in.size()), out_bytes = at_once(out.size());
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));  // zlib only reads it
    stream_.avail_in = in_bytes;
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = out_bytes;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    in = in.subspan(in_bytes - stream_.avail_in);
    out = out.subspan(out_bytes - stream_.avail_out);

    if (result == Z_STREAM_END) end_part();
    if (result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR) return;  // Z_BUF_ERROR: it needs more input
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    const std::string_view reason = stream_.msg == nullptr ? "unknown fault" : stream_.msg;
    if (parts() > 0 && reason == "incorrect header check") {
      in = given;
      fail_foreign();
    }
    fail_damaged(reason);
  }

 private:
  static uInt at_once(std::size_t bytes) { return static_cast<uInt>(std::min<std::size_t>(bytes, std::size_t{1} << 30)); }

  z_stream stream_{};
};

class ZstdDecoder final : public PartDecoder {
 public:
  explicit ZstdDecoder(std::int64_t max_window_bytes) : context_(ZSTD_createDCtx()) {
    if (context_ == nullptr) throw std::bad_alloc();
    const int window_bits =
        static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max(max_window_bytes, kDefaultWindowBytes)))) - 1;
    const int most_bits = ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound;
    ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, std::min(window_bits, most_bits));
  }
  ~ZstdDecoder() override { ZSTD_freeDCtx(context_); }

  std::string_view part() const override { return "zstd frame"; }

  void decode(std::span<const std::byte>& in, std::span<std::byte>& out) override {
    const bool begins = between_parts();
    begin_part();
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    const std::size_t result = ZSTD_decompressStream(context_, &output, &input);
    if (!ZSTD_isError(result)) {
      in = in.subspan(input.pos);
      out = out.subspan(output.pos);
      if (result == 0) end_part();
      return;
    }
    switch (ZSTD_getErrorCode(result)) {
      case ZSTD_error_memory_allocation:
        throw std::bad_alloc();
      case ZSTD_error_frameParameter_windowTooLarge:
        throw Error(ErrorCode::limit,
                    "the zstd window is too large for the memory budget; raise --memory (2 GiB of window are the most)");
      case ZSTD_error_prefix_unknown:
        if (begins && parts() > 0) fail_foreign();
        [[fallthrough]];
      default:
        fail_damaged(ZSTD_getErrorName(result));
    }
  }

 private:
  ZSTD_DCtx* context_;
};

/// BGZF, which bgzip writes, is gzip in members of at most 64 KiB whose length is in their header: an extra field "BC" (SAM/BAM
/// format specification, section 4.1). Headers that differ from bgzip's own are somebody else's, whose field may mean anything.
PartLength bgzf_length(std::span<const std::byte> stored) {
  constexpr std::size_t kHeaderBytes = 18;
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(stored[i]); };
  if (stored.size() < kHeaderBytes) return {PartLength::Known::needs_more};
  constexpr std::size_t kDeflate = 8, kExtraFieldAlone = 4;
  const bool gzip = byte(0) == 0x1F && byte(1) == 0x8B && byte(2) == kDeflate && byte(3) == kExtraFieldAlone;
  constexpr std::array<std::size_t, 6> kField{6, 0, 'B', 'C', 2, 0};  // length of all, name, length of its value
  bool ours = gzip;
  for (std::size_t i = 0; i < kField.size(); ++i) ours = ours && byte(10 + i) == kField[i];
  const std::size_t bytes = (byte(16) | byte(17) << 8) + 1;
  if (!ours || bytes < kHeaderBytes) return {};
  return {bytes <= stored.size() ? PartLength::Known::yes : PartLength::Known::needs_more, bytes};
}

}  // namespace

std::unique_ptr<PartDecoder> make_part_decoder(Compression compression, std::int64_t max_window_bytes) {
  if (compression == Compression::gzip) return std::make_unique<GzipDecoder>();
  return std::make_unique<ZstdDecoder>(max_window_bytes);
}

PartLength part_length(Compression compression, std::span<const std::byte> stored) {
  if (compression == Compression::gzip) return bgzf_length(stored);
  const std::size_t bytes = ZSTD_findFrameCompressedSize(stored.data(), stored.size());
  if (!ZSTD_isError(bytes)) return {PartLength::Known::yes, bytes};
  const bool cut_off = ZSTD_getErrorCode(bytes) == ZSTD_error_srcSize_wrong;
  return {cut_off ? PartLength::Known::needs_more : PartLength::Known::no};
}

}  // namespace shardpack
