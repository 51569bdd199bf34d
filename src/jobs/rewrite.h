// The rewriter: rows of an assignment in, shards out. Tokens are in memory a few blocks at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "core/row_block.h"
#include "core/trainer_rows.h"
#include "io/staged_output.h"
#include "shardpack/jobs.h"
#include "shardpack/manifest.h"
#include "shardpack/row_sink.h"
#include "shardpack/sequence_source.h"

namespace shardpack {

/// What all shards of a dataset share.
struct RewriteSettings {
  Length row_tokens = 0;                 ///< 0: rows are as wide as their items, as batches are
  std::int64_t widest_row = 0;           ///< of those, in slots
  Length segment_multiple = 1;           ///< 0: check_rows()
  Length unslotted = 0;                  ///< tokens of every segment that take no slot
  std::int32_t max_segments = 0;         ///< the plan's limit, for the row check; 0 = none
  std::int32_t max_segments_in_row = 0;  ///< decides the dtype of segment ids
  IdType id_type = IdType::u16;
  FillIds fill;
  std::uint32_t position_start = 0;
  bool derived = true, write_added = false, write_slots = false;
  bool write_begins = false;       ///< of a dataset without tokens: seq_begin
  std::int64_t map_row_bytes = 0;  ///< the same: of a row's segments in all arrays, on average
  int zstd_level = 0;
  std::int64_t shard_bytes = 0;
  bool windowed = false;  ///< rows are those of RowOrder::windowed: a block is a window
  std::vector<Column> columns;
  bool single_segments = false;  ///< counts_whole_sequence()
  OutputRules output;
  std::int64_t shards = 0;                       ///< of the whole dataset: their files are named by it
  std::int64_t shards_before = 0;                ///< that others write
  std::function<void(std::int64_t)> row_loss{};  ///< is told the loss tokens of every row in turn, where it is wanted

  /// Tokens that a row has room for: its slots, and those of each segment that take none.
  Length row_room() const { return row_tokens + unslotted * max_segments_in_row; }
  int slot_bytes() const;                           ///< of the arrays with a value for each slot, uncompressed
  std::int64_t row_bytes() const;                   ///< of all arrays with the same number of values in every row
  std::int64_t shards_of(std::int64_t rows) const;  ///< into how many shards --shard-bytes cuts so many rows
  std::int64_t block_slots() const;                 ///< of rows that a worker takes at once, but for a longer row
  std::int64_t block_bytes() const;                 ///< the same in memory
};

/// The rows [first, first + count) as a shard of this name.
struct ShardRows {
  std::string name;
  std::int64_t first = 0, count = 0;
};

/// Writes shard folders into a staged output. In order, but the first rows of a shard are made while those of the shard before
/// are written, and a shard's last step (sync to disk, journal) overlaps the next shard. Shards that an interrupted run finished
/// are taken as they are.
class Rewriter {
 public:
  Rewriter(const SequenceSource& source, const DatasetKeys& keys, const RewriteSettings& settings, StagedOutput& staged,
           const RunContext& context);

  /// Write all rows; shards are named shard-PPPPP-SSSSS from `first_shard` on. Every row is checked (core/row_check.h).
  void write(const OrderedRows& rows, std::int32_t partition, std::int64_t first_shard = 0);

  /// The same in shards that the caller has cut, one after the other.
  void write_shards(const OrderedRows& rows, const std::vector<ShardRows>& shards);

  /// Wait until everything is on disk. \return the shards in the order written
  std::vector<ManifestShard> finish();

  std::int64_t shards_written() const { return static_cast<std::int64_t>(shards_.size()); }
  const std::string& shard_name(std::int64_t shard) const { return shards_[static_cast<std::size_t>(shard)].folder; }

 private:
  struct OpenShard;
  struct RowRange;
  struct FinishedBlock;

  OpenShard open_shard(const OrderedRows& rows, const ShardRows& shard, std::int64_t number) const;
  RowRange next_range(const OrderedRows& rows, OpenShard& shard) const;
  FinishedBlock make_block(const OrderedRows& rows, RowRange&& range) const;
  void write_block(FinishedBlock&& block, OpenShard& shard) const;
  void close_shard(OpenShard&& shard);

  std::int64_t block_rows(const OrderedRows& rows, std::int64_t first, std::int64_t left) const;
  int blocks_in_flight(std::int64_t blocks_of_a_shard) const;
  std::int64_t slots_of_rows(const OrderedRows& rows, std::int64_t first, std::int64_t count) const;
  std::unique_ptr<RowSink> make_sink(const ManifestShard& shard, std::int64_t number, std::int64_t slots,
                                     std::vector<std::int64_t> list_values) const;
  void wait_for_sync();

  const SequenceSource& source_;
  const DatasetKeys& keys_;
  RewriteSettings settings_;
  StagedOutput& staged_;
  const RunContext& context_;
  std::vector<ManifestShard> shards_;
  std::future<ManifestShard> syncing_;  // of the last shard
};

}  // namespace shardpack
