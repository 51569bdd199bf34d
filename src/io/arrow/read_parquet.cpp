// Parquet: row groups are decoded side by side, of each only the columns that are read.
#include <arrow/table.h>
#include <fmt/format.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/units.h"
#include "exec/ordered_map.h"
#include "io/arrow/arrow_file.h"
#include "io/arrow/decoded.h"
#include "io/formats/readers.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

void add_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& leaves) {
  if (field.is_leaf()) leaves.push_back(field.column_index);
  for (const parquet::arrow::SchemaField& child : field.children) add_leaves(child, leaves);
}

/// Rows of one row group, as far as they are read.
struct RowGroup {
  int number = 0;
  std::int64_t first_row = 0, rows = 0, all_rows = 0;
};

/// A Parquet file and how its columns are read. Workers decode through readers of their own over the same metadata.
class ParquetFile {
 public:
  ParquetFile(const InputFile& file, const OpenContext& context)
      : shown_(file.name),
        opened_(std::make_shared<const File>(file.path, File::Mode::read, file.name)),
        pool_(limited_pool(context)) {
    const std::unique_ptr<parquet::arrow::FileReader> reader = open();
    metadata_ = reader->parquet_reader()->metadata();
    check_arrow(reader->GetSchema(&schema_), shown_);
    for (const parquet::arrow::SchemaField& field : reader->manifest().schema_fields) {
      add_leaves(field, leaves_of_field_.emplace_back());
    }
  }

  const arrow::Schema& schema() const { return *schema_; }
  const File& file() const { return *opened_; }
  int row_groups() const { return metadata_->num_row_groups(); }
  std::int64_t rows_of(int group) const {
    const std::int64_t rows = metadata_->RowGroup(group)->num_rows();
    if (rows < 0) throw Error(ErrorCode::bad_data, fmt::format("damaged: a row group of {} rows", rows), shown_, position(group));
    return rows;
  }
  /// Of the columns that are read, decoded; as the file says.
  std::int64_t bytes_of(int group, const RecordFields& fields) const {
    const auto row_group = metadata_->RowGroup(group);
    std::int64_t bytes = 0;
    for (const int leaf : leaves(fields))
      bytes += std::max<std::int64_t>(row_group->ColumnChunk(leaf)->total_uncompressed_size(), 0);
    return bytes;
  }

  std::shared_ptr<arrow::Table> read(const RowGroup& group, const RecordFields& fields) const {
    const std::shared_ptr<arrow::Table> table =
        take_arrow(open()->ReadRowGroup(group.number, leaves(fields)), shown_, position(group.number));
    if (table->num_rows() != group.all_rows) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("damaged: the row group has {} rows, and its columns {}", with_commas(group.all_rows),
                              with_commas(table->num_rows())),
                  shown_, position(group.number));
    }
    return table;
  }

 private:
  static std::string position(int group) { return fmt::format("row group {}", group); }

  std::unique_ptr<parquet::arrow::FileReader> open() const {
    parquet::ReaderProperties properties(pool_.get());
    properties.enable_buffered_stream();  // pages, not whole column chunks
    parquet::ArrowReaderProperties arrow_properties(/*use_threads=*/false);
    arrow_properties.set_pre_buffer(false);
    parquet::arrow::FileReaderBuilder builder;
    check_arrow(builder.Open(arrow_input(opened_), properties, metadata_), shown_);
    return take_arrow(builder.memory_pool(pool_.get())->properties(arrow_properties)->Build(), shown_);
  }

  std::vector<int> leaves(const RecordFields& fields) const {
    std::vector<int> result;
    for (const int field : fields.numbers()) {
      const std::vector<int>& own = leaves_of_field_[static_cast<std::size_t>(field)];
      result.insert(result.end(), own.begin(), own.end());
    }
    return result;
  }

  const std::string shown_;
  const std::shared_ptr<const File> opened_;
  const std::unique_ptr<arrow::MemoryPool> pool_;
  std::shared_ptr<parquet::FileMetaData> metadata_;  // none yet: open() reads it
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<std::vector<int>> leaves_of_field_;  // by the field's number in the schema
};

/// The row groups of a file up to --limit.
std::vector<RowGroup> row_groups_of(const ParquetFile& parquet, std::int64_t rows_left) {
  std::vector<RowGroup> groups;
  std::int64_t row = 0;
  for (int number = 0; number < parquet.row_groups() && rows_left > 0; ++number) {
    const std::int64_t all = parquet.rows_of(number);
    const std::int64_t rows = std::min(all, rows_left);
    groups.push_back({number, row, rows, all});
    row += all;
    rows_left -= rows;
  }
  return groups;
}

/// The first kSettlingRecords rows, or as many as there are.
std::vector<std::shared_ptr<arrow::RecordBatch>> first_rows(const ParquetFile& parquet, const std::vector<RowGroup>& groups,
                                                            const RecordFields& fields, const std::string& shown) {
  std::vector<std::shared_ptr<arrow::RecordBatch>> first;
  std::int64_t left = kSettlingRecords;
  for (std::size_t group = 0; group < groups.size() && left > 0; ++group) {
    const std::shared_ptr<arrow::Table> rows = parquet.read(groups[group], fields)->Slice(0, std::min(left, groups[group].rows));
    first.push_back(take_arrow(rows->CombineChunksToBatch(arrow_pool()), shown));
    left -= rows->num_rows();
  }
  return first;
}

std::vector<DecodedRun> decode_group(const ParquetFile& parquet, const RowGroup& group, const RecordFields& fields,
                                     const ReadOptions& options, const std::string& shown, SequenceId first_record) {
  const std::shared_ptr<arrow::Table> table = parquet.read(group, fields);
  arrow::TableBatchReader batches(*table);  // columns may be cut at different places
  std::vector<DecodedRun> runs;
  std::int64_t done = 0;
  while (done < group.rows) {
    std::shared_ptr<arrow::RecordBatch> batch;
    check_arrow(batches.ReadNext(&batch), shown);
    if (batch == nullptr) break;
    const RecordColumns columns(*batch, options, fields, shown, group.first_row + done);
    const std::int64_t rows = std::min(columns.ids.rows(), group.rows - done);
    const RowStretch stretch{&columns, 0, rows};
    runs.push_back(decode_records(std::span(&stretch, 1), fields, options, first_record + group.first_row + done));
    done += rows;
  }
  return runs;
}

}  // namespace

OpenedShard open_parquet(const InputFile& file, const ReadOptions& options, const OpenContext& context) {
  try {
    const ParquetFile parquet(file, context);
    RecordFields fields(parquet.schema(), options, file.name, "datasets.load_dataset('parquet', data_files=FILE, split='train')",
                        "to_parquet");
    const std::vector<RowGroup> groups = row_groups_of(parquet, rows_to_read(options, context));
    fields.choose(parquet.schema(), first_rows(parquet, groups, fields, file.name), options);
    DecodedCollector collector(file, options, fields, context);

    // A row group in flight is its columns and the ids from them.
    std::int64_t largest = 1;
    for (const RowGroup& group : groups) largest = std::max(largest, 2 * parquet.bytes_of(group.number, fields));
    int in_flight = default_in_flight(context.pool);
    if (context.memory_bytes > 0)
      in_flight = static_cast<int>(std::clamp<std::int64_t>(context.memory_bytes / largest, 1, in_flight));

    std::size_t next = 0;
    ordered_map(
        context.pool, in_flight, context.stop,
        [&] { return next < groups.size() ? std::optional(groups[next++]) : std::nullopt; },
        [&](RowGroup&& group) { return decode_group(parquet, group, fields, options, file.name, context.first_record); },
        [&](std::vector<DecodedRun>&& runs) {
          for (const DecodedRun& run : runs) collector.add(run);
        });
    context.progress.advance(parquet.file().size());
    return collector.finish(hash_file(parquet.file()));
  } catch (const parquet::ParquetException& exception) {  // metadata are looked up without a status
    fail_arrow(arrow::Status::IOError(exception.what()), file.name);
  }
}

}  // namespace shardpack
