#include "io/byte_stream.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
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

ByteStream::ByteStream(const std::string& path, std::string shown, std::int64_t max_window_bytes, const DecodeAhead& ahead)
    : shown_(std::move(shown)) {
  if (shown_.empty()) shown_ = path == "-" ? "standard input" : path;
  if (path != "-") file_.emplace(path, File::Mode::read, shown_);
  refill();
  const std::string_view head(reinterpret_cast<const char*>(input_.data()), std::min<std::size_t>(input_.size(), 4));
  compression_ = compression_of(head);
  if (compression_ != Compression::none) {
    decoder_ = make_part_decoder(compression_, max_window_bytes);
    if (ahead.in_flight >= 2) {
      ahead_ = std::make_unique<PartsAhead>(
          compression_, std::exchange(input_, {}), [this](std::span<std::byte> out) { return read_stored(out); },
          [this](const Error& error, std::int64_t at) { fail_at(at, error.code(), error.message()); }, max_window_bytes, ahead);
    }
  }
  const auto named = [&](std::string_view suffix) { return std::string_view(path).ends_with(suffix); };
  if (head.empty() && (named(".gz") || named(".zst") || named(".zstd"))) {
    fail(ErrorCode::bad_data, "the file is empty; compressed data have a header even when they hold nothing");
  }
}

ByteStream::~ByteStream() = default;

void ByteStream::fail(ErrorCode code, std::string_view message) const {
  fail_at(stored_bytes_ - static_cast<std::int64_t>(input_.size()), code, message);
}

void ByteStream::fail_at(std::int64_t byte, ErrorCode code, std::string_view message) const {
  throw Error(code, message, shown_, fmt::format("byte {}", with_commas(byte)));
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

void ByteStream::refill() {
  buffer_.resize(kBufferBytes);  // it may have held what was read ahead
  input_ = std::span(buffer_).first(read_stored(buffer_));
}

void ByteStream::skip_rest() {
  ahead_.reset();
  do refill();
  while (!input_.empty());
}

std::size_t ByteStream::read_plain(std::span<std::byte> out) {
  const std::size_t buffered = std::min(input_.size(), out.size());
  std::copy_n(input_.begin(), buffered, out.begin());
  input_ = input_.subspan(buffered);
  return buffered == out.size() ? buffered : buffered + read_stored(out.subspan(buffered));
}

/// Where parts can no longer be told apart, a decoder goes on with what is left.
std::size_t ByteStream::read_ahead(std::span<std::byte> out) {
  const std::size_t bytes = ahead_->read(out);
  if (bytes == out.size()) return bytes;
  if (std::unique_ptr<PartDecoder> begun = ahead_->take_decoder()) decoder_ = std::move(begun);
  decoder_->begin_after(ahead_->parts());
  buffer_ = ahead_->take_rest();
  input_ = buffer_;
  ahead_.reset();
  return bytes;
}

std::size_t ByteStream::read(std::span<std::byte> out) {
  if (!decoder_) return read_plain(out);
  std::span<std::byte> rest = out;
  if (ahead_) rest = rest.subspan(read_ahead(rest));
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
