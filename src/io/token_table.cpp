#include "io/token_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/checked.h"
#include "base/units.h"
#include "core/id_loops.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

static_assert(std::endian::native == std::endian::little, "ids are read as little-endian machines store them");

template <class Stored>
Stored load(const std::byte* stored, std::size_t i) {
  Stored value;  // files do not align their arrays
  std::memcpy(&value, stored + i * sizeof(Stored), sizeof value);
  return value;
}

template <class Stored>
Stored swap_bytes(Stored value) {
  if constexpr (sizeof(Stored) == 2) return static_cast<Stored>(__builtin_bswap16(static_cast<std::uint16_t>(value)));
  if constexpr (sizeof(Stored) == 4) return static_cast<Stored>(__builtin_bswap32(static_cast<std::uint32_t>(value)));
  if constexpr (sizeof(Stored) == 8) return static_cast<Stored>(__builtin_bswap64(static_cast<std::uint64_t>(value)));
  return value;
}

template <class Out, class Stored>
bool fits(Stored value) {
  if constexpr (std::is_signed_v<Stored>) {
    if (value < 0) return false;
  }
  return static_cast<std::make_unsigned_t<Stored>>(value) <= std::uint64_t{std::numeric_limits<Out>::max()};
}

template <class Stored>
[[noreturn]] void fail_id(const TokenTable& table, Stored value, std::int64_t token) {
  std::string message = fmt::format("id {}; token ids are whole numbers from 0 to 4,294,967,295", value);
  if (fits<std::uint32_t>(value)) {
    message = fmt::format("id {} does not fit 16 bits; choose --id-dtype u32", value);
  } else if (std::is_signed_v<Stored> && sizeof(Stored) < 4) {
    message +=
        fmt::format("; ids above {} that were stored as {} come back negative: --dtype {} undoes it",
                    with_commas(std::numeric_limits<Stored>::max()), info(table.type).name, sizeof(Stored) == 2 ? "u16" : "u8");
  }
  throw Error(ErrorCode::bad_data, message, table.file->shown(), fmt::format("token {}", with_commas(token)));
}

/// The first id that Out cannot hold, and its number.
template <class Stored, bool kSwap, class Out>
std::optional<std::pair<std::size_t, Stored>> find_bad(const std::byte* stored, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    Stored value = load<Stored>(stored, i);
    if constexpr (kSwap) value = swap_bytes(value);
    if (!fits<Out>(value)) return std::pair(i, value);
  }
  return std::nullopt;
}

/// One loop without branches, so that it is vectorised; the first bad id is looked for only when there is one.
template <class Stored, bool kSwap, class Out>
void convert_as(const TokenTable& table, std::int64_t first, const std::byte* stored, std::span<Out> out) {
  bool all_fit = true;
  for (std::size_t i = 0; i < out.size(); ++i) {
    Stored value = load<Stored>(stored, i);
    if constexpr (kSwap) value = swap_bytes(value);
    all_fit &= fits<Out>(value);
    out[i] = static_cast<Out>(value);
  }
  if (all_fit) return;
  const auto bad = find_bad<Stored, kSwap, Out>(stored, out.size());
  fail_id(table, bad->second, first + static_cast<std::int64_t>(bad->first));
}

/// Calls visit with a value of the type that ids are stored as.
template <class Visit>
auto with_stored_type(IdType type, Visit visit) {
  switch (type) {
    case IdType::u8:
      return visit(std::uint8_t{});
    case IdType::i8:
      return visit(std::int8_t{});
    case IdType::u16:
      return visit(std::uint16_t{});
    case IdType::i16:
      return visit(std::int16_t{});
    case IdType::u32:
      return visit(std::uint32_t{});
    case IdType::i32:
      return visit(std::int32_t{});
    case IdType::u64:
      return visit(std::uint64_t{});
    case IdType::i64:
      break;
  }
  return visit(std::int64_t{});
}

template <class Out>
void convert(const TokenTable& table, std::int64_t first, const std::byte* stored, std::span<Out> out) {
  with_stored_type(table.type, [&](auto value) {
    using Stored = decltype(value);
    if (table.big_endian) {
      convert_as<Stored, true>(table, first, stored, out);
    } else {
      convert_as<Stored, false>(table, first, stored, out);
    }
  });
}

/// Calls visit(place in bytes, number of tokens) for the parts of [first, first + count) that lie together. `next`: the stretch
/// behind that of an earlier range, which is often the right one again.
template <class Visit>
void for_each_stretch(const TokenTable& table, std::int64_t first, std::int64_t count,
                      std::vector<TokenTable::Stretch>::const_iterator& next, Visit visit) {
  const auto begin = table.stretches.begin(), end_of_all = table.stretches.end();
  const bool again = next != begin && (next - 1)->first <= first && (next == end_of_all || first < next->first);
  if (!again) {
    next = std::upper_bound(begin, end_of_all, first,
                            [](std::int64_t token, const TokenTable::Stretch& stretch) { return token < stretch.first; });
  }
  while (true) {
    const TokenTable::Stretch& stretch = *(next - 1);
    const std::int64_t end = next == table.stretches.end() ? table.tokens : next->first;
    const std::int64_t part = std::min(count, end - first);
    visit(stretch.begin_bytes + (first - stretch.first) * info(table.type).bytes, part);
    first += part;
    count -= part;
    if (count == 0) return;
    ++next;
  }
}

/// Ids that lie together, from `first` of the table on.
template <class Out>
struct IdPiece {
  std::int64_t begin_bytes = 0, bytes = 0, first = 0;
  std::span<Out> out;
};

/// Ids of the same width are wanted as they lie. Only when a signed one is negative are they gone through to name it.
template <class Out>
void check_signs(const TokenTable& table, const IdPiece<Out>& piece, std::span<const std::byte> stored) {
  if (info(table.type).name[0] != 'i') return;
  // Looked at where they came from if that can be, for it is still in a cache.
  const bool aligned = reinterpret_cast<std::uintptr_t>(stored.data()) % alignof(Out) == 0;
  const Out* const at_hand = aligned ? reinterpret_cast<const Out*>(stored.data()) : piece.out.data();
  const std::uint32_t greatest = id_range(std::span(at_hand, piece.out.size())).greatest;
  if (greatest >> (8 * sizeof(Out) - 1) != 0) convert(table, piece.first, std::as_bytes(piece.out).data(), piece.out);
}

template <class Out>
void read_ids(const TokenTable& table, std::span<const TableRange> ranges, Out* ids) {
  const std::int64_t width = info(table.type).bytes;
  const bool as_they_lie = width == sizeof(Out) && !table.big_endian;
  const std::int64_t most = as_they_lie ? table.tokens : kCloseBytes / width;
  std::vector<IdPiece<Out>> pieces;
  pieces.reserve(ranges.size());
  auto next = table.stretches.begin();
  for (const TableRange& range : ranges) {
    ensure(range.first >= 0 && range.count >= 0 && range.first <= table.tokens - range.count, "the tokens are in the table");
    if (range.count == 0) continue;
    std::int64_t done = 0;
    for_each_stretch(table, range.first, range.count, next, [&](std::int64_t place, std::int64_t tokens) {
      for (std::int64_t part = 0; tokens > 0; tokens -= part, place += part * width, done += part) {
        part = std::min(tokens, most);
        pieces.push_back(
            {place, part * width, range.first + done, std::span(ids + range.destination + done, static_cast<std::size_t>(part))});
      }
    });
  }
  if (pieces.empty()) return;  // such a table may have no file
  read_close(
      *table.file, std::span<const IdPiece<Out>>(pieces),
      [&](const IdPiece<Out>& piece) { return as_they_lie ? std::as_writable_bytes(piece.out) : std::span<std::byte>(); },
      [&](const IdPiece<Out>& piece, std::span<const std::byte> stored) {
        if (as_they_lie) return check_signs(table, piece, stored);
        convert(table, piece.first, stored.data(), piece.out);
      });
}

template <class Out>
void read_ids(const TokenTable& table, std::int64_t first, std::span<Out> out) {
  const TableRange range{first, static_cast<std::int64_t>(out.size()), 0};
  read_ids(table, std::span(&range, 1), out.data());
}

}  // namespace

void TokenTable::append(std::int64_t count, std::int64_t begin_bytes) {
  if (count == 0) return;
  const bool follows =
      !stretches.empty() && stretches.back().begin_bytes + (tokens - stretches.back().first) * info(type).bytes == begin_bytes;
  if (!follows) stretches.push_back({tokens, begin_bytes});
  tokens += count;
}

std::string TokenTable::numpy_type() const {
  if (decoded || tokens == 0) return {};
  std::string name(info(type).numpy);
  if (big_endian && name.front() == '<') name.front() = '>';
  return name;
}

std::optional<std::int64_t> TokenTable::place_in_file(std::int64_t first, std::int64_t count) const {
  if (decoded || count == 0) return std::nullopt;
  std::optional<std::int64_t> place;
  auto next = stretches.begin();
  for_each_stretch(*this, first, count, next, [&](std::int64_t begin_bytes, std::int64_t part) {
    const int width = info(type).bytes;
    if (part == count && begin_bytes % width == 0) place = begin_bytes / width;
  });
  return place;
}

void TokenTable::read(std::int64_t first, std::span<std::uint32_t> out) const { read_ids(*this, first, out); }
void TokenTable::read(std::int64_t first, std::span<std::uint16_t> out) const { read_ids(*this, first, out); }
void TokenTable::read(std::span<const TableRange> ranges, std::uint32_t* ids) const { read_ids(*this, ranges, ids); }
void TokenTable::read(std::span<const TableRange> ranges, std::uint16_t* ids) const { read_ids(*this, ranges, ids); }

void TokenTable::decode(std::int64_t first, std::span<const std::byte> stored, std::span<std::uint32_t> out) const {
  convert(*this, first, stored.data(), out);
}

std::string bad_id_message(const std::string& column, std::int64_t index, const std::string& value) {
  return fmt::format("{}[{}] is {}; token ids are whole numbers from 0 to 4,294,967,295 (--ids-column names another column)",
                     column, with_commas(index), value);
}

std::optional<TokenTable::BadId> TokenTable::first_bad(std::int64_t first, std::span<const std::byte> stored) const {
  const std::size_t count = stored.size() / static_cast<std::size_t>(info(type).bytes);
  return with_stored_type(type, [&](auto value) -> std::optional<BadId> {
    using Stored = decltype(value);
    const auto bad = big_endian ? find_bad<Stored, true, std::uint32_t>(stored.data(), count)
                                : find_bad<Stored, false, std::uint32_t>(stored.data(), count);
    if (!bad) return std::nullopt;
    return BadId{first + static_cast<std::int64_t>(bad->first), fmt::format("{}", bad->second)};
  });
}

}  // namespace shardpack
