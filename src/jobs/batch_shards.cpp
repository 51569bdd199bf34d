#include "jobs/batch_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "exec/ordered_map.h"
#include "jobs/conservation.h"
#include "jobs/index_views.h"
#include "jobs/pack_options.h"
#include "jobs/removed_log.h"
#include "jobs/rewrite.h"

namespace shardpack {

namespace {

bool is_padded(const BatchManifest& manifest) { return manifest.shards->options.layout == BatchLayout::padded; }

bool cuts_at_start(const LengthPolicy& policy) {
  return policy.overlong == Overlong::truncate && policy.truncate_side == TruncateSide::start;
}

RewriteSettings settings_of(const BatchManifest& manifest) {
  const BatchShards& shards = *manifest.shards;
  return {.row_tokens = 0,
          .widest_row = manifest.largest_batch,
          .segment_multiple = is_padded(manifest) ? 0 : 1,
          .id_type = shards.id_type,
          .fill = {.pad = static_cast<std::uint32_t>(shards.options.pad_id)},
          .derived = false,
          .zstd_level = shards.options.zstd_level,
          .shard_bytes = shards.options.shard_bytes,
          .columns = shards.columns,
          .single_segments = cuts_at_start(manifest.policy),
          .output = {}};
}

/// The sequences of a plan: how long they are, and what batches take of them.
class Parts {
 public:
  Parts(const BatchSource& source, const BatchSelection& selection, const LengthPolicy& policy)
      : source_(source), selection_(selection), policy_(policy) {}

  /// Of item number `item` of the selection.
  RemovedRange kept(std::uint32_t item, RemovalCause cause) const {
    const SequenceId sequence = selection_.sequences[item];
    const std::int64_t tokens = selection_.items.lengths[item], length = source_.lengths[static_cast<std::size_t>(sequence)];
    return {sequence, cuts_at_start(policy_) ? length - tokens : 0, tokens, cause};
  }

  /// What the policy takes out, in every epoch.
  std::vector<RemovedRange> removed() const {
    std::vector<RemovedRange> ranges;
    std::size_t item = 0;
    for (std::size_t s = 0; s < source_.lengths.size(); ++s) {
      const auto sequence = static_cast<SequenceId>(s);
      const std::int64_t length = source_.lengths[s];
      if (item < selection_.sequences.size() && selection_.sequences[item] == sequence) {
        const std::int64_t tokens = selection_.items.lengths[item++];
        if (tokens < length)
          ranges.push_back({sequence, cuts_at_start(policy_) ? 0 : tokens, length - tokens, RemovalCause::truncated});
      } else if (length > 0) {
        ranges.push_back({sequence, 0, length, length < policy_.min_tokens ? RemovalCause::too_short : RemovalCause::dropped});
      }
    }
    return ranges;
  }

  /// What the tail of one epoch does: stands in it again, or not at all.
  std::vector<RemovedRange> repeated(const BatchEpoch& epoch) const {
    std::vector<RemovedRange> ranges;
    std::vector<bool> seen(selection_.items.size());
    for (const std::uint32_t item : epoch.items) {
      if (seen[item]) ranges.push_back(kept(item, RemovalCause::tail));
      seen[item] = true;
    }
    return ranges;
  }
  std::vector<RemovedRange> dropped(const BatchEpoch& epoch) const {
    std::vector<RemovedRange> ranges;
    if (epoch.dropped.items == 0) return ranges;
    std::vector<bool> seen(selection_.items.size());
    for (const std::uint32_t item : epoch.items) seen[item] = true;
    for (std::uint32_t item = 0; item < seen.size(); ++item) {
      if (!seen[item]) ranges.push_back(kept(item, RemovalCause::tail));
    }
    return ranges;
  }

  /// The batches [first, first + count) of an epoch as rows, as wide as their sequences are padded.
  OrderedRows rows(const BatchEpoch& epoch, std::int64_t first, std::int64_t count, bool padded) const {
    OrderedRows rows;
    for (std::int64_t batch = first; batch < first + count; ++batch) {
      const auto b = static_cast<std::size_t>(batch);
      for (auto i = static_cast<std::size_t>(epoch.begin[b]); i < static_cast<std::size_t>(epoch.begin[b + 1]); ++i) {
        const RemovedRange part = kept(epoch.items[i], RemovalCause::tail);
        const auto tokens = static_cast<Length>(part.tokens);
        rows.rows.items.push_back(static_cast<std::int32_t>(rows.items.size()));
        rows.items.push_back({.sequence = part.sequence,
                              .first_token = part.first_token,
                              .tokens = tokens,
                              .slots = padded ? epoch.pad_length[b] : tokens});
      }
      rows.rows.begin.push_back(static_cast<std::int64_t>(rows.items.size()));
    }
    return rows;
  }

  /// Slots of a batch.
  std::int64_t slots(const BatchEpoch& epoch, std::int64_t batch, bool padded) const {
    const auto b = static_cast<std::size_t>(batch);
    if (padded) return epoch.size(batch) * epoch.pad_length[b];
    std::int64_t slots = 0;
    for (auto i = static_cast<std::size_t>(epoch.begin[b]); i < static_cast<std::size_t>(epoch.begin[b + 1]); ++i)
      slots += selection_.items.lengths[epoch.items[i]];
    return slots;
  }

 private:
  const BatchSource& source_;
  const BatchSelection& selection_;
  const LengthPolicy& policy_;
};

/// One side of an equation.
struct Sum {
  std::int64_t tokens = 0, loss_tokens = 0;
  Fingerprint fingerprint;

  Sum& operator+=(const Sum& other) {
    tokens += other.tokens;
    loss_tokens += other.loss_tokens;
    fingerprint += other.fingerprint;
    return *this;
  }
};

Sum sum_of(const std::vector<RemovedRange>& ranges, const RemovedLog& log) {
  Sum sum{.tokens = 0, .loss_tokens = 0, .fingerprint = log.totals().fingerprint};
  for (const RemovedRange& range : ranges) sum.tokens += range.tokens;
  for (const std::int64_t tokens : log.totals().loss_tokens) sum.loss_tokens += tokens;
  return sum;
}

/// What an epoch holds beside each sequence once, and the first of its shards.
struct WrittenEpoch {
  std::size_t first_shard = 0;
  Sum repeated, dropped;
};

}  // namespace

BatchShards describe_shards(const BatchShardOptions& options, const ScannedSource& scanned) {
  BatchShards shards;
  shards.options = options;
  shards.id_type = choose_id_type(options.id_type, options.pad_id, scanned.totals.id_max);
  shards.id_min = scanned.totals.id_min;
  shards.id_max = scanned.totals.id_max;
  const std::span<const Column> columns = scanned.source->columns();
  shards.columns.assign(columns.begin(), columns.end());
  shards.not_carried = scanned.not_carried;
  shards.source_loss_tokens = scanned.loss_tokens;
  shards.source = scanned.totals.fingerprint;
  return shards;
}

std::int64_t expected_shard_bytes(const BatchManifest& manifest) {
  if (manifest.shards->options.zstd_level > 0) return 0;
  const bool weightless = manifest.plan.tail == BatchTail::short_step;  // what is repeated is no real token
  const std::int64_t slots =
      is_padded(manifest) ? manifest.padded_tokens : manifest.real_tokens + (weightless ? manifest.repeated.tokens : 0);
  const std::int64_t members = manifest.items * manifest.epochs + manifest.repeated.items - manifest.dropped.items;
  std::int64_t member_bytes = 4 + 24;
  for (const Column& column : manifest.shards->columns)
    member_bytes += column.kind == ColumnKind::token ? 0 : info(column.type).bytes;  // of lists their number is not known
  const std::int64_t batch_bytes = checked_mul(manifest.batches_per_epoch * manifest.epochs, 16, "output bytes");
  return checked_add(checked_mul(slots, settings_of(manifest).slot_bytes(), "output bytes"),
                     checked_add(checked_mul(members, member_bytes, "output bytes"), batch_bytes, "output bytes"),
                     "output bytes");
}

void write_batch_shards(StagedOutput& staged, const BatchSource& source, const BatchSelection& selection,
                        const BatchOptions& plan, BatchManifest& manifest, const RunContext& context) {
  BatchShards& shards = *manifest.shards;
  const SequenceSource& tokens = *source.shards.source;
  const DatasetKeys keys(lengths_of(tokens.index()).max_length(), tokens.columns());
  const RewriteSettings settings = settings_of(manifest);
  const Parts parts(source, selection, manifest.policy);
  const bool padded = is_padded(manifest);

  // What no epoch holds is written down once.
  const std::vector<RemovedRange> removed_ranges = parts.removed();
  RemovedLog removed(tokens, &keys, settings.single_segments, staged.folder(), context);
  removed.add(removed_ranges);

  context.progress.begin_stage("writing", manifest.batches_per_epoch * manifest.epochs, "batches");
  Rewriter rewriter(tokens, keys, settings, staged, context);
  std::vector<WrittenEpoch> epochs;
  for (std::int64_t e = 0; e < manifest.epochs; ++e) {
    throw_if_stopped(context.stop);
    const BatchEpoch epoch = plan_batches(selection.items, plan, e);  // the same as before, of which only one is held
    WrittenEpoch& written = epochs.emplace_back();
    written.first_shard = static_cast<std::size_t>(rewriter.shards_written());
    for (std::int64_t first = 0, number = 0; first < epoch.batches(); ++number) {
      std::int64_t count = 0, bytes = 0;
      while (first + count < epoch.batches()) {
        bytes += parts.slots(epoch, first + count, padded) * settings.slot_bytes();
        if (count > 0 && bytes > settings.shard_bytes) break;
        ++count;
      }
      rewriter.write_shards(parts.rows(epoch, first, count, padded), {{fmt::format("shard-{:05}-{:05}", e, number), 0, count}});
      first += count;
    }
    const auto sum = [&](const std::vector<RemovedRange>& ranges) {
      RemovedLog log(tokens, &keys, settings.single_segments, staged.folder(), context);
      log.sum(ranges);
      return sum_of(ranges, log);
    };
    written.repeated = sum(parts.repeated(epoch));
    written.dropped = sum(parts.dropped(epoch));
  }
  shards.shards = rewriter.finish();
  const RemovedTotals totals = removed.finish();
  if (totals.file) manifest.files.push_back(*totals.file);
  shards.removed = totals.fingerprint;
  for (std::size_t cause = 0; cause < manifest.removed.size(); ++cause)
    manifest.removed[cause].loss_tokens = totals.loss_tokens[cause];
  context.progress.end_stage();

  // Inputs that changed meanwhile are the likelier cause of any sum that does not come out.
  tokens.check_unchanged();
  const Sum out = sum_of(removed_ranges, removed);
  for (std::size_t e = 0; e < epochs.size(); ++e) {
    Sum right = out, left{manifest.source_tokens, shards.source_loss_tokens, shards.source};
    const std::size_t end = e + 1 < epochs.size() ? epochs[e + 1].first_shard : shards.shards.size();
    for (std::size_t s = epochs[e].first_shard; s < end; ++s) {
      const ManifestShard& shard = shards.shards[s];
      right += {shard.tokens, shard.loss_tokens, *shard.fingerprint};
      shards.batched += *shard.fingerprint;
      shards.loss_tokens += shard.loss_tokens;
    }
    left += epochs[e].repeated;
    right += epochs[e].dropped;
    shards.repeated += epochs[e].repeated.fingerprint;
    shards.dropped += epochs[e].dropped.fingerprint;
    ensure(left.tokens == right.tokens, "source plus repeated tokens differ from batched, removed and dropped ones");
    check_equal_sums(left.fingerprint, right.fingerprint, staged.finished_bytes() > 0 ? kInputChangedBack : "");
    ensure(left.loss_tokens == right.loss_tokens,
           "source plus repeated loss tokens differ from batched, removed and dropped ones");
  }
}

}  // namespace shardpack
