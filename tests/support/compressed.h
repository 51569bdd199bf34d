// Compressed data as the libraries' own compressors make them.
#pragma once

#include <zlib.h>
#include <zstd.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace shardpack {

inline std::string gzip_member(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::runtime_error("deflate");
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("deflate");
  return out;
}

/// As bgzip writes it: members of at most `block` plain bytes that tell their own length, and an empty one at the end.
inline std::string bgzf(std::string_view text, std::size_t block = 50'000) {
  std::string all;
  for (std::size_t at = 0; at <= text.size(); at += block) {
    const std::string member = gzip_member(text.substr(at, block));
    constexpr std::size_t kHeaderBytes = 10;
    std::string head = member.substr(0, kHeaderBytes) + std::string("\x06\0BC\x02\0", 6);
    head[3] = 4;  // there is an extra field
    const std::size_t last = member.size() + 8 - 1;
    if (last > 0xFFFF) throw std::runtime_error("a BGZF block has 64 KiB");
    head += static_cast<char>(last & 0xFF);
    head += static_cast<char>(last >> 8);
    all += head + member.substr(kHeaderBytes);
  }
  return all;
}

/// With a checksum, as the zstd tool writes by default.
inline std::string zstd_frame(std::string_view text, int window_bits = 0) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  if (window_bits > 0) {  // without a content size, the window is stored as asked for
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_bits);
  }
  std::string out(ZSTD_compressBound(text.size()) + 64, '\0');
  ZSTD_inBuffer input{text.data(), text.size(), 0};
  ZSTD_outBuffer output{out.data(), out.size(), 0};
  if (window_bits > 0) {
    ZSTD_inBuffer nothing{nullptr, 0, 0};
    ZSTD_compressStream2(context, &output, &input, ZSTD_e_continue);
    input = nothing;
  }
  const std::size_t left = ZSTD_compressStream2(context, &output, &input, ZSTD_e_end);
  ZSTD_freeCCtx(context);
  if (left != 0) throw std::runtime_error("zstd");
  out.resize(output.pos);
  return out;
}

inline std::string zstd_skippable_frame(std::string_view content) {
  std::string frame("\x5E\x2A\x4D\x18", 4);
  for (int shift = 0; shift < 32; shift += 8) frame += static_cast<char>(content.size() >> shift & 0xFF);
  return frame.append(content);
}

}  // namespace shardpack
