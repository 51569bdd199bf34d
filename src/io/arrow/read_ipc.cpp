// Arrow IPC streams and files, Feather version 2, and the files of `save_to_disk`. Uncompressed record batches are read where
// they lie: opening walks the messages and reads offsets, null bits and masks, and the scan pass reads the ids. A file with
// compressed ones is decoded once, into a spool.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/hash.h"
#include "base/units.h"
#include "exec/ordered_map.h"
#include "io/arrow/arrow_file.h"
#include "io/arrow/decoded.h"
#include "io/arrow/ipc_batches.h"
#include "io/arrow/records.h"
#include "io/formats/readers.h"
#include "io/hf_folder.h"
#include "io/scan_pass.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kRunRows = 64 << 10;  // what a worker takes at once: a few MiB of offsets at most

/// How to load and save such data with `datasets`, for the message when they hold text.
struct Recipe {
  std::string_view loader, saver;
};

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

  /// Settle the columns by the first batches.
  void choose_columns(const std::vector<PlacedBatch>& first) {
    std::vector<std::shared_ptr<arrow::RecordBatch>> rows;
    for (const PlacedBatch& placed : first) rows.push_back(batches.read(placed.batch, fields.numbers(), arrow_pool()));
    fields.choose(batches.schema(), rows, options);
  }

  RecordColumns columns_of(const PlacedBatch& placed, arrow::MemoryPool* pool) const {
    const auto batch = batches.read(placed.batch, fields.numbers(), pool);
    if (batch->num_rows() != placed.batch.rows) throw Error(ErrorCode::bad_data, "damaged: a record batch lost rows", file.name);
    return {*batch, options, fields, file.name, placed.first_row};
  }
};

/// A range of rows of a record batch that stays in the file.
struct RowRange {
  std::shared_ptr<const RecordColumns> columns;
  std::int64_t first = 0, count = 0;
  RecordRun run;  // once read
};

/// All record batches, none of them compressed.
OpenedShard read_in_place(IpcSource& source, BatchReader& reader) {
  RecordCollector collector(source.file, source.options, source.fields, source.context);
  OpenedShard& shard = collector.shard();
  shard.ids.file = source.opened;
  RowRange left;  // of the current batch
  const auto next_range = [&]() -> std::optional<RowRange> {
    while (left.count == 0) {
      const std::optional<PlacedBatch> placed = reader.next();
      if (!placed) return std::nullopt;
      if (placed->batch.compressed) {
        throw Error(ErrorCode::bad_data, "some record batches are compressed and some are not; write the file anew with pyarrow",
                    source.file.name, fmt::format("record batch {}", with_commas(placed->batch.number)));
      }
      left = {std::make_shared<const RecordColumns>(source.columns_of(*placed, arrow_pool())), 0, placed->rows, {}};
    }
    const std::int64_t count = std::min(kRunRows, left.count);
    RowRange range{left.columns, left.first, count, {}};
    left.first += count;
    left.count -= count;
    return range;
  };
  ordered_map(
      source.context.pool, default_in_flight(source.context.pool), source.context.stop, next_range,
      [&](RowRange&& range) {
        range.run = read_records(*range.columns, source.fields, range.first, range.count, source.options, true);
        return std::move(range);
      },
      [&](RowRange&& range) {
        const ListColumn& ids = range.columns->ids;
        shard.ids.type = ids.type();
        for (const RecordRun::Kept& kept : range.run.kept) {
          shard.ids.append(kept.count, ids.values().begin_bytes + ids.place_of(kept.begin));
        }
        collector.add(range.run, range.columns.get(), source.opened);
      });
  return collector.finish();
}

/// All record batches, decoded.
OpenedShard read_decoded(IpcSource& source, BatchReader& reader) {
  const OpenContext& context = source.context;
  DecodedCollector collector(source.file, source.options, source.fields, context);
  const std::unique_ptr<arrow::MemoryPool> pool = limited_pool(context);
  const auto next_batch = [&] { return reader.next(); };
  const auto decode = [&](PlacedBatch&& placed) {
    const RecordColumns columns = source.columns_of(placed, pool.get());
    return decode_records(columns, source.fields, 0, placed.rows, source.options, context.first_record + placed.first_row);
  };
  ordered_map(context.pool, context.pool.inline_only() ? 1 : context.pool.threads(), context.stop, next_batch, decode,
              [&](DecodedRun&& run) { collector.add(run); });
  context.progress.advance(source.opened->size());
  return collector.finish(hash_file(*source.opened));
}

OpenedShard open_ipc(const InputFile& file, const ReadOptions& options, const OpenContext& context, const Recipe& recipe) {
  IpcSource source(file, options, context, recipe);
  BatchReader reader(source.batches, rows_to_read(options, context));
  const std::vector<PlacedBatch> first = reader.peek(kSettlingRecords);
  source.choose_columns(first);
  const bool compressed = !first.empty() && first.front().batch.compressed;
  return compressed ? read_decoded(source, reader) : read_in_place(source, reader);
}

// ---- an indices table --------------------------------------------------------------------------------------------------------

constexpr Recipe kHfRecipe{"datasets.load_from_disk(FOLDER)", "save_to_disk"};

/// The rows of a dataset that its indices table names, in its order.
std::vector<std::int64_t> read_indices(const InputFile& file, std::int64_t max_rows) {
  const auto opened = std::make_shared<const File>(file.path, File::Mode::read, file.name);
  IpcBatches batches(opened);
  const int field = batches.schema().GetFieldIndex("indices");
  if (field < 0) throw Error(ErrorCode::bad_data, "expected a column 'indices'", file.name);
  ScalarColumn::check(*batches.schema().field(field), file.name);
  std::vector<std::int64_t> indices;
  BatchReader reader(batches, max_rows);
  while (const std::optional<PlacedBatch> placed = reader.next()) {
    const auto batch = batches.read(placed->batch, {field}, arrow_pool());
    const ScalarColumn column(*batch->column_data(0), {file.name, "indices", placed->first_row});
    for (std::int64_t done = 0; done < placed->rows; done += kRunRows) {
      const std::int64_t count = std::min(kRunRows, placed->rows - done);
      for (const std::optional<GroupKey>& value : column.read(done, count)) {
        const auto* const index = value ? std::get_if<std::int64_t>(&*value) : nullptr;
        if (index == nullptr) throw Error(ErrorCode::bad_data, "an index is no whole number", file.name);
        indices.push_back(*index);
      }
    }
  }
  return indices;
}

/// The data files of a dataset, as one run of rows.
class DataFiles {
 public:
  DataFiles(const std::vector<InputFile>& files, const ReadOptions& options, const OpenContext& context) {
    OpenContext whole = context;
    whole.first_record = 0;
    whole.spool = true;
    ReadOptions all = options;
    all.limit = 0;
    if (!options.columns.names.empty()) {
      throw Error(ErrorCode::usage,
                  "--columns with a dataset that has an indices table: save it without, in Python: "
                  "datasets.load_from_disk(FOLDER).flatten_indices().save_to_disk(NEW)",
                  files.front().name);
    }
    all.columns = {.which = ColumnChoice::Which::none, .names = {}};  // their values would have to be gathered too
    for (const InputFile& file : files) {
      OpenedShard& shard = shards_.emplace_back(open_ipc(file, all, whole, kHfRecipe));
      if (shard.null_records > 0 || shard.padding.tokens > 0) {
        throw Error(ErrorCode::bad_data,
                    "null rows or padding in a dataset with an indices table: save it without, in Python: "
                    "datasets.load_from_disk(FOLDER).flatten_indices().save_to_disk(NEW)",
                    file.name);
      }
      first_rows_.push_back(rows_);
      rows_ += static_cast<std::int64_t>(shard.record_begin.size()) - 1;
    }
  }

  std::int64_t rows() const { return rows_; }
  OpenedShard& front() { return shards_.front(); }

  /// Append the ids of `row`, and its value of the group column when there is one.
  std::optional<GroupKey> append(std::int64_t row, std::vector<std::uint32_t>& ids) const {
    const auto after = std::upper_bound(first_rows_.begin(), first_rows_.end(), row);
    const auto number = static_cast<std::size_t>(after - first_rows_.begin()) - 1;
    const OpenedShard& shard = shards_[number];
    const auto record = static_cast<std::size_t>(row - first_rows_[number]);
    const std::int64_t first = shard.record_begin[record];
    const auto tokens = static_cast<std::size_t>(shard.record_begin[record + 1] - first);
    ids.resize(ids.size() + tokens);
    shard.ids.read(first, std::span(ids).last(tokens));
    if (shard.groups.of_record.empty()) return std::nullopt;
    return shard.groups.keys[static_cast<std::size_t>(shard.groups.of_record[record])];
  }

 private:
  std::vector<OpenedShard> shards_;
  std::vector<std::int64_t> first_rows_;  // of each
  std::int64_t rows_ = 0;
};

std::string hash_of(const std::vector<InputFile>& files) {
  StreamHash hash;
  std::vector<std::byte> chunk(std::size_t{1} << 20);
  for (const InputFile& file : files) {
    const File opened(file.path, File::Mode::read, file.name);
    for (std::int64_t at = 0;; at += static_cast<std::int64_t>(chunk.size())) {
      const std::size_t read = opened.read_some_at(at, chunk);
      hash.update(std::span<const std::byte>(chunk).first(read));
      if (read < chunk.size()) break;
    }
  }
  return hash.hex();
}

/// A saved dataset whose rows an indices table picks: they are gathered into a spool.
OpenedShard open_with_indices(const InputFile& state_file, const ReadOptions& options, const OpenContext& context) {
  const std::filesystem::path folder = std::filesystem::path(state_file.path).parent_path();
  const std::filesystem::path shown = std::filesystem::path(state_file.name).parent_path();
  const std::optional<HfState> state = read_hf_state(folder, shown.string());
  if (!state || state->data_files.empty()) {
    throw Error(ErrorCode::bad_data, "expected the state.json of a saved dataset, with _data_files", state_file.name);
  }
  const auto files_of = [&](const std::vector<std::string>& names) {
    std::vector<InputFile> files;
    for (const std::string& name : names) files.push_back({(folder / name).string(), (shown / name).string()});
    return files;
  };
  const std::vector<InputFile> data = files_of(state->data_files), tables = files_of(state->indices_files);
  DataFiles rows(data, options, context);
  std::vector<std::int64_t> indices;
  for (const InputFile& table : tables) {
    const std::int64_t left = rows_to_read(options, context) - static_cast<std::int64_t>(indices.size());
    for (const std::int64_t index : read_indices(table, left)) {
      if (index < 0 || index >= rows.rows()) {
        throw Error(ErrorCode::bad_data,
                    fmt::format("index {} of a dataset of {} rows", with_commas(index), with_commas(rows.rows())), table.name,
                    fmt::format("row {}", with_commas(static_cast<std::int64_t>(indices.size()))));
      }
      indices.push_back(index);
    }
  }

  SpooledIds spooled(context);
  OpenedShard shard;
  shard.ids_column = options.ids_column;
  shard.record_begin = {0};
  shard.not_carried = rows.front().not_carried;
  GroupNumbering groups;
  constexpr std::size_t kBlockRows = 4096;
  for (std::size_t done = 0; done < indices.size(); done += kBlockRows) {
    throw_if_stopped(context.stop);
    std::vector<std::uint32_t> ids;
    std::vector<std::int64_t> lengths;
    for (const std::int64_t index : std::span(indices).subspan(done, std::min(kBlockRows, indices.size() - done))) {
      const std::size_t before = ids.size();
      const std::optional<GroupKey> group = rows.append(index, ids);
      if (group) shard.groups.of_record.push_back(groups.number_of(*group));
      lengths.push_back(static_cast<std::int64_t>(ids.size() - before));
      shard.record_begin.push_back(shard.record_begin.back() + lengths.back());
    }
    spooled.add(ids, facts_of(context.first_record + static_cast<SequenceId>(done), lengths, ids));
  }
  shard.groups.keys = groups.keys();

  std::vector<InputFile> all{state_file};
  all.insert(all.end(), data.begin(), data.end());
  all.insert(all.end(), tables.begin(), tables.end());
  for (const InputFile& file : all) shard.files.push_back(file.path);
  spooled.finish(shard, hash_of(all));
  return shard;
}

}  // namespace

OpenedShard open_hf(const InputFile& file, const ReadOptions& options, const OpenContext& context) {
  if (file.path.ends_with(".json")) return open_with_indices(file, options, context);
  return open_ipc(file, options, context, kHfRecipe);
}

OpenedShard open_arrow(const InputFile& file, const ReadOptions& options, const OpenContext& context) {
  return open_ipc(file, options, context, {"datasets.Dataset.from_file(FILE)", "save_to_disk"});
}

}  // namespace shardpack
