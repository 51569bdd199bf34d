// manifest.json of a batch plan's folder: what was batched, how, and what it costs. docs/formats.md describes every key.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardpack/batch_cost.h"
#include "shardpack/batch_plan.h"
#include "shardpack/column.h"
#include "shardpack/fingerprint.h"
#include "shardpack/item.h"
#include "shardpack/manifest.h"

namespace shardpack {

/// How sequences lie in the shards of a batch plan.
enum class BatchLayout : std::uint8_t {
  padded,  ///< each takes the batch's padded length: the ids of a batch are a table
  ragged,  ///< one after the other
};
inline constexpr std::array<std::string_view, 2> kBatchLayouts{"padded", "ragged"};  // index = BatchLayout

struct BatchShardOptions {
  BatchLayout layout = BatchLayout::padded;
  std::int64_t pad_id = 0;
  std::optional<IdType> id_type;  ///< u16 or u32; default: u16 when every id fits
  int zstd_level = 0;             ///< 0 = not compressed
  std::int64_t shard_bytes = std::int64_t{512} << 20;
};

/// The batches themselves, epoch by epoch, in shards. In tokens, loss tokens and fingerprints, over all epochs: source x epochs +
/// repeated = batched + removed x epochs + dropped.
struct BatchShards {
  BatchShardOptions options;
  IdType id_type = IdType::u16;
  std::int64_t id_min = 0, id_max = -1;  ///< of the source ids; 0 and -1 when there are none
  std::vector<Column> columns;           ///< ascending by name
  std::vector<std::string> not_carried;
  std::int64_t source_loss_tokens = 0, loss_tokens = 0;  ///< of the sources; of all batches, repeated sequences included
  Fingerprint source, batched, removed, dropped, repeated;
  std::vector<ManifestShard> shards;  ///< shard-EPOCH-NUMBER; a row is a batch, a segment a sequence
};

struct BatchManifest {
  std::string tool_version;
  bool rows = false;                                     ///< members are rows of a packed dataset, not sequences
  std::int64_t source_sequences = 0, source_tokens = 0;  ///< all that were read; rows and their tokens where rows are batched
  std::int64_t items = 0, tokens = 0;                    ///< batched in each epoch, before its tail
  std::int64_t epochs = 1, batches_per_epoch = 0;

  BatchOptions plan;
  LengthPolicy policy;  ///< row_tokens = --max-length, 0 = none
  /// How the inputs were read: name and JSON value, in a fixed order.
  std::vector<std::pair<std::string, std::string>> read_options;

  std::int64_t real_tokens = 0, padded_tokens = 0;  ///< over all epochs
  std::string loss_column;                          ///< "" where no column tells which tokens take part in the loss
  std::int64_t label_tokens = 0;                    ///< of the real tokens, those that take part in the loss
  double padded_squares = 0;                        ///< over all epochs
  std::int64_t shapes = 0, largest_batch = 0;       ///< the most of any epoch; largest_batch in padded tokens
  double imbalance = 1, free_imbalance = 1;         ///< of the worst epoch
  BatchTotals repeated, dropped;                    ///< over all epochs
  CostModel cost;                                   ///< what predicted minutes are made of

  std::string lengths_hash;                         ///< XXH3-128 of all lengths that were read, as i64
  std::optional<std::string> source_manifest_hash;  ///< of the packed dataset's manifest.json
  std::vector<ManifestSource> sources;
  RemovedCounts removed{};
  std::vector<ManifestFile> files;
  std::optional<BatchShards> shards;  ///< --write-shards

  std::int64_t steps_per_epoch() const { return batches_per_epoch / plan.group_size(); }
  double predicted_minutes() const;
};

/// The exact bytes of manifest.json: key order fixed, checksum last, nothing that differs between equal runs.
std::string to_json(const BatchManifest& manifest);

/// Inverse of to_json(). \throws Error{bad_data} for a bad checksum, a missing or mistyped key, or another format or version
BatchManifest batch_manifest_from_json(const std::string& text, const std::string& path);

}  // namespace shardpack
