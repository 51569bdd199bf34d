// batch: which sequences make each batch, and the length that they are padded to. Read batch() as the table of contents.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "base/checked.h"
#include "base/units.h"
#include "exec/ordered_map.h"
#include "io/batch_folder.h"
#include "io/json.h"
#include "io/manifest_parts.h"
#include "io/npy_writer.h"
#include "io/staged_output.h"
#include "jobs/batch_shards.h"
#include "jobs/batch_source.h"
#include "jobs/index_views.h"
#include "jobs/output_place.h"
#include "jobs/pack_options.h"
#include "jobs/resumable.h"
#include "shardpack/error.h"
#include "shardpack/jobs.h"
#include "shardpack/version.h"

namespace shardpack {

namespace {

constexpr std::int64_t kMaxEpochs = 100'000;

/// What can be refused before anything is read.
void check_options(const BatchJobOptions& options) {
  check_batch_options(options.plan);
  if (options.epochs < 1 || options.epochs > kMaxEpochs) throw Error(ErrorCode::usage, "--epochs is from 1 to 100,000");
  if (options.policy.overlong == Overlong::split) (void)select_batch_items({}, options.policy);  // says why
  if (options.policy.overlong != Overlong::error && options.policy.row_tokens == 0) {
    throw Error(ErrorCode::usage, "--overlong says what becomes of sequences longer than --max-length N; give it");
  }
  if (options.resume && !options.write_shards)
    throw Error(ErrorCode::usage, "--resume goes on with shards; a plan alone is made again (--write-shards writes shards)");
  if (!options.write_shards) return;
  const BatchShardOptions& shards = *options.write_shards;
  constexpr std::int64_t kMaxU16 = 0xFFFF, kMaxId = 0xFFFFFFFF;
  if (shards.pad_id < 0 || shards.pad_id > kMaxId)
    throw Error(ErrorCode::usage, fmt::format("--pad-id {}: token ids are whole numbers from 0 to 4,294,967,295", shards.pad_id));
  if (shards.id_type == IdType::u16 && shards.pad_id > kMaxU16)
    throw Error(ErrorCode::usage,
                fmt::format("--id-dtype u16 cannot hold the pad id {}; use auto or u32", with_commas(shards.pad_id)));
  if (shards.shard_bytes < 1) throw Error(ErrorCode::usage, "--shard-bytes must be at least 1");
}

BatchSelection select(const BatchSource& source, const BatchJobOptions& options) {
  if (!source.rows()) {
    BatchSelection selection = select_batch_items(source.lengths, options.policy);
    if (!source.loss_tokens.empty()) {
      for (const std::int64_t sequence : selection.sequences)
        selection.loss_tokens.push_back(source.loss_tokens[static_cast<std::size_t>(sequence)]);
    }
    return selection;
  }
  if (options.policy.row_tokens > 0 || options.policy.min_tokens > 0) {
    throw Error(ErrorCode::usage, "rows of a packed dataset have one length; --max-length and --min-tokens are for sequences");
  }
  BatchSelection rows;
  rows.items.lengths.assign(source.lengths.size(), source.row_tokens);
  rows.items.costs = source.costs;
  rows.items.tokens.assign(source.lengths.begin(), source.lengths.end());
  rows.loss_tokens = source.loss_tokens;
  rows.sequences.resize(source.lengths.size());
  std::iota(rows.sequences.begin(), rows.sequences.end(), std::int64_t{0});
  rows.tokens = std::accumulate(source.lengths.begin(), source.lengths.end(), std::int64_t{0});
  return rows;
}

/// The files of the output, epoch by epoch.
class PlanWriter {
 public:
  /// \param lengths  of all that was read, by which a later step knows what each member holds
  /// \param labels  does a column tell which tokens take part in the loss?
  PlanWriter(const std::string& folder, const BatchSelection& selection, std::span<const std::int64_t> lengths, bool labels,
             const BatchOptions& options)
      : selection_(selection),
        options_(options),
        offsets_(folder, "batch_offsets.npy", "<i8"),
        groups_(folder, "group.npy", "<i4"),
        lengths_(folder, "lengths.npy", "<i8"),
        members_(folder, "members.npy", "<i8"),
        pads_(folder, "pad_length.npy", "<i4"),
        real_(folder, "real_tokens.npy", "<i8") {
    if (selection.cut) kept_.emplace(folder, "kept_tokens.npy", "<i4");
    if (labels) labels_.emplace(folder, "label_tokens.npy", "<i8");
    offsets_.append(std::int64_t{0});
    lengths_.append(lengths);
  }

  /// Is the weights' file needed? Every epoch answers the same.
  void begin_weights(const std::string& folder) { weights_.emplace(folder, "weights.npy", "<f4"); }

  void write(const BatchEpoch& epoch) {
    const BatchItems& items = selection_.items;
    std::vector<std::int64_t> members, offsets, real, labels;
    std::vector<std::int32_t> kept, groups;
    members.reserve(epoch.items.size());
    for (const std::uint32_t item : epoch.items) members.push_back(selection_.sequences[item]);
    if (kept_) {
      for (const std::uint32_t item : epoch.items) kept.push_back(items.lengths[item]);
    }
    for (std::int64_t b = 0; b < epoch.batches(); ++b) {
      const auto begin = static_cast<std::size_t>(epoch.begin[static_cast<std::size_t>(b)]);
      const auto end = static_cast<std::size_t>(epoch.begin[static_cast<std::size_t>(b) + 1]);
      std::int64_t tokens = 0, in_loss = 0;
      for (std::size_t i = begin; i < end; ++i) {
        if (!epoch.weights.empty() && epoch.weights[i] == 0) continue;
        tokens += items.real_tokens(epoch.items[i]);
        if (labels_) in_loss += selection_.loss_tokens[epoch.items[i]];
      }
      real.push_back(tokens);
      labels.push_back(in_loss);
      offsets.push_back(written_ + static_cast<std::int64_t>(end));
      groups.push_back(static_cast<std::int32_t>(b / options_.group_size()));
    }
    written_ += static_cast<std::int64_t>(members.size());
    offsets_.append(std::span<const std::int64_t>(offsets));
    groups_.append(std::span<const std::int32_t>(groups));
    if (kept_) kept_->append(std::span<const std::int32_t>(kept));
    members_.append(std::span<const std::int64_t>(members));
    pads_.append(std::span<const Length>(epoch.pad_length));
    real_.append(std::span<const std::int64_t>(real));
    if (labels_) labels_->append(std::span<const std::int64_t>(labels));
    if (weights_) weights_->append(std::span<const float>(epoch.weights));
  }

  /// Sorted by name.
  std::vector<ManifestFile> finish() {
    std::vector<ManifestFile> files;
    files.push_back(offsets_.finish());
    files.push_back(groups_.finish());
    if (kept_) files.push_back(kept_->finish());
    if (labels_) files.push_back(labels_->finish());
    files.push_back(lengths_.finish());
    files.push_back(members_.finish());
    files.push_back(pads_.finish());
    files.push_back(real_.finish());
    if (weights_) files.push_back(weights_->finish());
    return files;
  }

 private:
  const BatchSelection& selection_;
  const BatchOptions& options_;
  NpyWriter offsets_, groups_, lengths_, members_, pads_, real_;
  std::optional<NpyWriter> kept_, labels_, weights_;
  std::int64_t written_ = 0;  // items
};

void add(BatchTotals& sum, const BatchTotals& totals) {
  sum.items = checked_add(sum.items, totals.items, "items");
  sum.tokens = checked_add(sum.tokens, totals.tokens, "tokens");
}

/// An epoch's figures into the result.
void count_epoch(const BatchSelection& selection, const BatchOptions& options, const BatchEpoch& epoch, bool first,
                 BatchResult& result) {
  const BatchStats stats = batch_stats(selection.items, options, epoch);
  BatchManifest& manifest = result.manifest;
  if (first) {
    manifest.batches_per_epoch = stats.batches;
    result.length_correlation = stats.length_correlation;
  }
  ensure(stats.batches == manifest.batches_per_epoch, "an epoch has another number of batches");
  manifest.real_tokens = checked_add(manifest.real_tokens, stats.real_tokens, "tokens");
  manifest.padded_tokens = checked_add(manifest.padded_tokens, stats.padded_tokens, "padded tokens");
  manifest.padded_squares += stats.padded_squares;
  result.real_squares += stats.real_squares;
  manifest.shapes = std::max(manifest.shapes, stats.shapes);
  manifest.largest_batch = std::max(manifest.largest_batch, stats.largest_batch);
  manifest.imbalance = std::max(manifest.imbalance, stats.imbalance);
  manifest.free_imbalance = std::max(manifest.free_imbalance, stats.free_imbalance);
  if (!selection.loss_tokens.empty()) {
    for (std::size_t i = 0; i < epoch.items.size(); ++i) {
      if (epoch.weights.empty() || epoch.weights[i] > 0) manifest.label_tokens += selection.loss_tokens[epoch.items[i]];
    }
  }
  add(manifest.repeated, epoch.repeated);
  add(manifest.dropped, epoch.dropped);
  // Every item once, and the tail on top: nothing is lost without being counted.
  ensure(stats.real_tokens ==
             selection.tokens - epoch.dropped.tokens + (options.tail == BatchTail::repeat ? epoch.repeated.tokens : 0),
         "the batches of an epoch do not hold the tokens that were selected");
}

/// The manifest as far as the options decide it.
BatchManifest describe(const BatchJobOptions& options) {
  BatchManifest manifest;
  manifest.tool_version = kVersion;
  manifest.epochs = options.epochs;
  manifest.plan = options.plan;
  manifest.policy = options.policy;
  manifest.read_options = recorded_read_options(options.read);
  manifest.cost = options.cost;
  if (options.write_shards) {
    manifest.shards.emplace();
    manifest.shards->options = *options.write_shards;
  }
  return manifest;
}

BatchManifest describe(const BatchSource& source, const BatchSelection& selection, const BatchJobOptions& options) {
  BatchManifest manifest = describe(options);
  manifest.rows = source.rows();
  manifest.source_sequences = static_cast<std::int64_t>(source.lengths.size());
  for (const std::int64_t length : source.lengths) {
    manifest.source_tokens = checked_add(manifest.source_tokens, length, "source tokens");
  }
  manifest.items = static_cast<std::int64_t>(selection.items.size());
  manifest.tokens = selection.tokens;
  manifest.lengths_hash = lengths_hash(source.lengths);
  manifest.source_manifest_hash = source.manifest_hash;
  manifest.sources = source.sources;
  manifest.loss_column = source.loss_column;
  manifest.removed = selection.removed;
  manifest.removed[static_cast<std::size_t>(RemovalCause::null)].sequences = source.null_records;
  manifest.removed[static_cast<std::size_t>(RemovalCause::empty)].sequences -= source.null_records;  // both have length 0
  if (options.write_shards) manifest.shards = describe_shards(*options.write_shards, source.shards);
  return manifest;
}

/// What decides the shards' bytes, as far as it is known before the inputs are read: the version, and the options as recorded.
RunIdentity identity_before_reading(const BatchJobOptions& options) {
  const Json manifest = Json::parse(to_json(describe(options)), std::string(kManifestName));
  RunIdentity identity{{"the version", kVersion}};
  for (const std::string_view name : {"world", "accumulation", "epochs"})
    identity.emplace_back(fmt::format("option {}", name), manifest.at(name).dump());
  for (const auto& [name, value] : manifest.at("options").members()) identity.emplace_back("option " + name, value.dump());
  return identity;
}

/// All epochs: their figures into `result`, and the plan's files where there is a folder for them.
void plan_epochs(const std::string& folder, const BatchSource& source, const BatchSelection& selection, const BatchOptions& plan,
                 BatchResult& result, const RunContext& context) {
  const std::int64_t epochs = result.manifest.epochs;
  context.progress.begin_stage("batching", epochs * static_cast<std::int64_t>(selection.items.size()), "sequences");
  std::optional<PlanWriter> writer;
  if (!folder.empty()) writer.emplace(folder, selection, source.lengths, !source.loss_column.empty(), plan);
  BatchEpoch first;  // kept until the second one was compared with it
  std::int64_t produced = 0, consumed = 0;
  ordered_map(
      context.pool, default_in_flight(context.pool), context.stop,
      [&]() -> std::optional<std::int64_t> {
        if (produced == epochs) return std::nullopt;
        return produced++;
      },
      [&](std::int64_t epoch) { return plan_batches(selection.items, plan, epoch); },
      [&](BatchEpoch&& epoch) {
        count_epoch(selection, plan, epoch, consumed == 0, result);
        if (consumed == 0 && writer && !epoch.weights.empty()) writer->begin_weights(folder);
        if (writer) writer->write(epoch);
        if (consumed == 1) result.repeat_share = repeat_share(first, epoch, selection.items.size());
        first = consumed == 0 ? std::move(epoch) : BatchEpoch();
        ++consumed;
        context.progress.advance(static_cast<std::int64_t>(selection.items.size()));
      });
  if (writer) result.manifest.files = writer->finish();
  context.progress.end_stage();
  if (result.manifest.batches_per_epoch == 0 && result.manifest.items > 0) {
    throw Error(ErrorCode::usage, fmt::format("--tail drop leaves nothing: {} sequences do not fill one step of {} batches",
                                              with_commas(result.manifest.items), with_commas(plan.group_size())));
  }
}

/// batch() from the reading on. Until it publishes, `staged` holds what there is; none = a dry run.
BatchResult read_plan_write(const std::vector<std::string>& inputs, const std::string& output, const BatchJobOptions& options,
                            std::optional<StagedOutput>& staged, const RunContext& context) {
  // Lengths, and what is taken of them.
  RunContext reading = context;
  if (reading.temp_dir.empty()) reading.temp_dir = staged ? staged->folder() : parent_of(output);
  const BatchNeeds needs{.loss_part = batched_part(options.policy),
                         .tokens = options.write_shards.has_value(),
                         .random_access = options.write_shards && !options.dry_run};
  const BatchSource source = read_batch_source(inputs, options.read, needs, reading);
  const BatchSelection selection = select(source, options);
  BatchOptions plan = options.plan;
  plan.fixed_length = options.policy.row_tokens;
  check_batch_items(selection.items, plan, selection.sequences);
  BatchResult result;
  result.manifest = describe(source, selection, options);
  if (options.write_shards && staged) {
    RunIdentity identity = identity_before_reading(options);
    add_inputs(identity, result.manifest.sources);
    staged->begin_shards(identity, context);
  }

  // Every epoch is planned alone, in any number of workers, and written in order.
  plan_epochs(staged ? staged->folder() : "", source, selection, plan, result, context);
  if (options.write_shards) {
    const std::int64_t bytes = expected_shard_bytes(result.manifest);
    check_free_space(output, bytes - (staged ? staged->finished_bytes() : 0),
                     "--write-shards ragged, --compress zstd or fewer --epochs");
    if (!staged) result.bytes_written = bytes;
  }
  if (!staged) return result;

  // The batches themselves. Every sum comes out, or nothing is published.
  if (options.write_shards) write_batch_shards(*staged, source, selection, plan, result.manifest, context);
  result.bytes_written = listed_bytes(result.manifest);
  staged->write_file(kManifestName, to_json(result.manifest));
  staged->publish();
  return result;
}

}  // namespace

BatchResult batch(const std::vector<std::string>& inputs, const std::string& output, const BatchJobOptions& options,
                  const RunContext& context) {
  // What can be refused is refused before anything is read; the place is ours from here on.
  check_options(options);
  check_output_apart(output, inputs);
  std::optional<StagedOutput> staged;
  if (options.dry_run) {
    check_output_place(output, kBatchesFormat, options.force);
  } else {
    staged.emplace(output, kBatchesFormat, options.force, context.diagnostics,
                   options.resume ? StagedOutput::Leftovers::resume : StagedOutput::Leftovers::remove);
    if (options.write_shards) staged->check_same_run(identity_before_reading(options));
  }
  return keeping_finished_shards(staged, context.diagnostics,
                                 [&] { return read_plan_write(inputs, output, options, staged, context); });
}

}  // namespace shardpack
