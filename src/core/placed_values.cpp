#include "core/placed_values.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "core/column_values.h"

namespace shardpack {

PlacedReader::PlacedReader(const SequenceSource& source, std::size_t places, std::span<const TokenRun> runs) : source_(source) {
  for (const TokenRun& run : runs) sequences_.push_back(run.sequence);
  const ColumnValues whole = source.read_values(places, sequences_);
  const std::vector<std::int64_t> all = whole_numbers(source.columns()[places].type, whole.bytes);
  kept_.resize(all.size());
  for (std::size_t r = 0; r < runs.size(); ++r) {
    for (auto i = static_cast<std::size_t>(whole.begin[r]); i < static_cast<std::size_t>(whole.begin[r + 1]); ++i) {
      kept_[i] = all[i] >= runs[r].first_token && all[i] - runs[r].first_token < runs[r].tokens;
      if (kept_[i]) places_.push_back(all[i]);
    }
    begin_.push_back(static_cast<std::int64_t>(places_.size()));
  }
  if (places_.size() == all.size()) kept_.clear();
}

ByteBuffer PlacedReader::read(std::size_t column) const {
  ColumnValues values = source_.read_values(column, sequences_);
  if (kept_.empty()) return std::move(values.bytes);
  const auto width = static_cast<std::size_t>(info(source_.columns()[column].type).bytes);
  ensure(values.bytes.size() == kept_.size() * width, "a column has a value for each place");
  std::size_t end = 0;
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    if (!kept_[i]) continue;
    std::memmove(values.bytes.data() + end, values.bytes.data() + i * width, width);
    end += width;
  }
  values.bytes.resize(end);
  return std::move(values.bytes);
}

std::int64_t value_count(const SequenceSource& source, std::size_t column, const Item& item) {
  const std::span<const Column> columns = source.columns();
  if (!is_placed(columns[column]) || item.tokens == source.index().place(item.sequence).tokens)
    return source.value_count(column, item.sequence);
  const TokenRun run{item.sequence, item.first_token, item.tokens};
  return PlacedReader(source, places_column(columns, columns[column]), std::span(&run, 1)).begin().back();
}

std::size_t places_column(std::span<const Column> columns, const Column& placed) {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.name == placed.places; });
  ensure(found != columns.end(), "placed values have a column that says where");
  return static_cast<std::size_t>(found - columns.begin());
}

std::vector<std::int64_t> whole_numbers(ValueType type, std::span<const std::byte> bytes) {
  const auto count = static_cast<std::int64_t>(bytes.size()) / info(type).bytes;
  return visit_values(type, bytes.data(), count, [](auto typed) {
    std::vector<std::int64_t> numbers;
    numbers.reserve(typed.size());
    for (const auto value : typed) numbers.push_back(static_cast<std::int64_t>(value));
    return numbers;
  });
}

void store_whole_numbers(std::span<const std::int64_t> numbers, ValueType type, std::span<std::byte> bytes) {
  convert_values(ValueType::i64, std::as_bytes(numbers).data(), static_cast<std::int64_t>(numbers.size()), type, bytes.data());
}

std::vector<std::int64_t> slots_of_token_0(const RowBlock& block) {
  std::vector<std::int64_t> slots;
  slots.reserve(block.segments.size());
  for (std::size_t row = 0; row < static_cast<std::size_t>(block.rows); ++row) {
    std::int64_t at = 0;
    for (std::int64_t s = block.row_begin[row]; s < block.row_begin[row + 1]; ++s) {
      const RowSegment& segment = block.segments[static_cast<std::size_t>(s)];
      slots.push_back(at + (segment.added & kAddedBos) - segment.first_token);
      at += segment.slots;
    }
  }
  return slots;
}

}  // namespace shardpack
