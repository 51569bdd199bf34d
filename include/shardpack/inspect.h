// What inspect shows of a dataset, a row, a sequence, a plan or source shards: values, which src/report turns into text or JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shardpack/batch_manifest.h"
#include "shardpack/jobs.h"
#include "shardpack/length_histogram.h"
#include "shardpack/ltd_manifest.h"
#include "shardpack/manifest.h"
#include "shardpack/packing_plan.h"

namespace shardpack {

struct InspectOptions {
  ReadOptions read;                      ///< for source shards
  std::optional<std::int64_t> row;       ///< of the dataset, shards in the manifest's order; of a batch plan: the batch
  std::optional<std::int64_t> sequence;  ///< record ordinal over all sources
};

/// How long ranks wait for each other in the shape that rows were packed for: attention of the dearest rank against the mean one,
/// over all whole micro-steps of the planned rows.
struct RowWaits {
  TrainingShape shape;
  double imbalance = 1, bound = 1;  ///< as the rows lie; what no order and no composition of them brings it under
};

/// A packed dataset as a whole.
struct DatasetView {
  Manifest manifest;
  std::optional<RowWaits> waits;     ///< nothing for one rank
  LengthHistogram segments_in_rows;  ///< over the planned rows
  /// Of manifest.options, those that are not what pack does by default.
  std::vector<std::pair<std::string, std::string>> chosen_options;
  std::int64_t bytes = 0;  ///< of all files but the manifest
};

/// One segment of one row.
struct SegmentView {
  std::int64_t begin = 0;  ///< slot of the row
  Length length = 0, slots = 0;
  std::int64_t first_position = 0;
  std::string source;  ///< file
  std::int64_t record = 0, sequence = 0, first_token = 0, tokens = 0;
  std::uint8_t added = 0;                         ///< kAddedBos | kAddedEos
  std::vector<std::int64_t> first_ids, last_ids;  ///< of the tokens; no id is in both
};
struct RowView {
  std::int64_t row = 0;
  std::string shard;
  std::int64_t row_in_shard = 0;
  Length row_tokens = 0;
  bool tail = false;  ///< a repeated or fill row
  std::vector<SegmentView> segments;
};

/// Where the pieces of one sequence lie.
struct PieceView {
  std::int64_t row = 0;
  std::string shard;
  std::int64_t row_in_shard = 0, segment = 0;  ///< segment: as in segment_ids, from 1
  std::int64_t begin = 0;                      ///< slot of the row
  std::int64_t first_token = 0, tokens = 0;
  std::uint8_t added = 0;
  bool tail = false;
};
struct SequenceView {
  std::int64_t sequence = 0;
  std::string source;
  std::int64_t record = 0;
  std::vector<PieceView> pieces;  ///< by first token, those in repeated rows last
};

struct PlanView {
  PackingPlan plan;               ///< of all groups together where there are groups
  std::vector<GroupPlan> groups;  ///< ascending by key
  LengthHistogram items;          ///< in slots
};

/// A random-LTD schedule folder.
struct LtdView {
  LtdManifest manifest;
  std::vector<LtdPlateau> plateaus;
  std::vector<double> rates;  ///< learning rate at the first step of each plateau
  double last_rate = 0;       ///< of the last step
};

/// A batch plan as a whole.
struct BatchPlanView {
  BatchManifest manifest;
  LengthHistogram pad_lengths;  ///< batches of the first epoch by padded length
  std::int64_t bytes = 0;       ///< of all files but the manifest
};

/// One batch of it.
struct BatchView {
  struct Member {
    std::int64_t member = 0;  ///< sequence or row
    std::int64_t kept = -1;   ///< tokens that are used, where sequences are cut; -1 otherwise
    float weight = 1;
  };
  std::int64_t batch = 0, epoch = 0, step = 0, micro = 0, rank = 0;
  std::int64_t pad_length = 0, real_tokens = 0;
  bool rows = false;
  std::vector<Member> members;
};

/// Exactly one is there.
struct InspectResult {
  std::string path;
  std::optional<DatasetView> dataset;
  std::optional<RowView> row;
  std::optional<SequenceView> sequence;
  std::optional<PlanView> plan;
  std::optional<LtdView> ltd;
  std::optional<BatchPlanView> batch_plan;
  std::optional<BatchView> batch;
  std::optional<LengthHistogram> histogram;
  std::optional<ScanResult> sources;
};

/// \param path  a packed dataset's, a batch plan's or an LTD folder (or its manifest), a plan, a histogram file, or source shards
/// \throws Error{usage} for a row or sequence that is not there, or asked of what has none; what the readers throw.
InspectResult inspect(const std::string& path, const InspectOptions& options, const RunContext& context);

}  // namespace shardpack
