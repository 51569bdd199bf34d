// Rows of a trainer's Arrow and Parquet files, read back.
#include <arrow/array/array_nested.h>
#include <arrow/array/array_primitive.h>
#include <arrow/table.h>
#include <fmt/format.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "base/units.h"
#include "io/arrow/arrow_file.h"
#include "io/arrow/arrow_rows.h"
#include "io/arrow/columns.h"
#include "io/arrow/ipc_batches.h"
#include "io/row_reader.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

/// The files' columns must be those of `rules`, whatever is beside the types.
void check_schema(const arrow::Schema& schema, const OutputRules& rules, const std::string& shown) {
  const std::shared_ptr<arrow::Schema> expected = arrow_schema(rules.columns);
  bool same = schema.num_fields() == expected->num_fields();
  for (int i = 0; same && i < schema.num_fields(); ++i) {
    const arrow::DataType& type = *schema.field(i)->type();
    same = schema.field(i)->name() == expected->field(i)->name() && type.id() == arrow::Type::LIST &&
           type.field(0)->type()->Equals(expected->field(i)->type()->field(0)->type());
  }
  if (!same) {
    throw Error(ErrorCode::bad_data,
                fmt::format("its columns are not those of --for {}: {}", rules.preset->name, schema.ToString(false)), shown);
  }
}

/// \param first_rows  of batches or row groups, and one past the last; ascending
std::int64_t end_of_run_in(const std::vector<std::int64_t>& first_rows, std::int64_t row) {
  return *std::upper_bound(first_rows.begin(), first_rows.end() - 1, row);
}

/// Takes rows of one column in, run by run.
class ListCollector {
 public:
  explicit ListCollector(std::size_t width) : width_(width) { list_.begin.push_back(0); }

  /// Room for the values of rows of these lengths; the caller fills it.
  std::span<std::byte> add(std::span<const ListRow> rows) {
    const std::size_t before = list_.values.size();
    std::int64_t values = list_.begin.back();
    for (const ListRow& row : rows) {
      values = checked_add(values, row.count, "values of a block");
      ensure(values <= std::numeric_limits<std::int32_t>::max(), "blocks of less than 2^31 values");
      list_.begin.push_back(static_cast<std::int32_t>(values));
    }
    list_.values.resize(static_cast<std::size_t>(values) * width_);
    return std::span(list_.values).subspan(before);
  }

  ListValues take() { return std::move(list_); }

 private:
  const std::size_t width_;
  ListValues list_;
};

/// Rows [first, first + count), from the batches or row groups that they lie in: visit(its number, the first of its rows to take,
/// how many, the columns' collectors).
/// \param first_rows  as end_of_run_in() takes them
template <class Visit>
std::vector<ListValues> read_runs(const OutputRules& rules, const std::vector<std::int64_t>& first_rows, std::int64_t first,
                                  std::int64_t count, Visit visit) {
  std::vector<ListCollector> collectors;
  for (const OutputColumn& column : rules.columns) collectors.emplace_back(static_cast<std::size_t>(info(column.type).bytes));
  auto run = static_cast<std::size_t>(std::upper_bound(first_rows.begin(), first_rows.end(), first) - first_rows.begin() - 1);
  for (std::int64_t done = 0; done < count; ++run) {
    const std::int64_t from = first + done - first_rows[run];
    const std::int64_t rows = std::min(count - done, first_rows[run + 1] - first_rows[run] - from);
    if (rows == 0) continue;
    visit(run, from, rows, collectors);
    done += rows;
  }
  std::vector<ListValues> result;
  result.reserve(collectors.size());
  for (ListCollector& collector : collectors) result.push_back(collector.take());
  return result;
}

class ArrowRows final : public RowReader {
 public:
  ArrowRows(const OutputRules& rules, const std::string& path)
      : rules_(rules), path_(path), batches_(std::make_shared<const File>(path, File::Mode::read)) {
    check_schema(batches_.schema(), rules, path);
    while (std::optional<IpcBatch> batch = batches_.next()) {
      first_row_.push_back(first_row_.back() + batches_.read(*batch, {}, arrow_pool())->num_rows());
      found_.push_back(std::move(*batch));
    }
    fields_.resize(rules.columns.size());
    std::iota(fields_.begin(), fields_.end(), 0);
  }

  std::int64_t rows() const override { return first_row_.back(); }
  std::int64_t end_of_run(std::int64_t row) const override { return end_of_run_in(first_row_, row); }

  std::vector<ListValues> read(std::int64_t first, std::int64_t count) const override {
    check_row_range(first, count, rows(), path_);
    return read_runs(rules_, first_row_, first, count,
                     [&](std::size_t batch, std::int64_t from, std::int64_t rows, std::vector<ListCollector>& collectors) {
                       const std::shared_ptr<arrow::RecordBatch> data = batches_.read(found_[batch], fields_, arrow_pool());
                       for (std::size_t c = 0; c < collectors.size(); ++c) {
                         const ListColumn column(*data->column_data(static_cast<int>(c)),
                                                 {path_, std::string(rules_.columns[c].name), first_row_[batch]});
                         read_column(column, from, rows, collectors[c]);
                       }
                     });
  }

 private:
  static void read_column(const ListColumn& column, std::int64_t first, std::int64_t count, ListCollector& collector) {
    const std::vector<ListRow> rows = column.read_rows(first, count);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (rows[r].null) column.name().fail(fmt::format("{} is null", column.name().column), first + static_cast<std::int64_t>(r));
      column.check_no_nulls(first + static_cast<std::int64_t>(r), rows[r]);
    }
    std::span<std::byte> out = collector.add(rows);
    const auto width = static_cast<std::size_t>(info(column.type()).bytes);
    for (std::size_t r = 0; r < rows.size();) {  // rows that lie one after the other are read at once
      std::int64_t values = rows[r].count;
      const std::int64_t begin = rows[r].begin;
      for (++r; r < rows.size() && rows[r].begin == begin + values; ++r) values += rows[r].count;
      const std::span<std::byte> run = out.first(static_cast<std::size_t>(values) * width);
      if (!run.empty()) column.values().read(column.place_of(begin), run);
      out = out.subspan(run.size());
    }
  }

  const OutputRules& rules_;
  const std::string path_;
  IpcBatches batches_;
  std::vector<IpcBatch> found_;
  std::vector<std::int64_t> first_row_{0};  // of each batch, and one past the last
  std::vector<int> fields_;
};

class ParquetRows final : public RowReader {
 public:
  ParquetRows(const OutputRules& rules, const std::string& path) : rules_(rules), path_(path) {
    parquet::ReaderProperties properties(arrow_pool());
    parquet::arrow::FileReaderBuilder builder;
    check_arrow(builder.Open(arrow_input(std::make_shared<const File>(path, File::Mode::read)), properties), path);
    builder.memory_pool(arrow_pool())->properties(parquet::ArrowReaderProperties(false));
    reader_ = take_arrow(builder.Build(), path);
    std::shared_ptr<arrow::Schema> schema;
    check_arrow(reader_->GetSchema(&schema), path);
    check_schema(*schema, rules, path);
    for (int group = 0; group < reader_->num_row_groups(); ++group)
      first_row_.push_back(first_row_.back() + reader_->parquet_reader()->metadata()->RowGroup(group)->num_rows());
  }

  std::int64_t rows() const override { return first_row_.back(); }
  std::int64_t end_of_run(std::int64_t row) const override { return end_of_run_in(first_row_, row); }

  std::vector<ListValues> read(std::int64_t first, std::int64_t count) const override {
    check_row_range(first, count, rows(), path_);
    return read_runs(rules_, first_row_, first, count,
                     [&](std::size_t group, std::int64_t from, std::int64_t rows, std::vector<ListCollector>& collectors) {
                       const std::shared_ptr<arrow::Table> table = group_table(group);
                       for (std::size_t c = 0; c < collectors.size(); ++c) {
                         const auto width = static_cast<std::size_t>(info(rules_.columns[c].type).bytes);
                         const std::shared_ptr<arrow::ChunkedArray> slice = table->column(static_cast<int>(c))->Slice(from, rows);
                         for (const std::shared_ptr<arrow::Array>& chunk : slice->chunks())
                           take_chunk(static_cast<const arrow::ListArray&>(*chunk), width, rules_.columns[c].name, collectors[c]);
                       }
                     });
  }

 private:
  /// The row group that was read last stays in memory: blocks of rows are smaller than it.
  std::shared_ptr<arrow::Table> group_table(std::size_t group) const {
    const std::lock_guard lock(mutex_);
    if (!table_ || table_group_ != group) {
      table_.reset();
      table_ = take_arrow(reader_->ReadRowGroup(static_cast<int>(group)), path_,
                          fmt::format("rows from {}", with_commas(first_row_[group])));
      table_group_ = group;
    }
    return table_;
  }

  void take_chunk(const arrow::ListArray& chunk, std::size_t width, std::string_view column, ListCollector& collector) const {
    std::vector<ListRow> rows;
    for (std::int64_t r = 0; r < chunk.length(); ++r) rows.push_back({chunk.value_offset(r), chunk.value_length(r)});
    if (chunk.null_count() > 0 || chunk.values()->null_count() > 0)
      throw Error(ErrorCode::bad_data, fmt::format("a null in {}", column), path_);
    const std::span<std::byte> out = collector.add(rows);
    if (out.empty()) return;
    const arrow::ArrayData& values = *chunk.values()->data();
    const std::size_t begin = static_cast<std::size_t>(values.offset + chunk.value_offset(0)) * width;
    std::memcpy(out.data(), values.buffers[1]->data() + begin, out.size());
  }

  const OutputRules& rules_;
  const std::string path_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::vector<std::int64_t> first_row_{0};  // of each row group, and one past the last
  mutable std::mutex mutex_;
  mutable std::shared_ptr<arrow::Table> table_;
  mutable std::size_t table_group_ = 0;
};

}  // namespace

std::unique_ptr<RowReader> open_arrow_rows(const OutputRules& rules, const std::string& path) {
  return std::make_unique<ArrowRows>(rules, path);
}

std::unique_ptr<RowReader> open_parquet_rows(const OutputRules& rules, const std::string& path) {
  return std::make_unique<ParquetRows>(rules, path);
}

}  // namespace shardpack
