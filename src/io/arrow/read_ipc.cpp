// Arrow IPC streams and files, Feather version 2, and the files of `save_to_disk`. Uncompressed ones are read where they lie:
// opening walks the messages and reads offsets, null bits and masks, and the scan pass reads the ids.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "exec/ordered_map.h"
#include "io/arrow/arrow_file.h"
#include "io/arrow/ipc_batches.h"
#include "io/arrow/records.h"
#include "io/formats/group_column.h"
#include "io/formats/readers.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kRunRows = 64 << 10;  // what a worker takes at once: a few MiB of offsets at most

/// Rows of one record batch.
struct RowRange {
  std::shared_ptr<const RecordColumns> columns;
  std::int64_t first = 0, count = 0;
};

/// Cuts the record batches of a file into ranges of rows.
class RangeReader {
 public:
  RangeReader(IpcBatches& batches, const RecordFields& fields, const ReadOptions& options, const std::string& shown,
              std::int64_t max_rows)
      : batches_(batches), fields_(fields), options_(options), shown_(shown), rows_left_(max_rows) {}

  std::optional<RowRange> next() {
    while (!columns_ || at_ == columns_->ids.rows()) {
      if (rows_left_ == 0) return std::nullopt;
      const std::optional<IpcBatch> batch = batches_.next();
      if (!batch) return std::nullopt;
      if (batch->compressed)
        throw Error(ErrorCode::bad_data, "compressed record batches are not read; save it uncompressed", shown_);
      columns_ = std::make_shared<const RecordColumns>(*batches_.read(*batch, fields_.numbers()), options_, shown_, row_);
      row_ += columns_->ids.rows();
      at_ = 0;
    }
    const std::int64_t count = std::min({kRunRows, columns_->ids.rows() - at_, rows_left_});
    rows_left_ -= count;
    at_ += count;
    return RowRange{columns_, at_ - count, count};
  }

 private:
  IpcBatches& batches_;
  const RecordFields& fields_;
  const ReadOptions& options_;
  const std::string& shown_;
  std::int64_t rows_left_;
  std::int64_t row_ = 0;  // of the file, that the next batch begins with
  std::shared_ptr<const RecordColumns> columns_;
  std::int64_t at_ = 0;
};

struct ReadRange {
  RowRange range;
  RecordRun run;
};

/// The columns that tell what to do with a text dataset.
struct Recipe {
  std::string_view loader, saver;
};

OpenedShard open_ipc(const InputFile& file, const ReadOptions& options, const OpenContext& context, const Recipe& recipe) {
  const auto opened = std::make_shared<const File>(file.path, File::Mode::read, file.name);
  IpcBatches batches(opened);
  const RecordFields fields(batches.schema(), options, file.name, recipe.loader, recipe.saver);

  OpenedShard shard;
  shard.ids.file = opened;
  shard.ids_column = options.ids_column;
  shard.files = {file.path};
  shard.record_begin = {0};
  shard.not_carried = fields.not_read();
  GroupNumbering groups;

  const std::int64_t max_rows = options.limit > 0 ? std::max<std::int64_t>(options.limit - context.first_record, 0)
                                                  : std::numeric_limits<std::int64_t>::max();
  RangeReader reader(batches, fields, options, file.name, max_rows);
  ordered_map(
      context.pool, default_in_flight(context.pool), context.stop, [&] { return reader.next(); },
      [&](RowRange&& range) {
        RecordRun run = read_records(*range.columns, range.first, range.count, options);
        return ReadRange{std::move(range), std::move(run)};
      },
      [&](ReadRange&& read) {
        const ListColumn& ids = read.range.columns->ids;
        shard.ids.type = ids.type();
        for (const RecordRun::Kept& kept : read.run.kept) {
          shard.ids.append(kept.count, ids.values().begin_bytes + ids.place_of(kept.begin));
        }
        for (const std::int64_t length : read.run.lengths) shard.record_begin.push_back(shard.record_begin.back() + length);
        add_groups(read.run.groups, groups, shard.groups);
        shard.null_records += read.run.null_records;
        shard.padding.sequences += read.run.padding.sequences;
        shard.padding.tokens += read.run.padding.tokens;
      });
  shard.groups.keys = groups.keys();
  return shard;
}

}  // namespace

OpenedShard open_hf(const InputFile& file, const ReadOptions& options, const OpenContext& context) {
  return open_ipc(file, options, context, {"datasets.load_from_disk(FOLDER)", "save_to_disk"});
}

OpenedShard open_arrow(const InputFile& file, const ReadOptions& options, const OpenContext& context) {
  return open_ipc(file, options, context, {"datasets.Dataset.from_file(FILE)", "save_to_disk"});
}

}  // namespace shardpack
