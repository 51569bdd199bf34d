#include "jobs/rewrite.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/equal_parts.h"
#include "core/placed_values.h"
#include "core/row_check.h"
#include "exec/ordered_map.h"
#include "io/trainer_files.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

/// Tokens of one block: large enough to keep writes long, small enough that the blocks in flight of two threads take some 20 MB.
/// Fixed, because a block is also a compressed frame.
constexpr std::int64_t kBlockTokens = std::int64_t{1} << 19;

struct RowRange {
  std::int64_t first = 0, rows = 0;
  std::int64_t first_slot = 0;             // in the shard; where rows differ in width
  std::vector<std::int64_t> first_values;  // by column: of kind list or text, the values of the shard's rows before
  ByteBuffer ids;                          // room for them
};

struct FinishedBlock {
  EncodedBlock encoded;
  Fingerprint fingerprint;
  std::int64_t rows = 0, tokens = 0;
  std::vector<std::int64_t> loss_tokens;  // of each row
};

/// Adds the values that `rows` [first, first + count) have in columns of kind list and text to `values`.
void count_values(const SequenceSource& source, const OrderedRows& rows, std::int64_t first, std::int64_t count,
                  std::vector<std::int64_t>& values) {
  for (std::size_t c = 0; c < values.size(); ++c) {
    const ColumnKind kind = source.columns()[c].kind;
    if (kind != ColumnKind::list && kind != ColumnKind::text) continue;
    for (std::int64_t row = first; row < first + count; ++row) {
      for (const std::int32_t item : rows.rows.row(row))
        values[c] += value_count(source, c, rows.items[static_cast<std::size_t>(item)]);
    }
  }
}

}  // namespace

int RewriteSettings::slot_bytes() const {
  const int segment_bytes = max_segments_in_row > 65'535 ? 4 : 2;
  const int position_bytes = position_start + static_cast<std::int64_t>(row_tokens) - 1 > 65'535 ? 4 : 2;
  int slot_bytes = 0;  // of the arrays so far
  if (!output.holds_tokens()) return 0;
  if (output.native()) {
    slot_bytes = info(id_type).bytes + (derived ? segment_bytes + position_bytes : 0);
  } else {
    for (const OutputColumn& column : output.columns)
      slot_bytes += column.source < OutputSource::seq_lengths ? info(column.type).bytes : 0;
  }
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const bool stored = columns[c].kind == ColumnKind::token && static_cast<int>(c) != output.label_column;
    slot_bytes += stored ? info(columns[c].type).bytes : 0;
  }
  return slot_bytes;
}

std::int64_t RewriteSettings::row_bytes() const {
  std::int64_t fixed_bytes = 0;
  for (const OutputColumn& column : output.columns)
    fixed_bytes += is_fixed_width(column.source) ? output.width(column.source) * info(column.type).bytes : 0;
  return std::int64_t{row_room()} * slot_bytes() + fixed_bytes;
}

std::int64_t RewriteSettings::shards_of(std::int64_t rows) const {
  // Beside tokens, what tells where segments are is little; without tokens it is all there is.
  const std::int64_t bytes = output.holds_tokens() ? row_bytes() : map_row_bytes;
  return ceil_div(rows, std::max<std::int64_t>(1, shard_bytes / bytes));
}

std::int64_t RewriteSettings::block_slots() const { return windowed ? kWindowSlots : kBlockTokens; }

/// A block holds its rows once as ids and once more as what is derived from them.
std::int64_t RewriteSettings::block_bytes() const {
  return std::max<std::int64_t>({block_slots(), row_room(), widest_row}) * std::max(slot_bytes(), 1) * 2;
}

Rewriter::Rewriter(const SequenceSource& source, const DatasetKeys& keys, const RewriteSettings& settings, StagedOutput& staged,
                   const RunContext& context)
    : source_(source), keys_(keys), settings_(settings), staged_(staged), context_(context) {}

void Rewriter::write(const OrderedRows& rows, std::int32_t partition, std::int64_t first_shard) {
  // Of one size but for a row, for the trainers that give each rank as many files: not full ones and a rest.
  const std::int64_t count = rows.rows.rows(), shards = settings_.shards_of(count);
  for (std::int64_t shard = 0; shard < shards; ++shard) {
    const std::int64_t first = part_begin(count, shard, shards), last = part_begin(count, shard + 1, shards);
    write_shard(rows, first, last - first, fmt::format("shard-{:05}-{:05}", partition, first_shard + shard));
  }
}

void Rewriter::write_shard(const OrderedRows& rows, std::int64_t first_row, std::int64_t row_count, const std::string& name) {
  const auto segments_before = [&](std::int64_t row) { return rows.rows.begin[static_cast<std::size_t>(row)]; };
  ManifestShard shard;
  shard.folder = name;
  if (!settings_.output.holds_tokens()) shard.fingerprint.reset();
  shard.rows = row_count;
  shard.segments = segments_before(first_row + row_count) - segments_before(first_row);
  if (const ManifestShard* finished = staged_.finished_shard(name)) {
    ensure(finished->rows == shard.rows && finished->segments == shard.segments, "a finished shard holds the rows of its place");
    wait_for_sync();
    shards_.push_back(*finished);
    if (settings_.row_loss) tell_losses(rows, first_row, row_count);
    context_.progress.advance(row_count);
    return;
  }
  std::vector<std::int64_t> list_values(settings_.columns.size());
  count_values(source_, rows, first_row, row_count, list_values);
  const bool same_width = settings_.row_room() > 0;
  std::int64_t slots = 0;
  for (std::int64_t row = first_row; row < first_row + row_count && !same_width; ++row)
    slots += row_slots(rows.items, rows.rows, row);
  std::shared_ptr<RowSink> sink = make_sink(shard, slots, std::move(list_values));

  std::int64_t next = 0, next_slot = 0;
  std::vector<std::int64_t> values_before(settings_.columns.size());
  const auto produce = [&]() -> std::optional<RowRange> {
    if (next == row_count) return std::nullopt;
    RowRange range{first_row + next, block_rows(rows, first_row + next, row_count - next), next_slot, values_before, {}};
    // Where the caller's thread makes and frees the large buffers, the allocator holds as many as are in flight, not so many for
    // every thread.
    if (settings_.windowed)
      range.ids.reserve(static_cast<std::size_t>(range.rows * settings_.row_room() * info(settings_.id_type).bytes));
    count_values(source_, rows, range.first, range.rows, values_before);
    for (std::int64_t row = range.first; row < range.first + range.rows && !same_width; ++row)
      next_slot += row_slots(rows.items, rows.rows, row);
    next += range.rows;
    return range;
  };
  const auto transform = [&](RowRange&& range) {
    std::vector<TokenRequest> requests;
    RowBlock block = lay_out_rows(rows.items, rows.rows, source_.index(), settings_.row_room(), settings_.id_type, range.first,
                                  range.rows, first_row, requests, settings_.unslotted, std::move(range.ids));
    block.first_slot = range.first_slot;
    FinishedBlock result{.encoded = {}, .fingerprint = {}, .rows = range.rows, .tokens = 0, .loss_tokens = {}};
    if (settings_.output.holds_tokens()) {
      source_.read_block(requests, block.id_type, block.ids.data());
      read_columns(source_, requests, range.first_values, block);
      fill_gaps(block, settings_.fill, settings_.columns);
      result.fingerprint = fingerprint_of(block, keys_, source_.index(), settings_.columns, settings_.single_segments);
      result.loss_tokens = loss_tokens_of(block, settings_.columns);
    } else {
      block.begins = places_in_files(block, source_);
    }
    const std::vector<Issue> issues = check_rows(block, settings_.max_segments, settings_.segment_multiple);
    ensure(issues.empty(), issues.empty() ? "" : issues.front().message);
    for (const RowSegment& segment : block.segments) result.tokens += segment.length();
    result.encoded = sink->encode(std::move(block));
    return result;
  };
  const auto consume = [&](FinishedBlock&& block) {
    sink->write(std::move(block.encoded));
    if (shard.fingerprint) *shard.fingerprint += block.fingerprint;
    shard.tokens += block.tokens;
    for (const std::int64_t tokens : block.loss_tokens) {
      shard.loss_tokens += tokens;
      if (settings_.row_loss) settings_.row_loss(tokens);
    }
    context_.progress.advance(block.rows);
  };
  ordered_map(context_.pool, blocks_in_flight(), context_.stop, produce, transform, consume);

  wait_for_sync();
  shards_.push_back(std::move(shard));
  syncing_ = std::async(std::launch::async, [sink, shard = shards_.back(), &staged = staged_]() mutable {
    shard.files = sink->finish();
    shard.trainer_files = sink->trainer_files();
    shard.hidden_labels = sink->hidden_labels();
    staged.shard_finished(shard);
    return std::move(shard);
  });
}

void Rewriter::tell_losses(const OrderedRows& rows, std::int64_t first_row, std::int64_t row_count) const {
  std::int64_t next = 0;
  ordered_map(
      context_.pool, default_in_flight(context_.pool), context_.stop,
      [&]() -> std::optional<RowRange> {
        if (next == row_count) return std::nullopt;
        const RowRange range{first_row + next, block_rows(rows, first_row + next, row_count - next), 0, {}, {}};
        next += range.rows;
        return range;
      },
      [&](RowRange&& range) {
        std::vector<TokenRequest> requests;
        RowBlock block = lay_out_rows(rows.items, rows.rows, source_.index(), settings_.row_room(), settings_.id_type,
                                      range.first, range.rows, first_row, requests, settings_.unslotted);
        read_loss_column(source_, requests, block);
        return loss_tokens_of(block, settings_.columns);
      },
      [&](std::vector<std::int64_t>&& losses) {
        for (const std::int64_t tokens : losses) settings_.row_loss(tokens);
      });
}

/// Rows from `first` on, of `left`, that make a block.
std::int64_t Rewriter::block_rows(const OrderedRows& rows, std::int64_t first, std::int64_t left) const {
  if (settings_.windowed) {
    const std::int64_t all = rows.rows.rows(), windows = window_count(all, settings_.row_tokens);
    return std::min(left, part_begin(all, part_of(all, first, windows) + 1, windows) - first);
  }
  if (const std::int64_t width = settings_.row_room(); width > 0)
    return std::min(left, std::max<std::int64_t>(1, kBlockTokens / width));
  std::int64_t count = 0;
  for (std::int64_t slots = 0; count < left && slots < kBlockTokens; ++count)
    slots += row_slots(rows.items, rows.rows, first + count);
  return count;
}

int Rewriter::blocks_in_flight() const {
  // Windows are large: one for each worker, and one that is being written.
  const int wanted = settings_.windowed ? context_.pool.threads() + 1 : default_in_flight(context_.pool);
  const int most = std::min(wanted, default_in_flight(context_.pool));
  if (context_.memory_bytes == 0) return most;
  // Where no one has asked for less, windows are as many as other blocks would be.
  const std::int64_t larger = settings_.windowed && context_.memory_limit == 0 ? kWindowSlots / kBlockTokens : 1;
  return static_cast<int>(std::clamp<std::int64_t>(context_.memory_bytes / 2 * larger / settings_.block_bytes(), 1, most));
}

std::unique_ptr<RowSink> Rewriter::make_sink(const ManifestShard& shard, std::int64_t slots,
                                             std::vector<std::int64_t> list_values) const {
  ShardPlan plan{.folder = staged_.folder() + "/" + shard.folder,
                 .rows = shard.rows,
                 .segments = shard.segments,
                 .row_tokens = settings_.row_room(),
                 .row_slots = slots,
                 .id_type = settings_.id_type,
                 .position_start = settings_.position_start,
                 .slots = settings_.output.holds_tokens(),
                 .begins = settings_.write_begins,
                 .derived = settings_.derived,
                 .write_added = settings_.write_added,
                 .write_slots = settings_.write_slots,
                 .max_segments_in_row = settings_.max_segments_in_row,
                 .zstd_level = settings_.zstd_level,
                 .columns = settings_.columns,
                 .list_values = std::move(list_values)};
  if (settings_.output.native()) return make_native_sink(plan);
  return make_trainer_sink(std::move(plan), settings_.output, source_.index(), staged_.trainer_folder(),
                           trainer_file_name(settings_.output, settings_.shards_before + shards_written(), settings_.shards));
}

void Rewriter::wait_for_sync() {
  if (syncing_.valid()) shards_.back() = syncing_.get();
}

std::vector<ManifestShard> Rewriter::finish() {
  wait_for_sync();
  return std::move(shards_);
}

}  // namespace shardpack
