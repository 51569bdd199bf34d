#include "io/parts_ahead.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "exec/ordered_map.h"
#include "shardpack/byte_buffer.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::size_t kUnitBytes = std::size_t{256} << 10;    // stored; small parts go together
constexpr std::size_t kMaxPartBytes = std::size_t{4} << 20;   // stored; longer ones are decoded as they are read
constexpr std::size_t kMaxPlainBytes = std::size_t{8} << 20;  // that a worker makes of a unit; the rest follows when it is read
constexpr std::int64_t kUnitMemory = std::int64_t{20} << 20;  // stored, plain, and as much of the decoder's window as is plain

/// Some parts, from the first byte of one to the last of another.
struct Unit {
  std::vector<std::byte> stored;
  std::int64_t at = 0;  // in the file
};

/// A unit as far as it is decoded.
struct Decoded {
  std::vector<std::byte> stored;
  std::int64_t at = 0;
  std::unique_ptr<PartDecoder> decoder;
  std::span<const std::byte> rest;  // of `stored`
  ByteBuffer plain;
  std::size_t taken = 0;       // of `plain`
  std::optional<Error> fault;  // comes up behind `plain`
  bool cut_off = false;        // the last part goes on behind `stored`, where none of them should
};

}  // namespace

DecodeAhead DecodeAhead::within(ThreadPool& pool, std::stop_token stop, std::int64_t memory_bytes) {
  int in_flight = default_in_flight(pool);
  if (memory_bytes > 0) in_flight = static_cast<int>(std::min<std::int64_t>(in_flight, memory_bytes / 2 / kUnitMemory));
  return {&pool, std::move(stop), in_flight};
}

class PartsAhead::Work {
 public:
  Work(Compression compression, std::span<const std::byte> head, ReadStored read, Fail fail, std::int64_t max_window_bytes,
       const DecodeAhead& ahead)
      : compression_(compression),
        read_(std::move(read)),
        fail_(std::move(fail)),
        max_window_bytes_(max_window_bytes),
        pending_(head.begin(), head.end()),
        pull_(*ahead.pool, ahead.in_flight, ahead.stop, Cut{*this}, Decode{*this}) {}

  std::size_t read(std::span<std::byte> out) {
    std::span<std::byte> left = out;
    while (!left.empty()) {
      if (!current_ && !(current_ = pull_.next())) break;
      if (!take(*current_, left)) {
        parts_ += current_->decoder->parts();
        if (current_->cut_off) give_up(*current_);
        current_.reset();
      }
    }
    return out.size() - left.size();
  }

  std::int64_t parts() const { return parts_; }
  std::vector<std::byte> take_rest() { return std::move(pending_); }
  std::unique_ptr<PartDecoder> take_decoder() { return std::move(begun_); }

 private:
  struct Cut {
    Work& work;
    std::optional<Unit> operator()() { return work.cut(); }
  };
  struct Decode {
    const Work& work;
    Decoded operator()(Unit&& unit) const { return work.decode(std::move(unit)); }
  };

  /// The next unit, when the end of its first part is known.
  std::optional<Unit> cut() {
    if (begun_) return std::nullopt;
    std::size_t bytes = 0;
    while (bytes < kUnitBytes) {
      const PartLength length = bytes < pending_.size() ? part_length(compression_, std::span(pending_).subspan(bytes))
                                                        : PartLength{PartLength::Known::needs_more};
      if (length.known == PartLength::Known::yes) {
        bytes += length.bytes;
        continue;
      }
      if (length.known == PartLength::Known::no || pending_.size() - bytes >= kMaxPartBytes || !read_more()) break;
    }
    if (bytes == 0) return std::nullopt;
    Unit unit{{pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(bytes)}, cut_bytes_};
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(bytes));
    cut_bytes_ += static_cast<std::int64_t>(bytes);
    return unit;
  }

  bool read_more() {
    const std::size_t before = pending_.size();
    pending_.resize(before + kUnitBytes);
    const std::size_t got = read_(std::span(pending_).subspan(before));
    pending_.resize(before + got);
    return got > 0;
  }

  Decoded decode(Unit&& unit) const {
    Decoded decoded;
    decoded.stored = std::move(unit.stored);
    decoded.at = unit.at;
    decoded.decoder = make_part_decoder(compression_, max_window_bytes_);
    decoded.rest = decoded.stored;
    std::size_t made = 0;
    while (!ended(decoded) && made < kMaxPlainBytes) {
      if (made == decoded.plain.size()) decoded.plain.resize(std::min(kMaxPlainBytes, std::max(kUnitBytes, 2 * made)));
      std::span<std::byte> room = std::span(decoded.plain).subspan(made);
      advance(decoded, room);
      made = decoded.plain.size() - room.size();
    }
    decoded.plain.resize(made);
    return decoded;
  }

  static bool ended(const Decoded& decoded) {
    return decoded.fault || decoded.cut_off || (decoded.rest.empty() && decoded.decoder->between_parts());
  }

  static void advance(Decoded& decoded, std::span<std::byte>& out) {
    const std::size_t in_before = decoded.rest.size(), out_before = out.size();
    try {
      decoded.decoder->decode(decoded.rest, out);
    } catch (const Error& error) {
      decoded.fault = error;
      return;
    }
    decoded.cut_off = decoded.rest.size() == in_before && out.size() == out_before;
  }

  /// Go back to one byte after the other, from the end of `unit` on: what follows it may have been cut anywhere.
  void give_up(Decoded& unit) {
    begun_ = std::move(unit.decoder);
    std::vector<std::byte> rest(unit.rest.begin(), unit.rest.end());
    while (const std::optional<Decoded> later = pull_.next()) rest.insert(rest.end(), later->stored.begin(), later->stored.end());
    pending_.insert(pending_.begin(), rest.begin(), rest.end());
  }

  /// Move plain bytes from the unit to the front of `left`. \return false when the unit has no more
  bool take(Decoded& unit, std::span<std::byte>& left) const {
    if (unit.taken < unit.plain.size()) {
      const std::size_t count = std::min(left.size(), unit.plain.size() - unit.taken);
      std::copy_n(unit.plain.begin() + static_cast<std::ptrdiff_t>(unit.taken), count, left.begin());
      unit.taken += count;
      left = left.subspan(count);
      return true;
    }
    if (!ended(unit)) advance(unit, left);
    if (unit.fault) fail_(*unit.fault, unit.at + static_cast<std::int64_t>(unit.stored.size() - unit.rest.size()));
    return !ended(unit);
  }

  const Compression compression_;
  const ReadStored read_;
  const Fail fail_;
  const std::int64_t max_window_bytes_;
  std::vector<std::byte> pending_;  // stored bytes that are in no unit yet
  std::int64_t cut_bytes_ = 0;      // those before them
  std::int64_t parts_ = 0;
  std::optional<Decoded> current_;
  std::unique_ptr<PartDecoder> begun_;  // of a part that was cut off
  OrderedPull<Cut, Decode> pull_;       // last: its tasks refer to the others
};

PartsAhead::PartsAhead(Compression compression, std::span<const std::byte> head, ReadStored read, Fail fail,
                       std::int64_t max_window_bytes, const DecodeAhead& ahead)
    : work_(std::make_unique<Work>(compression, head, std::move(read), std::move(fail), max_window_bytes, ahead)) {}
PartsAhead::~PartsAhead() = default;

std::size_t PartsAhead::read(std::span<std::byte> out) { return work_->read(out); }
std::int64_t PartsAhead::parts() const { return work_->parts(); }
std::vector<std::byte> PartsAhead::take_rest() { return work_->take_rest(); }
std::unique_ptr<PartDecoder> PartsAhead::take_decoder() { return work_->take_decoder(); }

}  // namespace shardpack
