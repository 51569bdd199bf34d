#include "io/zstd_seekable.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/units.h"
#include "shardpack/error.h"

namespace shardpack {

static_assert(std::endian::native == std::endian::little, "files are little-endian, and so must this machine be");

namespace {

constexpr std::uint32_t kSkippableMagic = 0x184D2A5E;
constexpr std::uint32_t kSeekableMagic = 0x8F92EAB1;
constexpr std::int64_t kSkippableHeaderBytes = 8;  // magic, size of what follows
constexpr std::int64_t kFooterBytes = 9;           // number of frames, flags, magic
constexpr std::uint8_t kChecksumFlag = 0x80;       // each entry has 4 more bytes
constexpr std::uint8_t kReservedFlags = 0x7C;
constexpr std::uint32_t kMaxFrames = 0x8000000;

void put_u32(std::byte*& at, std::uint32_t value) {
  std::memcpy(at, &value, sizeof value);
  at += sizeof value;
}

std::uint32_t u32_at(const std::byte* bytes) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// The library's own failures: out of memory, or a parameter that we chose wrongly.
void check(std::size_t code, std::string_view what) {
  if (ZSTD_isError(code)) throw Error(ErrorCode::internal, fmt::format("zstd cannot {}: {}", what, ZSTD_getErrorName(code)));
}

}  // namespace

struct ZstdCompressor::Context {
  Context() : zstd(ZSTD_createCCtx()) {
    if (zstd == nullptr) throw std::bad_alloc();
  }
  ~Context() { ZSTD_freeCCtx(zstd); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ZSTD_CCtx* zstd;
};

ZstdCompressor::ZstdCompressor(int level) : context_(std::make_unique<Context>()) {
  check(ZSTD_CCtx_setParameter(context_->zstd, ZSTD_c_compressionLevel, level), "set the level");
  check(ZSTD_CCtx_setParameter(context_->zstd, ZSTD_c_checksumFlag, 1), "turn checksums on");
}
ZstdCompressor::~ZstdCompressor() = default;

int ZstdCompressor::max_level() { return ZSTD_maxCLevel(); }

ByteBuffer ZstdCompressor::frame(std::span<const std::byte> bytes) {
  ByteBuffer frame(ZSTD_compressBound(bytes.size()));
  const std::size_t size = ZSTD_compress2(context_->zstd, frame.data(), frame.size(), bytes.data(), bytes.size());
  check(size, "compress");
  frame.resize(size);
  return frame;
}

std::int64_t ZstdSeekTable::add(std::span<const std::byte> frame) {
  const std::uint64_t content = ZSTD_getFrameContentSize(frame.data(), frame.size());
  ensure(content != ZSTD_CONTENTSIZE_UNKNOWN && content != ZSTD_CONTENTSIZE_ERROR, "a frame without its content size");
  constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::uint32_t>::max();
  if (content > kMaxBytes || frame.size() > kMaxBytes || entries_.size() >= kMaxFrames) {
    throw Error(ErrorCode::limit, "a block of rows is too large for a zstd seek table (4 GiB); shorter rows would do");
  }
  entries_.push_back({static_cast<std::uint32_t>(frame.size()), static_cast<std::uint32_t>(content)});
  return static_cast<std::int64_t>(content);
}

std::vector<std::byte> ZstdSeekTable::bytes() const {
  const std::size_t content_bytes = entries_.size() * 8 + kFooterBytes;
  std::vector<std::byte> out(kSkippableHeaderBytes + content_bytes);
  std::byte* at = out.data();
  put_u32(at, kSkippableMagic);
  put_u32(at, static_cast<std::uint32_t>(content_bytes));
  for (const Entry& entry : entries_) {
    put_u32(at, entry.compressed);
    put_u32(at, entry.decompressed);
  }
  put_u32(at, static_cast<std::uint32_t>(entries_.size()));
  *at++ = std::byte{0};  // flags: the frames have checksums of their own
  put_u32(at, kSeekableMagic);
  return out;
}

ZstdSeekableReader::ZstdSeekableReader(File file) : file_(std::move(file)) {
  const auto damaged = [this](std::string_view what) {
    throw Error(ErrorCode::bad_data, fmt::format("not a whole seekable zstd file: {}", what), file_.shown());
  };
  const std::int64_t file_bytes = file_.size();
  if (file_bytes < kSkippableHeaderBytes + kFooterBytes) damaged("it is too short");

  std::byte footer[kFooterBytes];
  file_.read_at(file_bytes - kFooterBytes, footer);
  if (u32_at(footer + 5) != kSeekableMagic) damaged("it does not end in a seek table");
  const std::uint32_t frames = u32_at(footer);
  const auto flags = std::to_integer<std::uint8_t>(footer[4]);
  if ((flags & kReservedFlags) != 0) damaged(fmt::format("unknown flags {:#x} in the seek table", flags));
  const std::int64_t entry_bytes = (flags & kChecksumFlag) != 0 ? 12 : 8;
  const std::int64_t table_bytes = kSkippableHeaderBytes + frames * entry_bytes + kFooterBytes;
  if (frames > kMaxFrames || table_bytes > file_bytes) damaged(fmt::format("a seek table of {} frames", with_commas(frames)));

  std::vector<std::byte> table(static_cast<std::size_t>(table_bytes));
  file_.read_at(file_bytes - table_bytes, table);
  if (u32_at(table.data()) != kSkippableMagic || u32_at(table.data() + 4) != table_bytes - kSkippableHeaderBytes) {
    damaged("the seek table has no header of its size");
  }
  frames_.resize(std::size_t{frames} + 1);
  for (std::size_t i = 0; i < frames; ++i) {
    const std::byte* const entry = table.data() + kSkippableHeaderBytes + static_cast<std::int64_t>(i) * entry_bytes;
    frames_[i + 1].compressed_begin = frames_[i].compressed_begin + u32_at(entry);
    frames_[i + 1].decompressed_begin = frames_[i].decompressed_begin + u32_at(entry + 4);
  }
  if (frames_.back().compressed_begin != file_bytes - table_bytes) {
    damaged(fmt::format("its frames take {} bytes, the seek table says {}", with_commas(file_bytes - table_bytes),
                        with_commas(frames_.back().compressed_begin)));
  }
}

void ZstdSeekableReader::read_at(std::int64_t offset, std::span<std::byte> out) const {
  const auto bytes = static_cast<std::int64_t>(out.size());
  if (offset < 0 || offset > size() || bytes > size() - offset) {
    throw Error(ErrorCode::bad_data,
                fmt::format("{} bytes are asked for and {} are there", with_commas(bytes), with_commas(size())), file_.shown(),
                fmt::format("byte {}", with_commas(offset)));
  }
  // The last frame that begins at or before the offset; frames without content are passed over.
  const auto after = std::upper_bound(frames_.begin(), frames_.end(), offset,
                                      [](std::int64_t value, const Frame& frame) { return value < frame.decompressed_begin; });
  auto index = static_cast<std::size_t>(after - frames_.begin()) - 1;
  while (!out.empty()) {
    const Content content = frame(index);
    const auto begin = static_cast<std::size_t>(offset - frames_[index].decompressed_begin);
    const std::size_t part = std::min(out.size(), content->size() - begin);
    std::copy_n(content->begin() + static_cast<std::ptrdiff_t>(begin), part, out.begin());
    out = out.subspan(part);
    offset += static_cast<std::int64_t>(part);
    ++index;
  }
}

ZstdSeekableReader::Content ZstdSeekableReader::frame(std::size_t index) const {
  {
    const std::lock_guard lock(mutex_);
    if (cached_ && cached_index_ == index) return cached_;
  }
  Content content = decode(index);
  const std::lock_guard lock(mutex_);
  cached_index_ = index;
  cached_ = content;
  return content;
}

ZstdSeekableReader::Content ZstdSeekableReader::decode(std::size_t index) const {
  const Frame& begin = frames_[index];
  const Frame& end = frames_[index + 1];
  std::vector<std::byte> compressed(static_cast<std::size_t>(end.compressed_begin - begin.compressed_begin));
  file_.read_at(begin.compressed_begin, compressed);
  const auto damaged = [&](std::string_view what) {
    throw Error(ErrorCode::bad_data, fmt::format("damaged zstd frame: {}", what), file_.shown(),
                fmt::format("frame {}", with_commas(static_cast<std::int64_t>(index))));
  };
  const auto bytes = static_cast<std::size_t>(end.decompressed_begin - begin.decompressed_begin);
  // Before memory is taken for it, the size has to be said twice.
  if (ZSTD_getFrameContentSize(compressed.data(), compressed.size()) != bytes) damaged("its size is not the seek table's");
  auto content = std::make_shared<std::vector<std::byte>>(bytes);
  const std::size_t decoded = ZSTD_decompress(content->data(), content->size(), compressed.data(), compressed.size());
  if (ZSTD_isError(decoded)) damaged(ZSTD_getErrorName(decoded));
  if (decoded != bytes)
    damaged(fmt::format("{} bytes of {}", with_commas(static_cast<std::int64_t>(decoded)),
                        with_commas(static_cast<std::int64_t>(bytes))));
  return content;
}

}  // namespace shardpack
