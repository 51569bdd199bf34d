#include "io/placed_lists.h"

#include <fmt/format.h>

#include "base/units.h"
#include "io/column_choice.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

[[noreturn]] void fail_record(const std::string& shown, std::size_t record, const std::string& message) {
  throw Error(ErrorCode::bad_data, message, shown, fmt::format("record {}", with_commas(static_cast<std::int64_t>(record))));
}

}  // namespace

std::vector<std::int64_t> read_places(const ColumnTable& where, const std::vector<std::int64_t>& record_begin, std::size_t first,
                                      std::size_t last, const std::string& shown) {
  for (const ValueTable::Stretch& stretch : where.values.stretches) {
    if (stretch.type < ValueType::f16) continue;
    throw Error(
        ErrorCode::bad_data,
        fmt::format("the column '{}' holds floating-point numbers; positions are whole numbers, from 0", where.column.name),
        shown);
  }
  const std::vector<std::int64_t>& begin = where.begin;
  const std::int64_t from = begin[first], count = begin[last] - from;
  std::vector<std::int64_t> places(static_cast<std::size_t>(count));
  where.values.read(from, count, ValueType::i64, reinterpret_cast<std::byte*>(places.data()));
  for (std::size_t record = first; record < last; ++record) {
    const std::int64_t length = record_begin[record + 1] - record_begin[record];
    for (std::int64_t i = begin[record]; i < begin[record + 1]; ++i) {
      const std::int64_t place = places[static_cast<std::size_t>(i - from)];
      if (place >= 0 && place < length) continue;
      fail_record(shown, record,
                  fmt::format("{}[{}] is {}; it is a position in a sequence of {} tokens", where.column.name,
                              with_commas(i - begin[record]), place, with_commas(length)));
    }
  }
  return places;
}

void check_equal_lists(const ColumnTable& table, const ColumnTable& where, std::size_t first, std::size_t last,
                       const std::string& shown) {
  for (std::size_t record = first; record < last; ++record) {
    const std::int64_t own = table.begin[record + 1] - table.begin[record],
                       places = where.begin[record + 1] - where.begin[record];
    if (own != places) fail_record(shown, record, unequal_lists(table.column.name, own, where.column.name, places));
  }
}

}  // namespace shardpack
