// Columns beside the token ids: labels, masks, scores. What a column is, how its values are stored, and how they come in blocks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardpack/byte_buffer.h"

namespace shardpack {

/// How one value is stored in a file or block. Packed rows hold u8, i32, i64, f32 and f64.
enum class ValueType : std::uint8_t { u8, i8, u16, i16, u32, i32, u64, i64, f16, f32, f64 };

struct ValueTypeInfo {
  ValueType type;
  std::string_view name;   ///< as in the manifest: "i32"
  std::string_view numpy;  ///< little-endian NPY descr: "<i4"
  int bytes;
};

inline constexpr std::array<ValueTypeInfo, 11> kValueTypes{{
    {ValueType::u8, "u8", "|u1", 1},
    {ValueType::i8, "i8", "|i1", 1},
    {ValueType::u16, "u16", "<u2", 2},
    {ValueType::i16, "i16", "<i2", 2},
    {ValueType::u32, "u32", "<u4", 4},
    {ValueType::i32, "i32", "<i4", 4},
    {ValueType::u64, "u64", "<u8", 8},
    {ValueType::i64, "i64", "<i8", 8},
    {ValueType::f16, "f16", "<f2", 2},
    {ValueType::f32, "f32", "<f4", 4},
    {ValueType::f64, "f64", "<f8", 8},
}};

constexpr const ValueTypeInfo& info(ValueType type) { return kValueTypes[static_cast<std::size_t>(type)]; }

/// What one record has of a column.
enum class ColumnKind : std::uint8_t {
  token,     ///< a value for every token: labels, loss_mask, token_type_ids
  sequence,  ///< one number: a label, a score, an id
  list,      ///< numbers, as many as it likes: masked_lm_positions
  text,      ///< a string, kept as its bytes
};
inline constexpr std::array<std::string_view, 4> kColumnKinds{"token", "sequence", "list", "text"};  // index = ColumnKind

/// What the value at a token speaks of.
enum class Alignment : std::uint8_t {
  plain,           ///< the token itself; a mask's 0 takes no part in the loss
  minus100,        ///< the token itself; -100 takes no part in the loss
  target_shifted,  ///< the next token: shifted left by one already
};
inline constexpr std::array<std::string_view, 3> kAlignments{"plain", "minus100", "target-shifted"};  // index = Alignment

struct Column {
  std::string name;
  ColumnKind kind = ColumnKind::token;
  ValueType type = ValueType::i32;  ///< of the values in packed rows; text has u8
  Alignment alignment = Alignment::plain;
  /// Kind list: the column that says of which tokens its values are, value by value: a value goes where its token goes. Its own
  /// name for that column itself, whose values are places in the sequence and, in packed rows, slots of the row. "": the values
  /// belong to the sequence as a whole.
  std::string places{};

  friend bool operator==(const Column&, const Column&) = default;
};

/// Is it of kind list or text, with as many values for each segment as it has?
constexpr bool is_listed(const Column& column) { return column.kind == ColumnKind::list || column.kind == ColumnKind::text; }

/// Does each of its values belong to one token?
inline bool is_placed(const Column& column) { return !column.places.empty(); }
/// Is it the column that says where?
inline bool holds_places(const Column& column) { return is_placed(column) && column.places == column.name; }

/// Of kind list and text: the values lie in NAME.npy, where each segment's begin and end in NAME_offsets.npy.
inline constexpr std::string_view kOffsetsSuffix = "_offsets";

/// What padding and added tokens hold, and what takes no part in the loss: -100 in labels, of whichever token they speak; else 0.
inline std::int64_t fill_value(const Column& column) {
  const bool of_next = column.alignment == Alignment::target_shifted && column.name == "labels";
  return column.alignment == Alignment::minus100 || of_next ? -100 : 0;
}

/// Values of one column for a run of records or segments, in the column's type.
struct ColumnValues {
  ByteBuffer bytes;                 ///< kind token: for every slot; sequence: one a segment; list, text: one after the other
  std::vector<std::int64_t> begin;  ///< list, text: where each one's values begin, and their end; else empty
};

/// Which columns are carried along.
struct ColumnChoice {
  enum class Which : std::uint8_t { aligned, all, none, named };
  Which which = Which::aligned;  ///< aligned: those with a value for each token, and single numbers

  struct Named {
    std::string name;
    std::optional<ColumnKind> kind;  ///< none: as the values tell
    std::optional<Alignment> alignment;

    friend bool operator==(const Named&, const Named&) = default;
  };
  std::vector<Named> names;  ///< which == named: these alone; else: what is said of them beyond their name

  friend bool operator==(const ColumnChoice&, const ColumnChoice&) = default;
};

}  // namespace shardpack
