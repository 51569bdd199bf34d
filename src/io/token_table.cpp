#include "io/token_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/checked.h"
#include "base/units.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

static_assert(std::endian::native == std::endian::little, "ids are read as little-endian machines store them");

constexpr std::size_t kChunkBytes = 16 << 10;  // converted through a buffer that stays in the first-level cache

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
  for (std::size_t i = 0;; ++i) {
    Stored value = load<Stored>(stored, i);
    if constexpr (kSwap) value = swap_bytes(value);
    if (!fits<Out>(value)) fail_id(table, value, first + static_cast<std::int64_t>(i));
  }
}

template <class Stored, class Out>
void convert_stored(const TokenTable& table, std::int64_t first, const std::byte* stored, std::span<Out> out) {
  if (table.big_endian) {
    convert_as<Stored, true>(table, first, stored, out);
  } else {
    convert_as<Stored, false>(table, first, stored, out);
  }
}

template <class Out>
void convert(const TokenTable& table, std::int64_t first, const std::byte* stored, std::span<Out> out) {
  switch (table.type) {
    case IdType::u8:
      return convert_stored<std::uint8_t>(table, first, stored, out);
    case IdType::i8:
      return convert_stored<std::int8_t>(table, first, stored, out);
    case IdType::u16:
      return convert_stored<std::uint16_t>(table, first, stored, out);
    case IdType::i16:
      return convert_stored<std::int16_t>(table, first, stored, out);
    case IdType::u32:
      return convert_stored<std::uint32_t>(table, first, stored, out);
    case IdType::i32:
      return convert_stored<std::int32_t>(table, first, stored, out);
    case IdType::u64:
      return convert_stored<std::uint64_t>(table, first, stored, out);
    case IdType::i64:
      return convert_stored<std::int64_t>(table, first, stored, out);
  }
}

template <class Out>
void read_ids(const TokenTable& table, std::int64_t first, std::span<Out> out) {
  ensure(first >= 0 && first + static_cast<std::int64_t>(out.size()) <= table.tokens, "the tokens are in the table");
  const IdTypeInfo& stored = info(table.type);
  if (static_cast<std::size_t>(stored.bytes) == sizeof(Out) && !table.big_endian) {
    table.file->read_at(table.place_of(first), std::as_writable_bytes(out));
    // Signed ids of the same width are in place already: only their signs are looked at.
    if (stored.name[0] == 'i') convert(table, first, std::as_bytes(out).data(), out);
    return;
  }
  std::array<std::byte, kChunkBytes> chunk;
  const std::size_t ids_a_chunk = kChunkBytes / static_cast<std::size_t>(stored.bytes);
  for (std::size_t done = 0; done < out.size(); done += ids_a_chunk) {
    const std::span<Out> part = out.subspan(done, std::min(ids_a_chunk, out.size() - done));
    const std::int64_t first_in_part = first + static_cast<std::int64_t>(done);
    table.file->read_at(table.place_of(first_in_part),
                        std::span(chunk).first(part.size() * static_cast<std::size_t>(stored.bytes)));
    convert(table, first_in_part, chunk.data(), part);
  }
}

}  // namespace

void TokenTable::read(std::int64_t first, std::span<std::uint32_t> out) const { read_ids(*this, first, out); }
void TokenTable::read(std::int64_t first, std::span<std::uint16_t> out) const { read_ids(*this, first, out); }

void TokenTable::decode(std::int64_t first, std::span<const std::byte> stored, std::span<std::uint32_t> out) const {
  convert(*this, first, stored.data(), out);
}

}  // namespace shardpack
