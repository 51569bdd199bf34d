// From the columns of a record batch to records: how long each is, and which of the stored ids are its tokens.
#pragma once

#include <arrow/record_batch.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/arrow/columns.h"
#include "io/formats/format.h"
#include "io/formats/group_column.h"

namespace shardpack {

/// The fields of a file that are read, by their numbers in its schema.
class RecordFields {
 public:
  /// Finds and checks the ids, the mask and the group column. `loader` and `saver`: for no_ids_message(). \throws Error{usage}
  /// for a column that the options name and the file has not, Error{bad_data}.
  RecordFields(const arrow::Schema& schema, const ReadOptions& options, const std::string& shown, std::string_view loader,
               std::string_view saver);

  const std::vector<int>& numbers() const { return numbers_; }            ///< ascending
  const std::vector<std::string>& not_read() const { return not_read_; }  ///< names of the other columns

 private:
  std::vector<int> numbers_;
  std::vector<std::string> not_read_;
};

/// The columns of one record batch.
struct RecordColumns {
  ListColumn ids;
  std::optional<ListColumn> mask;
  std::optional<ScalarColumn> group;

  /// \param first_row  of the batch in its file
  RecordColumns(const arrow::RecordBatch& batch, const ReadOptions& options, const std::string& shown, std::int64_t first_row);
};

/// Some records of a batch, in order.
struct RecordRun {
  struct Kept {
    std::int64_t begin = 0, count = 0;  ///< entries of the ids' values
  };
  std::vector<std::int64_t> lengths;  ///< of each record, in tokens
  std::vector<Kept> kept;             ///< where all their tokens lie, one record after the other
  GroupColumn groups;                 ///< numbered within the run
  std::int64_t null_records = 0;
  RemovedCount padding;
};

/// Puts the runs of a file together, in order: all but where the tokens lie.
class RecordCollector {
 public:
  RecordCollector(const InputFile& file, const ReadOptions& options, const RecordFields& fields);

  OpenedShard& shard() { return shard_; }
  void add(const RecordRun& run);
  OpenedShard finish();

 private:
  OpenedShard shard_;
  GroupNumbering groups_;
};

/// How many rows of the file may be read, by --limit.
std::int64_t rows_to_read(const ReadOptions& options, const OpenContext& context);

/// The records of rows [first, first + count). \throws Error{bad_data} naming file and row for nulls that the options do not
/// drop, and for a mask that does not fit the ids.
RecordRun read_records(const RecordColumns& columns, std::int64_t first, std::int64_t count, const ReadOptions& options);

}  // namespace shardpack
