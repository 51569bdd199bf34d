// Columns whose values belong to tokens one by one (Column::places): are the slots that they give those of the segment's tokens?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "jobs/verify_rows.h"

namespace shardpack {

class PlacedColumns {
 public:
  PlacedColumns(const StoredRows& rows, const RowRules& rules) : rows_(rows), rules_(rules) {}

  /// Read of which tokens of its sequence the values are that segment number `segment` of the block has of column number
  /// `column`. \param ordinal  the segment's number in its row, for issues  \param token_0  slot of the row that the sequence's
  /// first token has, or would have \return what is wrong with them; "" for nothing
  std::string read(std::size_t column, std::size_t segment, std::size_t ordinal, std::int64_t token_0, const PlacedPiece& piece);

  /// After that.
  std::span<const std::int64_t> places() const { return places_; }

 private:
  std::size_t where_of(const Column& column) const;
  std::int64_t slot_at(std::size_t column, std::int64_t i) const;

  const StoredRows& rows_;
  const RowRules& rules_;
  std::vector<std::int64_t> places_;
};

}  // namespace shardpack
