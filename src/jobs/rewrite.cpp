#include "jobs/rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

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
  std::vector<ShardRows> parts;
  for (std::int64_t shard = 0; shard < shards; ++shard) {
    const std::int64_t first = part_begin(count, shard, shards), last = part_begin(count, shard + 1, shards);
    parts.push_back({fmt::format("shard-{:05}-{:05}", partition, first_shard + shard), first, last - first});
  }
  write_shards(rows, parts);
}

/// A shard of which blocks are in flight.
struct Rewriter::OpenShard {
  ManifestShard entry;
  std::unique_ptr<RowSink> sink;  // none of a shard that an interrupted run finished
  std::int64_t first_row = 0;
  std::int64_t in_blocks = 0, written = 0;  // rows of it
  std::int64_t next_slot = 0;               // in the shard; where rows differ in width
  std::vector<std::int64_t> values_before;  // by column: of kind list or text, the values of the rows in blocks
};

struct Rewriter::RowRange {
  std::int64_t first = 0, rows = 0;
  std::int64_t first_of_shard = 0;
  std::int64_t first_slot = 0;             // OpenShard::next_slot
  std::vector<std::int64_t> first_values;  // OpenShard::values_before
  ByteBuffer ids;                          // room for them
  const RowSink* sink = nullptr;
};

struct Rewriter::FinishedBlock {
  EncodedBlock encoded;
  Fingerprint fingerprint;
  std::int64_t rows = 0, tokens = 0;
  std::vector<std::int64_t> loss_tokens;  // of each row, where one asks for them
};

void Rewriter::write_shards(const OrderedRows& rows, const std::vector<ShardRows>& shards) {
  if (shards.empty()) return;
  std::deque<OpenShard> open;  // the first is being written, the last is being cut into blocks
  auto next = shards.begin();
  const auto produce = [&]() -> std::optional<RowRange> {
    if (open.empty() || open.back().in_blocks == open.back().entry.rows) {
      if (next == shards.end()) return std::nullopt;
      open.push_back(open_shard(rows, *next++, shards_written() + std::ssize(open)));
    }
    return next_range(rows, open.back());
  };
  const auto transform = [&](RowRange&& range) { return make_block(rows, std::move(range)); };
  const auto consume = [&](FinishedBlock&& block) {
    OpenShard& shard = open.front();
    write_block(std::move(block), shard);
    if (shard.written < shard.entry.rows) return;
    close_shard(std::move(shard));
    open.pop_front();
  };
  const ShardRows& first = shards.front();
  const int in_flight = blocks_in_flight(ceil_div(first.count, block_rows(rows, first.first, first.count)));
  ordered_map(context_.pool, in_flight, context_.stop, produce, transform, consume);
}

/// \param number  in the order of all shards
Rewriter::OpenShard Rewriter::open_shard(const OrderedRows& rows, const ShardRows& shard, std::int64_t number) const {
  const auto segments_before = [&](std::int64_t row) { return rows.rows.begin[static_cast<std::size_t>(row)]; };
  OpenShard open;
  open.first_row = shard.first;
  open.entry.folder = shard.name;
  if (!settings_.output.holds_tokens()) open.entry.fingerprint.reset();
  open.entry.rows = shard.count;
  open.entry.segments = segments_before(shard.first + shard.count) - segments_before(shard.first);
  if (const ManifestShard* finished = staged_.finished_shard(shard.name)) {
    ensure(finished->rows == open.entry.rows && finished->segments == open.entry.segments,
           "a finished shard holds the rows of its place");
    open.entry = *finished;
    return open;
  }
  open.values_before.resize(settings_.columns.size());
  std::vector<std::int64_t> list_values(settings_.columns.size());
  count_values(source_, rows, shard.first, shard.count, list_values);
  open.sink = make_sink(open.entry, number, slots_of_rows(rows, shard.first, shard.count), std::move(list_values));
  return open;
}

/// The rows of the shard's next block.
Rewriter::RowRange Rewriter::next_range(const OrderedRows& rows, OpenShard& shard) const {
  RowRange range;
  range.first = shard.first_row + shard.in_blocks;
  range.rows = block_rows(rows, range.first, shard.entry.rows - shard.in_blocks);
  range.first_of_shard = shard.first_row;
  range.sink = shard.sink.get();
  shard.in_blocks += range.rows;
  if (!shard.sink) return range;
  range.first_slot = shard.next_slot;
  shard.next_slot += slots_of_rows(rows, range.first, range.rows);
  range.first_values = shard.values_before;
  count_values(source_, rows, range.first, range.rows, shard.values_before);
  // Where the caller's thread makes and frees the large buffers, the allocator holds as many as are in flight, not so many for
  // every thread.
  if (settings_.windowed)
    range.ids.reserve(static_cast<std::size_t>(range.rows * settings_.row_room() * info(settings_.id_type).bytes));
  return range;
}

/// In a worker. Of a finished shard, what is told of its rows.
Rewriter::FinishedBlock Rewriter::make_block(const OrderedRows& rows, RowRange&& range) const {
  FinishedBlock result;
  result.rows = range.rows;
  if (range.sink == nullptr && !settings_.row_loss) return result;
  std::vector<TokenRequest> requests;
  RowBlock block = lay_out_rows(rows.items, rows.rows, source_.index(), settings_.row_room(), settings_.id_type, range.first,
                                range.rows, range.first_of_shard, requests, settings_.unslotted, std::move(range.ids));
  block.first_slot = range.first_slot;
  if (range.sink == nullptr) {
    read_loss_column(source_, requests, block);
    result.loss_tokens = loss_tokens_of(block, settings_.columns);
    return result;
  }
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
  result.encoded = range.sink->encode(std::move(block));
  return result;
}

void Rewriter::write_block(FinishedBlock&& block, OpenShard& shard) const {
  if (shard.sink) {
    shard.sink->write(std::move(block.encoded));
    if (shard.entry.fingerprint) *shard.entry.fingerprint += block.fingerprint;
    shard.entry.tokens += block.tokens;
    for (const std::int64_t tokens : block.loss_tokens) shard.entry.loss_tokens += tokens;
  }
  if (settings_.row_loss) {
    for (const std::int64_t tokens : block.loss_tokens) settings_.row_loss(tokens);
  }
  shard.written += block.rows;
  context_.progress.advance(block.rows);
}

/// One shard at a time takes its last step, so that the journal has them in order.
void Rewriter::close_shard(OpenShard&& shard) {
  wait_for_sync();
  shards_.push_back(std::move(shard.entry));
  if (!shard.sink) return;
  syncing_ = std::async(std::launch::async, [sink = std::move(shard.sink), entry = shards_.back(), &staged = staged_]() mutable {
    entry.files = sink->finish();
    entry.trainer_files = sink->trainer_files();
    entry.hidden_labels = sink->hidden_labels();
    staged.shard_finished(entry);
    return std::move(entry);
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

/// Slots of `count` rows from `first` on, where rows differ in width; else 0.
std::int64_t Rewriter::slots_of_rows(const OrderedRows& rows, std::int64_t first, std::int64_t count) const {
  std::int64_t slots = 0;
  if (settings_.row_room() > 0) return slots;
  for (std::int64_t row = first; row < first + count; ++row) slots += row_slots(rows.items, rows.rows, row);
  return slots;
}

int Rewriter::blocks_in_flight(std::int64_t blocks_of_a_shard) const {
  // Windows are large: one for each worker, and one that is being written.
  const std::int64_t wanted = settings_.windowed ? context_.pool.threads() + 1 : default_in_flight(context_.pool);
  // Shards with blocks in flight have their files open, some ten each.
  constexpr std::int64_t kOpenShards = 16;
  const std::int64_t most = std::min({wanted, std::int64_t{default_in_flight(context_.pool)}, kOpenShards * blocks_of_a_shard});
  if (context_.memory_bytes == 0) return static_cast<int>(most);
  // Where no one has asked for less, windows are as many as other blocks would be.
  const std::int64_t larger = settings_.windowed && context_.memory_limit == 0 ? kWindowSlots / kBlockTokens : 1;
  return static_cast<int>(std::clamp<std::int64_t>(context_.memory_bytes / 2 * larger / settings_.block_bytes(), 1, most));
}

std::unique_ptr<RowSink> Rewriter::make_sink(const ManifestShard& shard, std::int64_t number, std::int64_t slots,
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
                           trainer_file_name(settings_.output, settings_.shards_before + number, settings_.shards));
}

void Rewriter::wait_for_sync() {
  if (syncing_.valid()) shards_.back() = syncing_.get();
}

std::vector<ManifestShard> Rewriter::finish() {
  wait_for_sync();
  return std::move(shards_);
}

}  // namespace shardpack
