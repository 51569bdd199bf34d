// Stored column values by their type: one place where a ValueType becomes a C++ type, and what a run of values amounts to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "base/checked.h"
#include "shardpack/column.h"
#include "shardpack/fingerprint.h"

namespace shardpack {

/// visit(std::span<const T>) for the T that `type` stands for. f16 has none; whoever reads it widens it first.
/// `values` are aligned for their type.
template <class Visit>
auto visit_values(ValueType type, const std::byte* values, std::int64_t count, Visit visit) {
  const auto as = [&](auto zero) {
    return visit(std::span(reinterpret_cast<const decltype(zero)*>(values), static_cast<std::size_t>(count)));
  };
  switch (type) {
    case ValueType::u8:
      return as(std::uint8_t{});
    case ValueType::i8:
      return as(std::int8_t{});
    case ValueType::u16:
      return as(std::uint16_t{});
    case ValueType::i16:
      return as(std::int16_t{});
    case ValueType::u32:
      return as(std::uint32_t{});
    case ValueType::i32:
      return as(std::int32_t{});
    case ValueType::u64:
      return as(std::uint64_t{});
    case ValueType::i64:
      return as(std::int64_t{});
    case ValueType::f32:
      return as(float{});
    case ValueType::f64:
      return as(double{});
    case ValueType::f16:
      break;
  }
  ensure(false, "a type whose values are numbers here");
  return as(std::uint8_t{});
}

/// What a pass over a column's values finds. Adds up over any cut of the data.
struct ColumnFacts {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();  ///< of the whole numbers
  std::int64_t greatest = std::numeric_limits<std::int64_t>::min();
  bool fractional = false;       ///< stored as floating-point numbers somewhere
  bool single = true;            ///< every such number is exactly a float32
  std::int64_t loss_tokens = 0;  ///< counted for the column that tells them (loss_column())
  Fingerprint fingerprint;

  /// Take a run of values in, but for the fingerprint and the loss tokens.
  void add(ValueType type, const std::byte* values, std::int64_t count);
  ColumnFacts& operator+=(const ColumnFacts& other);
};

/// The type of packed values, `fill` (fill_value()) among them: u8 for 0 to 255, then i32 and i64; f32 where it holds every value
/// exactly, else f64. A function of the values and not of how they were stored, so that the same data in any format give the same
/// bytes.
ValueType packed_type(ColumnFacts facts, std::int64_t fill);

/// Is it the name of a column that says which tokens take part in the loss: `labels`, or a usual one of a mask?
bool is_loss_name(std::string_view name);

/// Does the column say it, token by token?
bool is_loss_column(const Column& column);

/// What the names of the lists begin with that go with a column of positions: "masked_lm_" of masked_lm_positions. "" for none.
std::string_view stem_of_positions(std::string_view positions);

/// What tells of each position in such a column whether it counts, or, by 0, only fills the list up: masked_lm_weights.
std::string weights_of_positions(std::string_view positions);

/// The one of `columns` that says it for the dataset: `labels`, else a mask; else, with the first that holds_places(), its
/// weights or, where it has none, that column itself, of which each value is a token that takes part. -1 for none.
int loss_column(std::span<const Column> columns);

/// Tokens of `count` values that take part in the loss: all in a column of positions, elsewhere those that are not fill_value().
std::int64_t count_loss_tokens(const Column& column, ValueType type, const std::byte* values, std::int64_t count);

/// The number of the first of `count` values, or of the last, that takes part in the loss; -1 for none.
std::int64_t first_loss_token(const Column& column, ValueType type, const std::byte* values, std::int64_t count);
std::int64_t last_loss_token(const Column& column, ValueType type, const std::byte* values, std::int64_t count);

/// Write `count` values of `from` as `to`. \throws Error{internal} unless every value is exactly representable.
void convert_values(ValueType from, const std::byte* values, std::int64_t count, ValueType to, std::byte* out);

/// Write fill_value(column) `count` times, in the column's type.
void fill_values(const Column& column, std::byte* out, std::int64_t count);

}  // namespace shardpack
