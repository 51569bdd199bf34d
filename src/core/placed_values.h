// Values that belong to tokens one by one (Column::places): which of them a run of tokens has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shardpack/byte_buffer.h"
#include "shardpack/item.h"
#include "shardpack/packed_row.h"
#include "shardpack/sequence_source.h"

namespace shardpack {

/// Some tokens of a sequence.
struct TokenRun {
  SequenceId sequence = 0;
  std::int64_t first_token = 0, tokens = 0;
};

/// Reads the places once, and then the values of any column that goes with them.
class PlacedReader {
 public:
  /// \param places  number of the column that holds_places()
  PlacedReader(const SequenceSource& source, std::size_t places, std::span<const TokenRun> runs);

  /// Of each run where its values begin, and their end.
  const std::vector<std::int64_t>& begin() const { return begin_; }
  /// The token of each value, counted in its sequence.
  const std::vector<std::int64_t>& places() const { return places_; }

  /// Values of column number `column`, in the column's type: one of each of places().
  ByteBuffer read(std::size_t column) const;

 private:
  const SequenceSource& source_;
  std::vector<SequenceId> sequences_;  // of the runs
  std::vector<std::int64_t> begin_{0}, places_;
  std::vector<bool> kept_;  // of the values that the whole sequences have; empty when all are
};

/// How many values the tokens of `item` have in a column of kind list or text.
std::int64_t value_count(const SequenceSource& source, std::size_t column, const Item& item);

/// The number of the column that says of which tokens the values of a placed column are. \throws Error{internal} without one
std::size_t places_column(std::span<const Column> columns, const Column& placed);

/// Stored whole numbers, and back into i32 or i64 of the same size.
std::vector<std::int64_t> whole_numbers(ValueType type, std::span<const std::byte> bytes);
void store_whole_numbers(std::span<const std::int64_t> numbers, ValueType type, std::span<std::byte> bytes);

/// For each segment of a block the slot of its row that token 0 of its sequence has, or would have. A place and this are a slot.
std::vector<std::int64_t> slots_of_token_0(const RowBlock& block);

}  // namespace shardpack
