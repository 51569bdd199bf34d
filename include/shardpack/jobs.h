// The jobs: each a readable function that composes the library, and a struct of results. The command line prints them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardpack/assignment.h"
#include "shardpack/batch_cost.h"
#include "shardpack/batch_manifest.h"
#include "shardpack/batch_plan.h"
#include "shardpack/error.h"
#include "shardpack/formats.h"
#include "shardpack/group_key.h"
#include "shardpack/item.h"
#include "shardpack/length_histogram.h"
#include "shardpack/manifest.h"
#include "shardpack/packer.h"
#include "shardpack/packing_plan.h"
#include "shardpack/presets.h"
#include "shardpack/run_context.h"
#include "shardpack/training_shape.h"

namespace shardpack {

// ---- partitions -------------------------------------------------------------------------------------------------------------
/// Which sequences a partition holds: consecutive ones, or blocks of them from all over the sources.
enum class PartitionOrder : std::uint8_t { input, shuffled };
inline constexpr std::array<std::string_view, 2> kPartitionOrders{"input", "shuffled"};  // index = PartitionOrder

inline constexpr std::int64_t kPartitionTokens = std::int64_t{256} << 20;

/// What decides the partitions.
struct PartitionCut {
  std::int64_t tokens = kPartitionTokens;  ///< of the source in one, at most
  PartitionOrder order = PartitionOrder::input;
  std::uint64_t seed = 0;
  std::int32_t keep_together = 1;
};

// ---- scan -------------------------------------------------------------------------------------------------------------------
struct ScanResult {
  LengthHistogram lengths;
  std::vector<ManifestSource> files;
  std::int64_t id_min = 0, id_max = -1;  ///< over all tokens; (0, -1) when there are none
  Fingerprint fingerprint;
  RemovedCount padding;  ///< positions with attention_mask 0
  std::int64_t null_records = 0;
  std::vector<std::string> not_carried;      ///< columns
  std::vector<GroupLengths> groups;          ///< ascending by key; empty without a group column
  std::vector<std::int64_t> record_lengths;  ///< tokens of every record in input order, when asked for
  std::string saved;                         ///< the bytes of a saved scan, when asked for
  std::int64_t partitions = 0;               ///< that it is cut into
};
struct SaveOptions {
  PartitionCut cut;
  LossSide loss_side = LossSide::none;  ///< for pack --drop-unlabeled
};
struct ScanWants {
  bool record_lengths = false;
  std::optional<SaveOptions> save;
};
ScanResult scan(const std::vector<std::string>& inputs, const ReadOptions& options, const RunContext& context,
                const ScanWants& wants = {});

// ---- plan -------------------------------------------------------------------------------------------------------------------
struct PlanOptions {
  LengthPolicy policy;
  std::string packer = "auto";
  PackerOptions packing;
};
struct PlanResult {
  PackingPlan plan;                        ///< of all groups together where there are groups
  LengthHistogram items;                   ///< in slots
  std::vector<GroupPlan> groups;           ///< ascending by key
  std::int64_t sequences = 0, tokens = 0;  ///< read; tokens of the source
  HistogramPolicyResult policy;
};
/// Inputs: one histogram file (CSV, JSON, list, .npy of lengths), or shards. A grouped histogram, and shards with
/// read.group_column, have a plan for each group.
PlanResult plan(const std::vector<std::string>& inputs, const ReadOptions& read, const PlanOptions& options,
                const RunContext& context);

// ---- pack -------------------------------------------------------------------------------------------------------------------
enum class Tail : std::uint8_t { repeat, fill, drop };

struct PackOptions {
  ReadOptions read;
  LengthPolicy policy;
  std::string packer = "auto";
  PackerOptions packing;
  std::string plan;  ///< a plan, or a folder with one for each partition, to be used instead of planning; empty = plan
  std::uint64_t seed = 0;
  std::optional<RowOrder> order;   ///< default: input for the input-order packers, windowed for a preset whose trainer shuffles
  TrainingShape shape;             ///< how the rows will be consumed: steps of balanced rows, and what the result tells of steps
  bool balance_attention = false;  ///< exchange items between rows, so that rows cost alike
  std::string preset = "native";
  std::optional<Container> container;           ///< default: the preset's first
  bool allow_inner_eos = false;                 ///< of presets that have EOS tell sequences apart
  std::optional<std::int64_t> max_predictions;  ///< M of a preset with M + K masked tokens a row; default: by the data
  std::optional<std::int64_t> pad_id;           ///< default: the preset's, else 0
  std::int64_t position_start = 0;
  std::optional<IdType> id_type;  ///< u16 or u32; default: u16 when every id fits
  bool derived = true;
  int zstd_level = 0;              ///< 0 = not compressed
  std::int64_t rows_multiple = 1;  ///< 0 = the rows of a step
  Tail tail = Tail::repeat;
  std::int64_t partition_tokens = kPartitionTokens;
  PartitionOrder partition_order = PartitionOrder::input;
  std::int64_t shard_bytes = std::int64_t{512} << 20;
  bool force = false;   ///< replace an output that shardpack made
  bool resume = false;  ///< go on with the finished shards of an interrupted run, if there are any
  bool dry_run = false;
  std::string scan;  ///< a saved scan of the inputs to go by, instead of a pass over them; empty = scan
  /// One of `of` shares of the partitions, for several machines; join() publishes what they make. Needs `scan`.
  struct Part {
    std::int64_t index = 1, of = 1;  ///< index from 1
  };
  std::optional<Part> part;
};
/// What the optimizer steps of an epoch are like, of some composition of the rows; attention costs the sum of squared segment
/// lengths. Imbalances are of the planned rows: over all micro-steps the dearest rank against the mean one.
struct StepBalance {
  double shuffled = 1, balanced = 1;  ///< imbalance in these orders
  double variation = 0;               ///< standard deviation / mean of the rows' costs
};
/// Tokens that take part in the loss, over the whole steps of an epoch.
struct StepLoss {
  double mean = 0;                   ///< a step
  std::int64_t least = 0, most = 0;  ///< of any step
  std::int64_t least_of_rank = 0;    ///< of any rank in any micro-step: where it is 0, a loss that is divided by it is no number
};
struct StepFigures {
  TrainingShape shape;
  std::int64_t steps = 0, rows_over = 0;  ///< whole steps an epoch; rows that fill none
  double tokens = 0;                      ///< real ones a step, on average
  double imbalance = 1;                   ///< as written
  double bound = 1;                       ///< no order and no composition of the rows brings it under this
  StepBalance planned;
  std::optional<StepBalance> exchanged;  ///< with PackOptions::balance_attention
  std::optional<StepLoss> loss;          ///< when a column tells it, and rows are written
};

/// What one of several processes did.
struct PartFigures {
  std::int64_t index = 1, of = 1;
  std::int64_t first_partition = 0, last_partition = 0;  ///< [first, last)
  std::int64_t kept_partitions = 0;                      ///< found finished, and whole
  std::int64_t rows = 0, shards = 0, bytes_written = 0;
};

struct PackResult {
  Manifest manifest;
  std::int64_t strategies = 0;
  std::int64_t bytes_written = 0;          ///< dry run: about what would be, 0 when compression makes it unknown
  std::int64_t dynamic_padding_slots = 0;  ///< what dynamic padding in random batches of 64 would take, expected
  std::int64_t shuffle_window_tokens = 0;  ///< rows are shuffled within so many: the largest partition, or its windows
  std::int64_t partitions = 0;
  std::optional<std::int64_t> cut_rows;  ///< more than one plan over all partitions would have, where that can be told
  std::vector<ManifestGroup> groups;     ///< over all partitions, ascending by key; empty without a group column
  std::optional<StepFigures> steps;      ///< when the options say anything of steps; not of parts
  std::optional<PartFigures> part;       ///< of one part; all other figures are of the whole dataset
  bool verified = false;                 ///< the conservation equations held (always, unless dry run)
};
PackResult pack(const std::vector<std::string>& inputs, const std::string& output, const PackOptions& options,
                const RunContext& context);

// ---- join -------------------------------------------------------------------------------------------------------------------
struct JoinOptions {
  bool force = false;  ///< replace an output that shardpack made
  bool dry_run = false;
};
/// Publishes what the parts of a distributed pack have made for `output`, after all of it was read once and compared with its
/// hashes: the bytes are those of one machine's pack. \throws Error{bad_data} naming the parts that are missing, unfinished,
/// damaged or of another run, and what mends it
PackResult join(const std::string& output, const JoinOptions& options, const RunContext& context);

// ---- batch ------------------------------------------------------------------------------------------------------------------
struct BatchJobOptions {
  ReadOptions read;
  LengthPolicy policy;  ///< row_tokens = the longest that a batch takes (0 = no limit), overlong, truncate_side, min_tokens
  BatchOptions plan;
  std::int64_t epochs = 1;
  CostModel cost = published_cost_model();
  std::optional<BatchShardOptions> write_shards;  ///< write the batches themselves, too
  bool force = false;                             ///< replace an output that shardpack made
  bool resume = false;                            ///< of write_shards: go on with the finished shards of an interrupted run
  bool dry_run = false;
};
struct BatchResult {
  BatchManifest manifest;
  double real_squares = 0;             ///< over all epochs: attention that is not padding
  double length_correlation = 0;       ///< of the padded lengths of consecutive steps, first epoch
  std::optional<double> repeat_share;  ///< of pairs that share a batch again in the second epoch
  std::int64_t bytes_written = 0;      ///< dry run: of the shards, about what would be, 0 when compression makes it unknown
};
/// Inputs: shards; or a list of lengths (text, or a 1-D integer .npy); or a packed dataset, whose rows are batched then. Shards
/// are written of shards alone. \throws Error{usage} for those of anything else
BatchResult batch(const std::vector<std::string>& inputs, const std::string& output, const BatchJobOptions& options,
                  const RunContext& context);

// ---- unpack -----------------------------------------------------------------------------------------------------------------
struct UnpackOptions {
  UnpackFormat format = UnpackFormat::jsonl;
  int zstd_level = 0;                  ///< JSON lines: 0 = not compressed
  std::vector<std::string> against{};  ///< the sources of a dataset whose rows hold no tokens; of another one none
  bool force = false;                  ///< replace an output that unpack made
  bool dry_run = false;
};
struct UnpackResult {
  Manifest dataset;
  std::vector<ManifestFile> files;                    ///< of the sources, in their order; no bytes after a dry run
  std::int64_t sequences = 0, empty = 0, tokens = 0;  ///< empty: of these, the records without tokens
  std::int64_t bytes_written = 0;
};
/// `path`: a packed dataset. Its sources in their own order, as far as the rows hold them: a file for each, under its relative
/// name with another suffix, and removed.csv where something is missing. Memory: about 40 bytes for each segment of one
/// partition, and blocks in flight; the partition's tokens lie in a temporary file. \throws Error{bad_data} when what was written
/// is not, by its fingerprint, what was packed
UnpackResult unpack(const std::string& path, const std::string& output, const UnpackOptions& options, const RunContext& context);

// ---- verify -----------------------------------------------------------------------------------------------------------------
struct VerifyOptions {
  std::vector<std::string> against;  ///< sources to read again; empty = the manifest's fingerprints are enough
};
struct VerifyResult {
  std::vector<Issue> issues;
  std::vector<std::string> checked;  ///< what was checked, a line each
  std::int64_t rows = 0, segments = 0, tokens = 0, bytes = 0;
  bool ok() const { return issues.empty(); }
};
/// `path`: a packed dataset's or an LTD folder, or a plan.json. Reads every byte again with its own row, cover and fingerprint
/// logic. For an LTD folder `against` is the packed dataset that it was made for.
VerifyResult verify(const std::string& path, const VerifyOptions& options, const RunContext& context);

}  // namespace shardpack
