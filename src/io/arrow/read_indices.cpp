#include "io/arrow/read_indices.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/hash.h"
#include "base/units.h"
#include "exec/ordered_map.h"
#include "io/arrow/decoded.h"
#include "io/arrow/ipc_source.h"
#include "io/file_hash.h"
#include "io/hf_folder.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kMaxBlockRows = 4096;
constexpr std::int64_t kBlockBytes = 4 << 20;    // of rows of mean size: what a worker gathers at once
constexpr std::size_t kKnownBatches = 16 << 10;  // whose columns are found once; a few KiB each

/// The indices of a table's files, one after the other.
class IndexTables {
 public:
  /// `data_rows`: of the dataset that they pick from
  IndexTables(const std::vector<InputFile>& files, std::int64_t max_rows, std::int64_t data_rows)
      : files_(files), rows_left_(max_rows), data_rows_(data_rows) {}

  /// The next ones, `count` unless the tables end; none at their end. \throws Error{bad_data}
  std::vector<std::int64_t> next(std::int64_t count) {
    std::vector<std::int64_t> indices;
    count = std::min(count, rows_left_);
    while (std::ssize(indices) < count && (row_ < rows_ || next_batch())) {
      const std::int64_t part = std::min(count - std::ssize(indices), rows_ - row_);
      for (const std::optional<GroupKey>& value : column_->read(row_, part)) indices.push_back(checked(value, row_++));
    }
    rows_left_ -= std::ssize(indices);
    return indices;
  }

 private:
  /// \return false at the end of the last file
  bool next_batch() {
    while (true) {
      if (const std::optional<PlacedBatch> placed = reader_ ? reader_->next() : std::nullopt) {
        const auto batch = batches_->read(placed->batch, {field_}, arrow_pool());
        column_.emplace(*batch->column_data(0), ColumnName{shown(), "indices", placed->first_row});
        row_ = 0;
        rows_ = placed->rows;
        return true;
      }
      if (file_ == files_.size()) return false;
      const InputFile& file = files_[file_++];
      batches_.emplace(std::make_shared<const File>(file.path, File::Mode::read, file.name));
      field_ = batches_->schema().GetFieldIndex("indices");
      if (field_ < 0) throw Error(ErrorCode::bad_data, "expected a column 'indices'", file.name);
      ScalarColumn::check(*batches_->schema().field(field_), file.name);
      reader_.emplace(*batches_, std::numeric_limits<std::int64_t>::max());
    }
  }

  std::int64_t checked(const std::optional<GroupKey>& value, std::int64_t row) const {
    const auto* const index = value ? std::get_if<std::int64_t>(&*value) : nullptr;
    if (index == nullptr) column_->name().fail("an index is no whole number; expected a row of the dataset", row);
    if (*index < 0 || *index >= data_rows_) {
      column_->name().fail(fmt::format("index {} of a dataset of {} rows; save it anew, in Python: "
                                       "datasets.load_from_disk(FOLDER).flatten_indices().save_to_disk(NEW)",
                                       with_commas(*index), with_commas(data_rows_)),
                           row);
    }
    return *index;
  }

  const std::string& shown() const { return files_[file_ - 1].name; }

  const std::vector<InputFile>& files_;
  std::size_t file_ = 0;  // that is opened next
  std::int64_t rows_left_, data_rows_;
  std::optional<IpcBatches> batches_;  // of the current file, as is what follows
  std::optional<BatchReader> reader_;
  int field_ = 0;
  std::optional<ScalarColumn> column_;  // of the current batch
  std::int64_t row_ = 0, rows_ = 0;
};

/// Decoded record batches, in a file from which they are read as others are where they lie.
class BatchSpool {
 public:
  explicit BatchSpool(const OpenContext& context) : file_(std::make_shared<File>(File::temporary(context.temp_dir))) {}

  std::shared_ptr<arrow::RecordBatch> move(const arrow::RecordBatch& batch) {
    std::vector<std::shared_ptr<arrow::ArrayData>> columns;
    columns.reserve(static_cast<std::size_t>(batch.num_columns()));
    for (int i = 0; i < batch.num_columns(); ++i) columns.push_back(move(*batch.column_data(i)));
    return arrow::RecordBatch::Make(batch.schema(), batch.num_rows(), std::move(columns));
  }

 private:
  std::shared_ptr<arrow::ArrayData> move(const arrow::ArrayData& array) {
    std::shared_ptr<arrow::ArrayData> moved = array.Copy();
    for (std::shared_ptr<arrow::Buffer>& buffer : moved->buffers) {
      if (buffer == nullptr) continue;
      file_->write_at(end_, std::as_bytes(std::span(buffer->data(), static_cast<std::size_t>(buffer->size()))));
      buffer = std::make_shared<FileRegion>(file_, end_, buffer->size());
      end_ += buffer->size();
    }
    for (std::shared_ptr<arrow::ArrayData>& child : moved->child_data) child = move(*child);
    return moved;
  }

  std::shared_ptr<File> file_;
  std::int64_t end_ = 0;  // bytes
};

/// The data files of a dataset, as one run of rows in any order.
class DataRows {
 public:
  DataRows(const std::vector<InputFile>& files, const ReadOptions& options, const OpenContext& context) {
    const std::unique_ptr<arrow::MemoryPool> pool = limited_pool(context);
    std::optional<BatchSpool> spool;
    for (const InputFile& file : files) {
      IpcSource& source = sources_.emplace_back(file, options, context, kHfRecipe);
      if (!source.batches.schema().Equals(sources_.front().batches.schema(), false)) {
        throw Error(ErrorCode::bad_data, fmt::format("its columns are not those of {}", files.front().name), file.name);
      }
      BatchReader reader(source.batches, std::numeric_limits<std::int64_t>::max());
      while (std::optional<PlacedBatch> placed = reader.next()) {
        throw_if_stopped(context.stop);
        if (placed->rows == 0) continue;
        first_rows_.push_back(rows_);
        rows_ += placed->rows;
        Batch& batch = batches_.emplace_back(Batch{&source, std::move(*placed), nullptr, nullptr});
        if (!batch.placed.batch.compressed) continue;
        if (!spool) spool.emplace(context);
        batch.decoded = spool->move(*source.read(batch.placed, pool.get()));
      }
      bytes_ += source.opened->size();
    }
  }

  std::int64_t rows() const { return rows_; }
  const RecordFields& fields() const { return sources_.front().fields; }

  /// So many rows are gathered at once.
  std::int64_t block_rows() const {
    return std::clamp(kBlockBytes / (bytes_ / std::max<std::int64_t>(rows_, 1) + 1), std::int64_t{1}, kMaxBlockRows);
  }

  /// Settle the columns by the first rows that are picked.
  void choose_columns(std::span<const std::int64_t> indices, const ReadOptions& options) {
    std::vector<std::shared_ptr<arrow::RecordBatch>> first;
    for (const Stretch& rows : stretches(indices.first(std::min(indices.size(), static_cast<std::size_t>(kSettlingRecords)))))
      first.push_back(batches_[rows.batch].read()->Slice(rows.first, rows.count));
    IpcSource& front = sources_.front();
    front.fields.choose(front.batches.schema(), first, options);
    for (IpcSource& source : sources_) source.fields = front.fields;
    for (std::size_t i = 0; i < std::min(batches_.size(), kKnownBatches); ++i) batches_[i].columns = batches_[i].find_columns();
  }

  /// The records that `indices` name, the first of them number `first_record` of the dataset. Thread-safe.
  DecodedRun gather(std::span<const std::int64_t> indices, const ReadOptions& options, SequenceId first_record) const {
    std::vector<std::shared_ptr<const RecordColumns>> columns;  // held
    std::vector<RowStretch> rows;
    for (const Stretch& stretch : stretches(indices)) {
      const Batch& batch = batches_[stretch.batch];
      columns.push_back(batch.columns ? batch.columns : batch.find_columns());
      rows.push_back({columns.back().get(), stretch.first, stretch.count});
    }
    return decode_records(rows, fields(), options, first_record);
  }

 private:
  struct Batch {
    const IpcSource* source;
    PlacedBatch placed;
    std::shared_ptr<arrow::RecordBatch> decoded;   // of a compressed one
    std::shared_ptr<const RecordColumns> columns;  // once they are found, and not of too many batches

    std::shared_ptr<arrow::RecordBatch> read() const { return decoded ? decoded : source->read(placed, arrow_pool()); }
    std::shared_ptr<const RecordColumns> find_columns() const {
      return std::make_shared<const RecordColumns>(*read(), source->options, source->fields, source->file.name, placed.first_row);
    }
  };
  /// Rows that lie one after the other in a batch.
  struct Stretch {
    std::size_t batch = 0;
    std::int64_t first = 0, count = 0;
  };

  std::vector<Stretch> stretches(std::span<const std::int64_t> indices) const {
    std::vector<Stretch> result;
    for (const std::int64_t index : indices) {
      const auto after = std::upper_bound(first_rows_.begin(), first_rows_.end(), index);
      const auto batch = static_cast<std::size_t>(after - first_rows_.begin()) - 1;
      const std::int64_t row = index - first_rows_[batch];
      if (!result.empty() && result.back().batch == batch && result.back().first + result.back().count == row) {
        ++result.back().count;
      } else {
        result.push_back({batch, row, 1});
      }
    }
    return result;
  }

  std::deque<IpcSource> sources_;
  std::vector<Batch> batches_;  // that have rows
  std::vector<std::int64_t> first_rows_;
  std::int64_t rows_ = 0, bytes_ = 0;
};

std::string hash_of(const std::vector<InputFile>& files) {
  StreamHash hash;
  for (const InputFile& file : files) hash_file(File(file.path, File::Mode::read, file.name), hash);
  return hash.hex();
}

}  // namespace

OpenedShard open_with_indices(const InputFile& state_file, const ReadOptions& options, const OpenContext& context) {
  const std::filesystem::path folder = std::filesystem::path(state_file.path).parent_path();
  const std::filesystem::path shown = std::filesystem::path(state_file.name).parent_path();
  const std::optional<HfState> state = read_hf_state(folder, shown.string());
  if (!state || state->data_files.empty()) {
    throw Error(ErrorCode::bad_data, "expected the state.json of a saved dataset, with _data_files", state_file.name);
  }
  const auto files_of = [&](const std::vector<std::string>& names) {
    std::vector<InputFile> files;
    files.reserve(names.size());
    for (const std::string& name : names) files.push_back({(folder / name).string(), (shown / name).string()});
    return files;
  };
  const std::vector<InputFile> data = files_of(state->data_files), tables = files_of(state->indices_files);
  DataRows rows(data, options, context);
  IndexTables indices(tables, rows_to_read(options, context), rows.rows());
  const std::int64_t block_rows = rows.block_rows();
  std::vector<std::int64_t> first = indices.next(std::max(block_rows, kSettlingRecords));
  rows.choose_columns(first, options);

  struct Block {
    std::vector<std::int64_t> indices;
    SequenceId first_record = 0;
  };
  SequenceId record = context.first_record;
  DecodedCollector collector(state_file, options, rows.fields(), context);
  ordered_map(
      context.pool, default_in_flight(context.pool), context.stop,
      [&]() -> std::optional<Block> {
        Block block{first.empty() ? indices.next(block_rows) : std::exchange(first, {}), record};
        record += std::ssize(block.indices);
        return block.indices.empty() ? std::nullopt : std::optional(std::move(block));
      },
      [&](Block&& block) { return rows.gather(block.indices, options, block.first_record); },
      [&](DecodedRun&& run) { collector.add(run); });

  std::vector<InputFile> all{state_file};
  all.insert(all.end(), data.begin(), data.end());
  all.insert(all.end(), tables.begin(), tables.end());
  OpenedShard shard = collector.finish(hash_of(all));
  shard.files.clear();
  for (const InputFile& file : all) shard.files.push_back(file.path);
  return shard;
}

}  // namespace shardpack
