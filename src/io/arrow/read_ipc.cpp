// Arrow IPC streams and files, Feather version 2, and the files of `save_to_disk`. Uncompressed record batches are read where
// they lie: opening walks the messages and reads offsets, null bits and masks, and the scan pass reads the ids. A file with
// compressed ones is decoded once, into a spool.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/units.h"
#include "exec/ordered_map.h"
#include "io/arrow/decoded.h"
#include "io/arrow/ipc_source.h"
#include "io/arrow/read_indices.h"
#include "io/formats/readers.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kRunRows = 64 << 10;  // what a worker takes at once: a few MiB of offsets at most

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
  const auto begin_batch = [&] {
    while (left.count == 0) {
      const std::optional<PlacedBatch> placed = reader.next();
      if (!placed) return false;
      if (placed->batch.compressed) {
        throw Error(ErrorCode::bad_data, "some record batches are compressed and some are not; write the file anew with pyarrow",
                    source.file.name, fmt::format("record batch {}", with_commas(placed->batch.number)));
      }
      left = {std::make_shared<const RecordColumns>(source.columns_of(*placed, arrow_pool())), 0, placed->rows, {}};
    }
    return true;
  };
  // Batches are mostly of 1,000 rows, which takes no longer to read than to hand over.
  const auto next_ranges = [&]() -> std::optional<std::vector<RowRange>> {
    std::vector<RowRange> ranges;
    for (std::int64_t rows = 0; rows < kRunRows && begin_batch();) {
      const std::int64_t count = std::min(kRunRows - rows, left.count);
      ranges.push_back({left.columns, left.first, count, {}});
      left.first += count;
      left.count -= count;
      rows += count;
    }
    return ranges.empty() ? std::nullopt : std::optional(std::move(ranges));
  };
  ordered_map(
      source.context.pool, default_in_flight(source.context.pool), source.context.stop, next_ranges,
      [&](std::vector<RowRange>&& ranges) {
        for (RowRange& range : ranges)
          range.run = read_records(*range.columns, source.fields, range.first, range.count, source.options, true);
        return std::move(ranges);
      },
      [&](std::vector<RowRange>&& ranges) {
        for (const RowRange& range : ranges) {
          const ListColumn& ids = range.columns->ids;
          shard.ids.type = ids.type();
          for (const RecordRun::Kept& kept : range.run.kept) {
            shard.ids.append(kept.count, ids.values().begin_bytes + ids.place_of(kept.begin));
          }
          collector.add(range.run, range.columns.get(), source.opened);
        }
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
    const RowStretch rows{&columns, 0, placed.rows};
    return decode_records(std::span(&rows, 1), source.fields, source.options, context.first_record + placed.first_row);
  };
  ordered_map(context.pool, context.pool.inline_only() ? 1 : context.pool.threads(), context.stop, next_batch, decode,
              [&](DecodedRun&& run) { collector.add(run); });
  context.progress.advance(source.opened->size());
  return collector.finish(hash_file(*source.opened));
}

/// Settle the columns by the first batches.
void choose_columns(IpcSource& source, const std::vector<PlacedBatch>& first) {
  std::vector<std::shared_ptr<arrow::RecordBatch>> rows;
  rows.reserve(first.size());
  for (const PlacedBatch& placed : first) rows.push_back(source.read(placed, arrow_pool()));
  source.fields.choose(source.batches.schema(), rows, source.options);
}

OpenedShard open_ipc(const InputFile& file, const ReadOptions& options, const OpenContext& context, const Recipe& recipe) {
  IpcSource source(file, options, context, recipe);
  BatchReader reader(source.batches, rows_to_read(options, context));
  const std::vector<PlacedBatch> first = reader.peek(kSettlingRecords);
  choose_columns(source, first);
  const bool compressed = !first.empty() && first.front().batch.compressed;
  return compressed ? read_decoded(source, reader) : read_in_place(source, reader);
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
