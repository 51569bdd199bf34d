#include "io/byte_stream.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/units.h"
#include "io/system_calls.h"

namespace shardpack {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;

/// What was read ahead of standard input by peek_standard_input(). There is one such descriptor in a process, so there is one
/// of these, as in any C library.
std::string& standard_input_ahead() {
  static std::string ahead;
  return ahead;
}

std::size_t read_descriptor(int descriptor, std::span<std::byte> out, const std::string& shown) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = sys::read(descriptor, out.data() + done, out.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno("read", shown);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

}  // namespace

std::string peek_standard_input(std::size_t bytes) {
  std::string& ahead = standard_input_ahead();
  if (const std::size_t have = ahead.size(); have < bytes) {
    ahead.resize(bytes);
    const auto missing = std::as_writable_bytes(std::span(ahead)).subspan(have);
    ahead.resize(have + read_descriptor(STDIN_FILENO, missing, "standard input"));
  }
  return ahead.substr(0, bytes);
}

Compression compression_of(std::string_view head) {
  const auto byte = [&](std::size_t i) { return i < head.size() ? static_cast<unsigned char>(head[i]) : 0u; };
  if (byte(0) == 0x1F && byte(1) == 0x8B) return Compression::gzip;
  const bool frame = byte(0) == 0x28 && byte(1) == 0xB5 && byte(2) == 0x2F && byte(3) == 0xFD;
  const bool skippable = (byte(0) & 0xF0u) == 0x50 && byte(1) == 0x2A && byte(2) == 0x4D && byte(3) == 0x18;
  return frame || skippable ? Compression::zstd : Compression::none;
}

/// Turns stored bytes into plain ones, part by part: a part is a member of a gzip file or a frame of a zstd file.
class ByteStream::Decoder {
 public:
  virtual ~Decoder() = default;
  /// Decode from the front of `in` to the front of `out` and take off both what was used. Does nothing only when it needs more
  /// input. \throws Error without a place, with `in` at the fault: the stream adds its name and the offset.
  virtual void decode(std::span<const std::byte>& in, std::span<std::byte>& out) = 0;
  virtual std::string_view part() const = 0;

  bool between_parts() const { return between_parts_; }
  std::int64_t parts() const { return parts_; }  ///< complete ones

 protected:
  void begin_part() { between_parts_ = false; }
  void end_part() {
    between_parts_ = true;
    ++parts_;
  }
  [[noreturn]] void fail_damaged(std::string_view reason) const {
    throw Error(ErrorCode::bad_data, fmt::format("damaged {}: {}", part(), reason));
  }
  [[noreturn]] void fail_foreign() const {
    throw Error(ErrorCode::bad_data, fmt::format("other data follow the last {}", part()));
  }

 private:
  bool between_parts_ = true;
  std::int64_t parts_ = 0;
};

class ByteStream::GzipDecoder final : public Decoder {
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

class ByteStream::ZstdDecoder final : public Decoder {
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

ByteStream::ByteStream(const std::string& path, std::string shown, std::int64_t max_window_bytes)
    : shown_(std::move(shown)), buffer_(kBufferBytes) {
  if (shown_.empty()) shown_ = path == "-" ? "standard input" : path;
  if (path != "-") file_.emplace(path, File::Mode::read, shown_);
  refill();
  const std::string_view head(reinterpret_cast<const char*>(input_.data()), std::min<std::size_t>(input_.size(), 4));
  compression_ = compression_of(head);
  if (compression_ == Compression::gzip) decoder_ = std::make_unique<GzipDecoder>();
  if (compression_ == Compression::zstd) decoder_ = std::make_unique<ZstdDecoder>(max_window_bytes);
  const auto named = [&](std::string_view suffix) { return std::string_view(path).ends_with(suffix); };
  if (head.empty() && (named(".gz") || named(".zst") || named(".zstd"))) {
    fail(ErrorCode::bad_data, "the file is empty; compressed data have a header even when they hold nothing");
  }
}

ByteStream::~ByteStream() = default;

void ByteStream::fail(ErrorCode code, std::string_view message) const {
  const auto unread = static_cast<std::int64_t>(input_.size());
  throw Error(code, message, shown_, fmt::format("byte {}", with_commas(stored_bytes_ - unread)));
}

std::size_t ByteStream::read_stored(std::span<std::byte> out) {
  std::size_t bytes = 0;
  if (file_) {
    bytes = file_->read_some_at(stored_bytes_, out);
  } else {
    std::string& ahead = standard_input_ahead();
    bytes = std::min(ahead.size(), out.size());
    std::memcpy(out.data(), ahead.data(), bytes);
    ahead.erase(0, bytes);
    bytes += read_descriptor(STDIN_FILENO, out.subspan(bytes), shown_);
  }
  hash_.update(out.first(bytes));
  stored_bytes_ += static_cast<std::int64_t>(bytes);
  return bytes;
}

void ByteStream::refill() { input_ = std::span(buffer_).first(read_stored(buffer_)); }

void ByteStream::skip_rest() {
  do refill();
  while (!input_.empty());
}

std::size_t ByteStream::read_plain(std::span<std::byte> out) {
  const std::size_t buffered = std::min(input_.size(), out.size());
  std::copy_n(input_.begin(), buffered, out.begin());
  input_ = input_.subspan(buffered);
  return buffered == out.size() ? buffered : buffered + read_stored(out.subspan(buffered));
}

std::size_t ByteStream::read(std::span<std::byte> out) {
  if (!decoder_) return read_plain(out);
  std::span<std::byte> rest = out;
  while (!rest.empty()) {
    if (input_.empty()) refill();
    const bool at_end = input_.empty();
    if (at_end && decoder_->between_parts()) break;
    const std::size_t before = rest.size();
    try {
      decoder_->decode(input_, rest);
    } catch (const Error& error) {
      fail(error.code(), error.message());
    }
    if (at_end && rest.size() == before) {  // nothing was left in the decoder either
      fail(ErrorCode::bad_data,
           fmt::format("the file is cut short: it ends inside {} {}", decoder_->part(), with_commas(decoder_->parts() + 1)));
    }
  }
  return out.size() - rest.size();
}

std::string peek_plain(const std::string& path, std::size_t bytes) {
  if (path == "-") return peek_standard_input(bytes);
  std::string head(bytes, '\0');
  try {
    ByteStream stream(path);
    head.resize(stream.read(std::as_writable_bytes(std::span(head))));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::io) throw;
    head.clear();
  }
  return head;
}

}  // namespace shardpack
