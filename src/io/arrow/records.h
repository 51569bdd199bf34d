// From the columns of a record batch to records: how long each is, and which of the stored ids are its tokens.
#pragma once

#include <arrow/record_batch.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "io/arrow/columns.h"
#include "io/column_choice.h"
#include "io/formats/format.h"
#include "io/formats/group_column.h"
#include "io/spool.h"

namespace shardpack {

/// The fields of a file that are read, by their numbers in its schema.
class RecordFields {
 public:
  /// Finds and checks the ids, the mask and the group column. `loader` and `saver`: for no_ids_message(). \throws Error{usage}
  /// for a column that the options name and the file has not, Error{bad_data}.
  RecordFields(const arrow::Schema& schema, const ReadOptions& options, const std::string& shown, std::string_view loader,
               std::string_view saver);

  /// Ascending. At first with every field that could be carried, then with those that choose() chose.
  const std::vector<int>& numbers() const { return numbers_; }
  const std::vector<Column>& carried() const { return carried_; }  ///< ascending by name
  const std::vector<std::string>& not_carried() const { return not_carried_; }

  /// Settle the columns by the first rows of the file, kSettlingRecords of them. \throws Error{usage} as choose_columns() does.
  void choose(const arrow::Schema& schema, const std::vector<std::shared_ptr<arrow::RecordBatch>>& first,
              const ReadOptions& options);

 private:
  void observe(const arrow::RecordBatch& batch, std::int64_t rows, const ReadOptions& options, ColumnsSeen& seen) const;

  std::string shown_;
  std::vector<int> needed_;  // ids, mask and group column
  std::vector<int> numbers_;
  std::vector<Column> carried_;
  std::vector<std::string> not_carried_;
};

/// A carried column of one record batch, as its kind has it.
using CarriedColumn = std::variant<ListColumn, NumberColumn, ScalarColumn>;

/// The columns of one record batch.
struct RecordColumns {
  ListColumn ids;
  std::optional<ListColumn> mask;
  std::optional<ScalarColumn> group;
  std::vector<CarriedColumn> carried;  ///< as RecordFields::carried()
  std::vector<bool> counted_anew;      ///< of these: positions among tokens of which padding is taken out

  /// \param first_row  of the batch in its file
  RecordColumns(const arrow::RecordBatch& batch, const ReadOptions& options, const RecordFields& fields, const std::string& shown,
                std::int64_t first_row);

  /// Do a column's values stay where they lie in an uncompressed file?
  bool stays_in_place(std::size_t column) const;
};

/// Some records of a batch, in order.
struct RecordRun {
  struct Kept {
    std::int64_t begin = 0, count = 0;  ///< entries of the column's values
  };
  /// What the records have of a carried column: where it lies, or the values themselves.
  struct Values {
    std::vector<Kept> kept;
    std::vector<std::byte> stored;
    ValueType type = ValueType::u8;
    std::vector<std::int64_t> lengths;  ///< kind list and text: of each record
  };
  std::vector<std::int64_t> lengths;  ///< of each record, in tokens
  std::vector<Kept> kept;             ///< where all their tokens lie, one record after the other
  GroupColumn groups;                 ///< numbered within the run
  std::int64_t null_records = 0;
  RemovedCount padding;
  std::vector<Values> columns;  ///< as the carried ones
};

/// Puts the runs of a file together, in order: all but where the tokens lie.
class RecordCollector {
 public:
  RecordCollector(const InputFile& file, const ReadOptions& options, const RecordFields& fields, const OpenContext& context);

  OpenedShard& shard() { return shard_; }
  /// `columns`: of the run's batch, when values are left in `file`.
  void add(const RecordRun& run, const RecordColumns* columns = nullptr, const std::shared_ptr<const File>& file = nullptr);
  OpenedShard finish();

 private:
  OpenedShard shard_;
  std::string temp_dir_;
  std::vector<std::optional<Spool>> spools_;  // by column; none where the values stay where they lie
  GroupNumbering groups_;
};

/// How many rows of the file may be read, by --limit.
std::int64_t rows_to_read(const ReadOptions& options, const OpenContext& context);

/// The records of rows [first, first + count). \throws Error{bad_data} naming file and row for nulls that the options do not
/// drop, and for a mask or column that does not fit the ids. `in_place`: leave lists that can be where they lie.
RecordRun read_records(const RecordColumns& columns, const RecordFields& fields, std::int64_t first, std::int64_t count,
                       const ReadOptions& options, bool in_place);

}  // namespace shardpack
