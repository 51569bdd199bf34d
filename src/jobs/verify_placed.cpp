#include "jobs/verify_placed.h"

#include <fmt/format.h>

namespace shardpack {

std::string PlacedColumns::read(std::size_t column, std::size_t segment, std::size_t ordinal, std::int64_t token_0,
                                const PlacedPiece& piece) {
  places_.clear();
  const std::size_t where = where_of(rules_.columns[column]);
  const std::string& slots_name = rules_.columns[where].name;
  const std::span<const std::int64_t> values = rows_.columns[column].offsets, slots = rows_.columns[where].offsets;
  const std::int64_t count = values[segment + 1] - values[segment], slot_count = slots[segment + 1] - slots[segment];
  if (count != slot_count) {
    return fmt::format("{}: segment {} has {} values for {} of {}", rules_.columns[column].name, ordinal, count, slot_count,
                       slots_name);
  }
  const std::int64_t first = slots[segment] - slots.front();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t slot = slot_at(where, first + i), place = slot - token_0;
    if (place < piece.first_token || place - piece.first_token >= piece.tokens)
      return fmt::format("{}: segment {}: slot {} has no token of it", slots_name, ordinal, slot);
    places_.push_back(place);
  }
  return "";
}

/// The number of the column that says where its values belong; the manifest has one.
std::size_t PlacedColumns::where_of(const Column& column) const {
  std::size_t number = 0;
  while (rules_.columns[number].name != column.places) ++number;
  return number;
}

/// Value number `i` of the block of a column of slots.
std::int64_t PlacedColumns::slot_at(std::size_t column, std::int64_t i) const {
  const std::byte* const bytes = rows_.columns[column].bytes.data();
  if (rules_.columns[column].type == ValueType::i64) return reinterpret_cast<const std::int64_t*>(bytes)[i];
  return reinterpret_cast<const std::int32_t*>(bytes)[i];
}

}  // namespace shardpack
