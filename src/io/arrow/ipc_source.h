// A file of Arrow record batches being read: which of its columns, and its batches one after the other up to --limit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "io/arrow/arrow_file.h"
#include "io/arrow/ipc_batches.h"
#include "io/arrow/records.h"
#include "shardpack/error.h"

namespace shardpack {

/// How to load and save such data with `datasets`, for the message when they hold text.
struct Recipe {
  std::string_view loader, saver;
};

inline constexpr Recipe kHfRecipe{"datasets.load_from_disk(FOLDER)", "save_to_disk"};

/// Where a record batch's first row is in the file, and how many of its rows are read.
struct PlacedBatch {
  IpcBatch batch;
  std::int64_t first_row = 0, rows = 0;
};

/// The record batches of a file up to --limit.
class BatchReader {
 public:
  BatchReader(IpcBatches& batches, std::int64_t max_rows) : batches_(batches), rows_left_(max_rows) {}

  /// The first ones, with `rows` rows if there are so many; next() returns them as well.
  std::vector<PlacedBatch> peek(std::int64_t rows) {
    std::vector<PlacedBatch> batches;
    while (rows > 0) {
      std::optional<PlacedBatch> placed = take();
      if (!placed) break;
      rows -= placed->rows;
      batches.push_back(std::move(*placed));
    }
    peeked_.insert(peeked_.end(), batches.begin(), batches.end());
    return batches;
  }

  std::optional<PlacedBatch> next() {
    if (peeked_.empty()) return take();
    PlacedBatch placed = std::move(peeked_.front());
    peeked_.pop_front();
    return placed;
  }

 private:
  std::optional<PlacedBatch> take() {
    if (rows_left_ == 0) return std::nullopt;
    std::optional<IpcBatch> batch = batches_.next();
    if (!batch) return std::nullopt;
    const std::int64_t rows = std::min(batch->rows, rows_left_);
    const std::int64_t first_row = std::exchange(row_, row_ + batch->rows);
    rows_left_ -= rows;
    return PlacedBatch{std::move(*batch), first_row, rows};
  }

  IpcBatches& batches_;
  std::deque<PlacedBatch> peeked_;
  std::int64_t rows_left_;
  std::int64_t row_ = 0;
};

/// One Arrow IPC file being read.
struct IpcSource {
  const InputFile& file;
  const ReadOptions& options;
  const OpenContext& context;
  std::shared_ptr<const File> opened;
  IpcBatches batches;
  RecordFields fields;

  IpcSource(const InputFile& input, const ReadOptions& read_options, const OpenContext& open_context, const Recipe& recipe)
      : file(input),
        options(read_options),
        context(open_context),
        opened(std::make_shared<const File>(input.path, File::Mode::read, input.name)),
        batches(opened),
        fields(batches.schema(), read_options, input.name, recipe.loader, recipe.saver) {}

  std::shared_ptr<arrow::RecordBatch> read(const PlacedBatch& placed, arrow::MemoryPool* pool) const {
    auto batch = batches.read(placed.batch, fields.numbers(), pool);
    if (batch->num_rows() != placed.batch.rows) throw Error(ErrorCode::bad_data, "damaged: a record batch lost rows", file.name);
    return batch;
  }

  RecordColumns columns_of(const PlacedBatch& placed, arrow::MemoryPool* pool) const {
    return {*read(placed, pool), options, fields, file.name, placed.first_row};
  }
};

}  // namespace shardpack
