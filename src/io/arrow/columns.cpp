#include "io/arrow/columns.h"

#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/units.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

std::optional<IdType> integer_type(arrow::Type::type type) {
  switch (type) {
    case arrow::Type::UINT8:
      return IdType::u8;
    case arrow::Type::INT8:
      return IdType::i8;
    case arrow::Type::UINT16:
      return IdType::u16;
    case arrow::Type::INT16:
      return IdType::i16;
    case arrow::Type::UINT32:
      return IdType::u32;
    case arrow::Type::INT32:
      return IdType::i32;
    case arrow::Type::UINT64:
      return IdType::u64;
    case arrow::Type::INT64:
      return IdType::i64;
    default:
      return std::nullopt;
  }
}

/// Of any numbers; true and false are bytes.
std::optional<ValueType> number_type(arrow::Type::type type) {
  switch (type) {
    case arrow::Type::BOOL:
      return ValueType::u8;
    case arrow::Type::HALF_FLOAT:
      return ValueType::f16;
    case arrow::Type::FLOAT:
      return ValueType::f32;
    case arrow::Type::DOUBLE:
      return ValueType::f64;
    default:
      break;
  }
  const std::optional<IdType> integer = integer_type(type);
  return integer ? std::optional(static_cast<ValueType>(*integer)) : std::nullopt;
}

bool is_list(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST:
    case arrow::Type::LIST_VIEW:
    case arrow::Type::LARGE_LIST_VIEW:
      return true;
    default:
      return false;
  }
}

/// Values wrapped in something that only some readers know. `remedy` is empty when the type is none of these.
struct Wrapper {
  std::string what, remedy;
};
Wrapper wrapper_of(const arrow::Field& field) {
  const bool marked = field.metadata() && field.metadata()->Contains("ARROW:extension:name");
  if (marked || field.type()->id() == arrow::Type::EXTENSION) {
    return {"an extension type", "save what it stores: in pyarrow, chunk.storage of each chunk of the column"};
  }
  if (field.type()->id() == arrow::Type::DICTIONARY) {
    return {"dictionary-encoded", "decode it first: in pyarrow, column.dictionary_decode()"};
  }
  if (field.type()->id() == arrow::Type::RUN_END_ENCODED) {
    return {"run-end encoded", "decode it first: in pyarrow, pyarrow.compute.run_end_decode(column)"};
  }
  return {};
}

[[noreturn]] void fail_field(const std::string& message, const std::string& shown) {
  throw Error(ErrorCode::bad_data, message, shown, "row 0");
}

void check_size(const StoredBytes& buffer, std::int64_t entries, std::int64_t bytes_each, std::string_view what,
                const ColumnName& name) {
  if (entries <= buffer.bytes / bytes_each) return;
  name.fail(fmt::format("damaged: {} has {} bytes of {}, too few for its {} entries", name.column, with_commas(buffer.bytes),
                        what, with_commas(entries)),
            0);
}

void check_bits(const StoredBytes& buffer, std::int64_t entries, std::string_view what, const ColumnName& name) {
  check_size(buffer, (entries + 7) / 8, 1, what, name);
}

/// Lengths come from the file: sums and products of what passes here cannot overflow.
void check_length(std::int64_t length, const ColumnName& name) {
  constexpr std::int64_t kMost = std::int64_t{1} << 48;
  if (length < 0 || length > kMost) name.fail(fmt::format("damaged: {} has {} entries", name.column, with_commas(length)), 0);
}

/// The bits that say which entries are there; no bytes when all are.
StoredBytes validity_of(const arrow::ArrayData& array, std::string_view what, const ColumnName& name) {
  if (array.null_count == 0 || array.buffers.empty() || array.buffers[0] == nullptr) return {};
  StoredBytes bits(array.buffers[0]);
  check_bits(bits, array.offset + array.length, what, name);
  return bits;
}

StoredBytes buffer_of(const arrow::ArrayData& array, std::size_t number) {
  return number < array.buffers.size() ? StoredBytes(array.buffers[number]) : StoredBytes();
}

std::vector<std::int64_t> whole_numbers(const StoredBytes& buffer, bool wide, std::int64_t first, std::int64_t count) {
  if (wide) return buffer.array<std::int64_t>(first, count);
  const std::vector<std::int32_t> narrow = buffer.array<std::int32_t>(first, count);
  return {narrow.begin(), narrow.end()};
}

template <class Stored>
void append_as(const StoredBytes& buffer, std::int64_t first, std::int64_t count, std::vector<std::int64_t>& out) {
  for (const Stored value : buffer.array<Stored>(first, count)) out.push_back(static_cast<std::int64_t>(value));
}

void append_numbers(const StoredBytes& buffer, IdType type, std::int64_t first, std::int64_t count,
                    std::vector<std::int64_t>& out) {
  switch (type) {
    case IdType::u8:
      return append_as<std::uint8_t>(buffer, first, count, out);
    case IdType::i8:
      return append_as<std::int8_t>(buffer, first, count, out);
    case IdType::u16:
      return append_as<std::uint16_t>(buffer, first, count, out);
    case IdType::i16:
      return append_as<std::int16_t>(buffer, first, count, out);
    case IdType::u32:
      return append_as<std::uint32_t>(buffer, first, count, out);
    case IdType::i32:
      return append_as<std::int32_t>(buffer, first, count, out);
    case IdType::u64:
      return append_as<std::uint64_t>(buffer, first, count, out);
    case IdType::i64:
      return append_as<std::int64_t>(buffer, first, count, out);
  }
}

}  // namespace

void ColumnName::fail(const std::string& message, std::int64_t row) const {
  throw Error(ErrorCode::bad_data, message, shown, fmt::format("row {}", with_commas(first_row + row)));
}

void check_integer_lists(const arrow::Field& field, bool may_be_bool, std::string_view what, const std::string& shown) {
  const arrow::DataType& type = *field.type();
  const auto refuse = [&](const std::string& found, const std::string& help) {
    fail_field(fmt::format("{} is {}; expected a list of {}: {}", field.name(), found, what, help), shown);
  };
  if (const Wrapper wrapper = wrapper_of(field); !wrapper.what.empty()) refuse(wrapper.what, wrapper.remedy);
  if (!is_list(type)) {
    refuse(type.ToString(), field.name() == "input_ids" ? "tokenize first, or name the column with the ids by --ids-column"
                                                        : "name the column with the ids by --ids-column");
  }
  const arrow::Field& values = *type.field(0);
  if (const Wrapper wrapper = wrapper_of(values); !wrapper.what.empty()) {
    refuse(fmt::format("a list of values that are {}", wrapper.what),
           "cast it first: in pyarrow, column.cast(pyarrow.list_(pyarrow.int32()))");
  }
  if (is_list(*values.type())) {
    refuse(type.ToString(),
           "one sequence a row is read, so flatten lists of lists (a batched map that returned one list a batch?)");
  }
  if (integer_type(values.type()->id()) || (may_be_bool && values.type()->id() == arrow::Type::BOOL)) return;
  refuse(type.ToString(), "cast it first: in pyarrow, column.cast(pyarrow.list_(pyarrow.int32()))");
}

// ---- lists ------------------------------------------------------------------------------------------------------------------

ListColumn::ListColumn(const arrow::ArrayData& array, ColumnName name)
    : name_(std::move(name)), rows_(array.length), offset_(array.offset), validity_(validity_of(array, "null bits", name_)) {
  ensure(array.child_data.size() == 1, "a list has one child");
  const arrow::ArrayData& values = *array.child_data[0];
  check_length(rows_, name_);
  check_length(values.length, name_);
  const arrow::Type::type kind = array.type->id();
  wide_ = kind == arrow::Type::LARGE_LIST || kind == arrow::Type::LARGE_LIST_VIEW;
  const int width = wide_ ? 8 : 4;
  if (kind == arrow::Type::FIXED_SIZE_LIST) {
    layout_ = Layout::fixed;
    fixed_size_ = static_cast<const arrow::FixedSizeListType&>(*array.type).list_size();
    if (fixed_size_ <= 0) name_.fail(fmt::format("{} is a list of {} values in every row", name_.column, fixed_size_), 0);
    if (offset_ + rows_ > values.length / fixed_size_) name_.fail(fmt::format("damaged: {} has too few values", name_.column), 0);
  } else {
    offsets_ = buffer_of(array, 1);
    if (kind == arrow::Type::LIST_VIEW || kind == arrow::Type::LARGE_LIST_VIEW) {
      layout_ = Layout::views;
      sizes_ = buffer_of(array, 2);
      check_size(offsets_, offset_ + rows_, width, "offsets", name_);
      check_size(sizes_, offset_ + rows_, width, "sizes", name_);
    } else if (rows_ > 0) {  // without rows there need not be an offset either
      check_size(offsets_, offset_ + rows_ + 1, width, "offsets", name_);
    }
  }

  value_count_ = values.length;
  values_offset_ = values.offset;
  value_validity_ = validity_of(values, "null bits of values", name_);
  values_ = buffer_of(values, 1);
  if (values.type->id() == arrow::Type::BOOL) {
    is_bool_ = true;
    check_bits(values_, values_offset_ + value_count_, "values", name_);
  } else {
    const std::optional<ValueType> type = number_type(values.type->id());
    ensure(type.has_value(), "the type of the values was checked");
    value_type_ = *type;
    check_size(values_, values_offset_ + value_count_, info(value_type_).bytes, "values", name_);
  }
}

std::vector<ListRow> ListColumn::read_rows(std::int64_t first, std::int64_t count) const {
  std::vector<ListRow> rows(static_cast<std::size_t>(count));
  if (count == 0) return rows;
  switch (layout_) {
    case Layout::fixed:
      for (std::int64_t i = 0; i < count; ++i) {
        rows[static_cast<std::size_t>(i)] = {(offset_ + first + i) * fixed_size_, fixed_size_};
      }
      break;
    case Layout::offsets: {
      const std::vector<std::int64_t> offsets = whole_numbers(offsets_, wide_, offset_ + first, count + 1);
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = {offsets[i], offsets[i + 1] - offsets[i]};
      break;
    }
    case Layout::views: {
      const std::vector<std::int64_t> offsets = whole_numbers(offsets_, wide_, offset_ + first, count);
      const std::vector<std::int64_t> sizes = whole_numbers(sizes_, wide_, offset_ + first, count);
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = {offsets[i], sizes[i]};
      break;
    }
  }
  if (validity_.bytes > 0) {
    const std::vector<std::uint8_t> valid = validity_.bits(offset_ + first, count);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (valid[i] == 0) rows[i] = {0, 0, true};
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ListRow& row = rows[i];
    if (row.begin >= 0 && row.count >= 0 && row.begin <= value_count_ && row.count <= value_count_ - row.begin) continue;
    name_.fail(fmt::format("damaged: {} lies at {} with {} values, and the column has {}", name_.column, with_commas(row.begin),
                           with_commas(row.count), with_commas(value_count_)),
               first + static_cast<std::int64_t>(i));
  }
  return rows;
}

void ListColumn::check_no_nulls(std::int64_t row_number, const ListRow& row) const {
  if (value_validity_.bytes == 0 || row.count == 0) return;
  const std::vector<std::uint8_t> valid = value_validity_.bits(values_offset_ + row.begin, row.count);
  const auto null = std::find(valid.begin(), valid.end(), std::uint8_t{0});
  if (null == valid.end()) return;
  name_.fail(fmt::format("{}[{}] is null; every value has to be a number", name_.column, with_commas(null - valid.begin())),
             row_number);
}

void ListColumn::read_numbers(std::int64_t begin, std::int64_t count, std::vector<std::int64_t>& out) const {
  out.clear();
  if (is_bool_) {
    const std::vector<std::uint8_t> bits = values_.bits(values_offset_ + begin, count);
    out.assign(bits.begin(), bits.end());
  } else {
    append_numbers(values_, type(), values_offset_ + begin, count, out);
  }
}

void ListColumn::read_stored(std::int64_t begin, std::int64_t count, std::vector<std::byte>& out) const {
  const std::size_t before = out.size();
  out.resize(before + static_cast<std::size_t>(count * info(value_type_).bytes));
  const std::span<std::byte> place = std::span(out).subspan(before);
  if (is_bool_) {
    const std::vector<std::uint8_t> bits = values_.bits(values_offset_ + begin, count);
    std::memcpy(place.data(), bits.data(), bits.size());
  } else if (count > 0) {
    values_.read(place_of(begin), place);
  }
}

std::optional<ColumnKind> carried_form(const arrow::Field& field) {
  const arrow::DataType& type = *field.type();
  if (!wrapper_of(field).what.empty()) return std::nullopt;
  if (is_list(type)) {
    const arrow::Field& values = *type.field(0);
    const bool numbers = wrapper_of(values).what.empty() && number_type(values.type()->id());
    return numbers ? std::optional(ColumnKind::list) : std::nullopt;
  }
  if (number_type(type.id())) return ColumnKind::sequence;
  const bool text =
      type.id() == arrow::Type::STRING || type.id() == arrow::Type::LARGE_STRING || type.id() == arrow::Type::STRING_VIEW;
  return text ? std::optional(ColumnKind::text) : std::nullopt;
}

// ---- single values ----------------------------------------------------------------------------------------------------------

NumberColumn::NumberColumn(const arrow::ArrayData& array, ColumnName name)
    : name_(std::move(name)),
      rows_(array.length),
      offset_(array.offset),
      validity_(validity_of(array, "null bits", name_)),
      values_(buffer_of(array, 1)),
      is_bool_(array.type->id() == arrow::Type::BOOL) {
  check_length(rows_, name_);
  const std::optional<ValueType> type = number_type(array.type->id());
  ensure(type.has_value(), "the type of the values was checked");
  type_ = *type;
  if (is_bool_) {
    check_bits(values_, offset_ + rows_, "values", name_);
  } else {
    check_size(values_, offset_ + rows_, info(type_).bytes, "values", name_);
  }
}

std::vector<std::uint8_t> NumberColumn::valid(std::int64_t first, std::int64_t count) const {
  if (validity_.bytes > 0) return validity_.bits(offset_ + first, count);
  return std::vector<std::uint8_t>(static_cast<std::size_t>(count), 1);
}

std::vector<std::byte> NumberColumn::read_stored(std::int64_t first, std::int64_t count) const {
  std::vector<std::byte> values(static_cast<std::size_t>(count * info(type_).bytes));
  if (is_bool_) {
    const std::vector<std::uint8_t> bits = values_.bits(offset_ + first, count);
    std::memcpy(values.data(), bits.data(), bits.size());
  } else if (count > 0) {
    values_.read((offset_ + first) * info(type_).bytes, values);
  }
  return values;
}

void ScalarColumn::check(const arrow::Field& field, const std::string& shown) {
  constexpr std::string_view kExpected = "groups are told by a string, a whole number, true or false";
  if (const Wrapper wrapper = wrapper_of(field); !wrapper.what.empty()) {
    fail_field(fmt::format("{} is {}; {}", field.name(), wrapper.what, wrapper.remedy), shown);
  }
  switch (field.type()->id()) {
    case arrow::Type::BOOL:
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::STRING_VIEW:
      return;
    default:
      if (!integer_type(field.type()->id())) {
        fail_field(fmt::format("{} is {}; {}", field.name(), field.type()->ToString(), kExpected), shown);
      }
  }
}

ScalarColumn::ScalarColumn(const arrow::ArrayData& array, ColumnName name)
    : name_(std::move(name)),
      type_(array.type->id()),
      rows_(array.length),
      offset_(array.offset),
      validity_(validity_of(array, "null bits", name_)),
      values_(buffer_of(array, 1)) {
  check_length(rows_, name_);
  for (std::size_t i = 2; i < array.buffers.size(); ++i) data_.push_back(buffer_of(array, i));
  const std::int64_t entries = offset_ + rows_;
  switch (type_) {
    case arrow::Type::BOOL:
      check_bits(values_, entries, "values", name_);
      return;
    case arrow::Type::STRING:
      if (rows_ > 0) check_size(values_, entries + 1, 4, "offsets", name_);
      return;
    case arrow::Type::LARGE_STRING:
      if (rows_ > 0) check_size(values_, entries + 1, 8, "offsets", name_);
      return;
    case arrow::Type::STRING_VIEW:
      check_size(values_, entries, 16, "views", name_);
      return;
    default:
      check_size(values_, entries, info(*integer_type(type_)).bytes, "values", name_);
  }
}

std::vector<std::optional<GroupKey>> ScalarColumn::read(std::int64_t first, std::int64_t count) const {
  std::vector<std::optional<GroupKey>> keys(static_cast<std::size_t>(count));
  std::vector<std::uint8_t> valid(keys.size(), 1);
  if (validity_.bytes > 0) valid = validity_.bits(offset_ + first, count);
  const auto set = [&](std::size_t i, auto key) {
    if (valid[i] != 0) keys[i].emplace(std::in_place_type<decltype(key)>, std::move(key));
  };
  const auto bytes_at = [&](std::size_t i, const StoredBytes& data, std::int64_t begin, std::int64_t size) {
    if (begin < 0 || size < 0 || begin > data.bytes || size > data.bytes - begin) {
      name_.fail(fmt::format("damaged: {} lies outside of the column's text", name_.column),
                 first + static_cast<std::int64_t>(i));
    }
    std::string text(static_cast<std::size_t>(size), '\0');
    data.read(begin, std::as_writable_bytes(std::span(text)));
    return text;
  };
  switch (type_) {
    case arrow::Type::BOOL: {
      const std::vector<std::uint8_t> bits = values_.bits(offset_ + first, count);
      for (std::size_t i = 0; i < keys.size(); ++i) set(i, bits[i] != 0);
      break;
    }
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING: {
      if (count == 0) break;
      const StoredBytes none;
      const StoredBytes& data = data_.empty() ? none : data_[0];
      const std::vector<std::int64_t> offsets =
          whole_numbers(values_, type_ == arrow::Type::LARGE_STRING, offset_ + first, count + 1);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (valid[i] != 0) set(i, bytes_at(i, data, offsets[i], offsets[i + 1] - offsets[i]));
      }
      break;
    }
    case arrow::Type::STRING_VIEW: {
      struct View {  // as Arrow lays it out: up to 12 bytes inside, else 4 of them, the number of a buffer and a place in it
        std::int32_t size;
        std::array<char, 12> inside;
      };
      constexpr std::int32_t kMostInside = 12;
      const std::vector<View> views = values_.array<View>(offset_ + first, count);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (valid[i] == 0) continue;
        const View& view = views[i];
        if (view.size >= 0 && view.size <= kMostInside) {
          set(i, std::string(view.inside.data(), static_cast<std::size_t>(view.size)));
          continue;
        }
        std::int32_t buffer = 0, begin = 0;
        std::memcpy(&buffer, view.inside.data() + 4, sizeof buffer);
        std::memcpy(&begin, view.inside.data() + 8, sizeof begin);
        const bool known = buffer >= 0 && static_cast<std::size_t>(buffer) < data_.size();
        set(i, bytes_at(i, known ? data_[static_cast<std::size_t>(buffer)] : StoredBytes(), begin, view.size));
      }
      break;
    }
    default: {
      std::vector<std::int64_t> numbers;
      append_numbers(values_, *integer_type(type_), offset_ + first, count, numbers);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (type_ == arrow::Type::UINT64 && numbers[i] < 0 && valid[i] != 0) {
          name_.fail(fmt::format("{} is 2^63 or more", name_.column), first + static_cast<std::int64_t>(i));
        }
        set(i, numbers[i]);
      }
    }
  }
  return keys;
}

}  // namespace shardpack
