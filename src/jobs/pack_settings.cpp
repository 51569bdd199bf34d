#include "jobs/pack_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "base/units.h"
#include "io/trainer_files.h"
#include "jobs/pack_options.h"
#include "jobs/planning.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

/// The shards that will be written: each of a partition, the last one's extra rows on their own.
std::int64_t count_shards(const std::vector<Partition>& partitions, const TailRows& tail, const RewriteSettings& settings) {
  std::int64_t shards = settings.shards_of(tail.extra);
  for (const Partition& partition : partitions) shards += settings.shards_of(partition.kept_rows());
  return shards;
}

/// Of a segment in the arrays that every layout has: seq_lengths, seq_source, ...
std::int64_t segment_bytes(const RewriteSettings& settings) {
  return 4 + 24 + (settings.write_added ? 1 : 0) + (settings.write_slots ? 4 : 0) + (settings.write_begins ? 8 : 0);
}
constexpr std::int64_t kRowOffsetBytes = 8;

/// Ids that a trainer's file holds in 32 bits are read as such, so that they go into it as they are.
IdType block_id_type(const Manifest& manifest, const OutputRules& output) {
  if (output.native()) return manifest.id_type;
  const auto ids = std::ranges::find(output.columns, OutputSource::ids, &OutputColumn::source);
  ensure(ids != output.columns.end(), "a trainer's rows have ids");
  return info(ids->type).bytes >= info(IdType::u32).bytes ? IdType::u32 : manifest.id_type;
}

}  // namespace

void check_ids_fit(const Manifest& manifest) {
  const Preset& preset = find_preset(manifest.preset);
  const std::int64_t largest = std::max({manifest.id_max, manifest.pad_id, manifest.eos_id.value_or(0)});
  if (is_native(preset) || largest <= std::numeric_limits<std::int32_t>::max()) return;
  throw Error(ErrorCode::bad_data,
              fmt::format("the token id {} takes more than the 31 bits that --for {} has for it; --for native has 32",
                          with_commas(largest), preset.name));
}

OutputRules output_rules_of(const Manifest& manifest, bool allow_inner_eos) {
  const Preset& preset = find_preset(manifest.preset);
  const auto container = std::ranges::find(containers(), manifest.container, &ContainerInfo::name);
  ensure(container != containers().end(), "the container is one of ours");
  OutputRules rules = output_rules(preset, container->container, manifest.columns, manifest.id_type);
  rules.row_tokens = manifest.row_tokens;
  rules.position_start = static_cast<std::uint32_t>(manifest.position_start);
  rules.eos_id = static_cast<std::uint32_t>(manifest.eos_id.value_or(0));
  rules.entry_width = manifest.entry_width;
  rules.segment_width = manifest.segment_width;
  rules.refuses_inner_eos = preset.ends_in_eos && !allow_inner_eos;
  check_ids_fit(manifest);
  return rules;
}

RewriteSettings rewrite_settings(const PackOptions& options, const Manifest& manifest, const std::vector<Partition>& partitions,
                                 const PlanningTotals& totals, const TailRows& tail) {
  RewriteSettings settings{
      .row_tokens = manifest.row_tokens,
      .segment_multiple = options.policy.segment_multiple,
      .unslotted = unslotted_tokens(options.policy.slot_rule),
      .max_segments = manifest.plan.max_segments,
      .max_segments_in_row = static_cast<std::int32_t>(totals.max_segments_in_row),
      .id_type = manifest.id_type,
      .fill = {.pad = static_cast<std::uint32_t>(*options.pad_id),
               .bos = static_cast<std::uint32_t>(options.read.bos_id.value_or(0)),
               .eos = static_cast<std::uint32_t>(options.read.eos_id.value_or(0))},
      .position_start = static_cast<std::uint32_t>(options.position_start),
      .derived = options.derived,
      .write_added = totals.added_eos + totals.added_bos > 0,
      .write_slots = totals.gaps_in_segments,
      .write_begins = manifest.has_begins(),
      .zstd_level = options.zstd_level,
      .shard_bytes = options.shard_bytes,
      .windowed = row_order(options) == RowOrder::windowed,
      .columns = manifest.columns,
      .single_segments = options.policy.overlong == Overlong::truncate && options.policy.truncate_side == TruncateSide::start &&
                         !cuts_at_row_ends(options.packer),
      .output = output_rules_of(manifest, options.allow_inner_eos),
  };
  settings.map_row_bytes = kRowOffsetBytes + ceil_div(checked_mul(totals.segments, segment_bytes(settings), "output bytes"),
                                                      std::max<std::int64_t>(totals.rows, 1));
  settings.id_type = block_id_type(manifest, settings.output);
  settings.shards = count_shards(partitions, tail, settings);
  return settings;
}

std::int64_t expected_bytes(const Manifest& manifest, const RewriteSettings& settings) {
  if (settings.zstd_level > 0 || settings.output.container == Container::parquet) return 0;
  std::int64_t bytes = segment_bytes(settings);
  for (const Column& column : settings.columns)
    bytes += column.kind == ColumnKind::token ? 0 : info(column.type).bytes;  // of lists their number is not known
  return checked_add(checked_mul(manifest.rows, settings.row_bytes() + kRowOffsetBytes, "output bytes"),
                     checked_mul(manifest.segments, bytes, "output bytes"), "output bytes");
}

}  // namespace shardpack
