// The few integer types that the whole library speaks of. Counts and offsets are signed 64-bit everywhere.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shardpack {

/// Tokens or slots of one item or one row. Whole sequences may be longer: their lengths are std::int64_t.
using Length = std::int32_t;

/// Ordinal of a record over all inputs, in input order, empty and null records included.
using SequenceId = std::int64_t;

/// How one token id is stored in a file or block.
enum class IdType : std::uint8_t { u8, i8, u16, i16, u32, i32, u64, i64 };

struct IdTypeInfo {
  IdType type;
  std::string_view name;   ///< as in --dtype and the manifest: "u16"
  std::string_view numpy;  ///< little-endian NPY descr: "<u2"
  int bytes;
};

inline constexpr std::array<IdTypeInfo, 8> kIdTypes{{
    {IdType::u8, "u8", "|u1", 1},
    {IdType::i8, "i8", "|i1", 1},
    {IdType::u16, "u16", "<u2", 2},
    {IdType::i16, "i16", "<i2", 2},
    {IdType::u32, "u32", "<u4", 4},
    {IdType::i32, "i32", "<i4", 4},
    {IdType::u64, "u64", "<u8", 8},
    {IdType::i64, "i64", "<i8", 8},
}};

constexpr const IdTypeInfo& info(IdType type) { return kIdTypes[static_cast<std::size_t>(type)]; }

}  // namespace shardpack
