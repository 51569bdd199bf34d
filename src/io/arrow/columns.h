// Columns of Arrow arrays as lists of numbers and as single values, whatever Arrow's layout and wherever the bytes lie.
#pragma once

#include <arrow/array/data.h>
#include <arrow/type.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/arrow/stored_bytes.h"
#include "shardpack/column.h"
#include "shardpack/group_key.h"
#include "shardpack/types.h"

namespace shardpack {

/// How errors name a column: its file, its name, and which row of the file is row 0 of the array.
struct ColumnName {
  std::string shown;
  std::string column;
  std::int64_t first_row = 0;

  /// \throws Error{bad_data} "shown: row N: message"
  [[noreturn]] void fail(const std::string& message, std::int64_t row) const;
};

/// The values of one row: entries [begin, begin + count) of the column's child.
struct ListRow {
  std::int64_t begin = 0, count = 0;
  bool null = false;
};

/// "list<item: double>" and the like are refused here, before any data is read: token ids are lists of whole numbers.
/// \param what  "token ids", "0 and 1"
void check_integer_lists(const arrow::Field& field, bool may_be_bool, std::string_view what, const std::string& shown);

/// A list, large list, list of fixed size, list view or large list view of whole numbers or of true and false.
class ListColumn {
 public:
  /// \throws Error{bad_data} when a buffer is shorter than the array says
  ListColumn(const arrow::ArrayData& array, ColumnName name);

  std::int64_t rows() const { return rows_; }
  const ColumnName& name() const { return name_; }

  /// \throws Error{bad_data} for a row outside of the values
  std::vector<ListRow> read_rows(std::int64_t first, std::int64_t count) const;

  /// \throws Error{bad_data} when a value of the row is null
  void check_no_nulls(std::int64_t row_number, const ListRow& row) const;

  IdType type() const { return static_cast<IdType>(value_type_); }  ///< of values that are whole numbers
  ValueType value_type() const { return value_type_; }              ///< true and false are u8
  bool is_bool() const { return is_bool_; }
  /// Where value number `index` lies in `values()`, in bytes.
  std::int64_t place_of(std::int64_t index) const { return (values_offset_ + index) * info(value_type_).bytes; }
  const StoredBytes& values() const { return values_; }

  /// The stored values, true and false as bytes. `out` gets them appended.
  void read_stored(std::int64_t begin, std::int64_t count, std::vector<std::byte>& out) const;

  /// The values of a row as whole numbers, true as 1; u64 above 2^63 - 1 come out negative.
  void read_numbers(std::int64_t begin, std::int64_t count, std::vector<std::int64_t>& out) const;

 private:
  enum class Layout : std::uint8_t { offsets, fixed, views };

  ColumnName name_;
  std::int64_t rows_ = 0, offset_ = 0;  // of the array in its buffers
  Layout layout_ = Layout::offsets;
  bool wide_ = false;  // offsets and sizes of 64 bits
  std::int64_t fixed_size_ = 0;
  StoredBytes validity_, offsets_, sizes_;  // no bytes of validity: nothing is null
  std::int64_t value_count_ = 0, values_offset_ = 0;
  StoredBytes value_validity_, values_;
  bool is_bool_ = false;  // a bit a value
  ValueType value_type_ = ValueType::u8;
};

/// A column of single numbers of any type, or of true and false.
class NumberColumn {
 public:
  NumberColumn(const arrow::ArrayData& array, ColumnName name);

  const ColumnName& name() const { return name_; }
  ValueType type() const { return type_; }
  /// Which of the rows [first, first + count) have a value: 0 = null.
  std::vector<std::uint8_t> valid(std::int64_t first, std::int64_t count) const;
  /// Their stored values, something for null; true and false as bytes.
  std::vector<std::byte> read_stored(std::int64_t first, std::int64_t count) const;

 private:
  ColumnName name_;
  std::int64_t rows_ = 0, offset_ = 0;
  StoredBytes validity_, values_;
  bool is_bool_ = false;
  ValueType type_ = ValueType::u8;
};

/// What a field could be carried as: a list of numbers, a number, a string, or nothing (none).
std::optional<ColumnKind> carried_form(const arrow::Field& field);

/// A column of strings, whole numbers or of true and false.
class ScalarColumn {
 public:
  ScalarColumn(const arrow::ArrayData& array, ColumnName name);

  const ColumnName& name() const { return name_; }
  /// The values of rows [first, first + count); none for null.
  std::vector<std::optional<GroupKey>> read(std::int64_t first, std::int64_t count) const;

  /// \throws Error{bad_data} for a column that group values cannot come from
  static void check(const arrow::Field& field, const std::string& shown);

 private:
  ColumnName name_;
  arrow::Type::type type_;
  std::int64_t rows_ = 0, offset_ = 0;
  StoredBytes validity_, values_;  // values: of strings their offsets or views
  std::vector<StoredBytes> data_;  // bytes of strings
};

}  // namespace shardpack
