#include "jobs/pack_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/units.h"
#include "core/trainer_rows.h"
#include "io/column_choice.h"
#include "io/json.h"
#include "io/trainer_files.h"
#include "shardpack/error.h"
#include "shardpack/version.h"

namespace shardpack {

namespace {

constexpr std::int64_t kMaxU16 = 0xFFFF, kMaxId = 0xFFFFFFFF;

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::usage, message); }

std::int64_t largest_added_id(const PackOptions& options) {
  std::int64_t largest = options.pad_id.value_or(0);
  if (options.policy.append_eos) largest = std::max(largest, options.read.eos_id.value_or(0));
  if (options.policy.prepend_bos) largest = std::max(largest, options.read.bos_id.value_or(0));
  return largest;
}

/// What has no meaning where no token is read again and none written.
void check_without_tokens(const PackOptions& options) {
  const auto refuse_with = [&](std::string_view option, std::string_view why) {
    refuse(fmt::format("--as {}: {} {}", info(*options.container).name, option, why));
  };
  constexpr std::string_view kInSources = "has no meaning: values stay in the sources";
  const ColumnChoice standard, none{.which = ColumnChoice::Which::none, .names = {}};
  if (options.read.columns != standard && options.read.columns != none) refuse_with("--columns", kInSources);
  if (!options.read.positions_columns.empty()) refuse_with("--positions-columns", kInSources);
  if (options.policy.drop_unlabeled) refuse_with("--drop-unlabeled", "asks for labels, which are not read; leave --as out");
  if (options.zstd_level > 0) refuse_with("--compress", "has no meaning: what is written is small and read at random");
  if (!options.derived) refuse_with("--no-derived", "has no meaning: segment and position ids are not written anyway");
  if (options.id_type) refuse_with("--id-dtype", "has no meaning: ids stay in the sources, in the dtype that they have there");
}

/// What the preset's files cannot say, or have no choice in.
void check_preset(const PackOptions& options) {
  const Preset& preset = find_preset(options.preset);
  const auto refuse_with = [&](std::string_view option, std::string_view why) {
    refuse(fmt::format("--for {}: {} {}", preset.name, option, why));
  };
  if (preset.needs_eos_id && !options.read.eos_id) refuse_with("--eos-id", "is needed");
  if (preset.ends_in_eos && options.pad_id != options.read.eos_id) refuse_with("--pad-id", "is the EOS id; leave it out");
  if (!preset.ends_in_eos && options.allow_inner_eos)
    refuse_with("--allow-inner-eos", "has no meaning: boundaries are no tokens");
  if (options.policy.segment_multiple > 1 && (preset.ragged || preset.ends_in_eos))
    refuse_with("--segment-multiple, --cp, --tp and --sp",
                "leave gaps between segments, and its files cannot say where they are");
  if (options.tail == Tail::fill && preset.ragged) refuse_with("--tail fill", "has no meaning: its rows hold no padding");
  if (options.max_predictions && preset.positions_column.empty())
    refuse_with("--max-predictions", "has no meaning: there is no fixed number of masked tokens a row");
  if (options.max_predictions.value_or(0) < 0) refuse("--max-predictions counts masked tokens, from 0");
  if (preset.slot_rule == SlotRule::targets && options.packer == "concat")
    refuse_with("--packer concat", "has no meaning: a row holds more tokens than it has slots");
  if (!info(*options.container).holds_tokens) check_without_tokens(options);
  if (is_native(preset)) return;
  if (!options.derived) refuse_with("--no-derived", "has no meaning: its columns are what the trainer reads");
  if (options.zstd_level > 0) refuse_with("--compress", "is for NumPy arrays (Parquet is always compressed)");
  if (options.position_start != 0 && !has_source(preset, OutputSource::position_ids))
    refuse_with("--position-start", "has no meaning: there are no positions in its files");
  check_container(*options.container);
}

}  // namespace

PackOptions with_preset(PackOptions options) {
  const Preset& preset = find_preset(options.preset);
  options.container = chosen_container(preset, options.container);
  if (preset.ends_in_eos) options.policy.append_eos = true;
  options.policy.slot_rule = preset.slot_rule;
  if (!preset.positions_column.empty() && options.read.positions_columns.empty())
    options.read.positions_columns = {std::string(preset.positions_column)};
  if (!options.pad_id) options.pad_id = preset.ends_in_eos ? options.read.eos_id.value_or(0) : 0;
  return options;
}

void check_pack_options(const PackOptions& options) {
  static_cast<void>(find_packer(options.packer));
  check_preset(options);
  if (options.policy.row_tokens < 1) refuse("-L/--seq-length is required: the slots in a row, the trainer's sequence length");
  if (options.packing.max_segments < 0) refuse("-K/--max-segments counts segments, from 0 (no limit)");
  if (options.policy.append_eos && !options.read.eos_id) refuse("--append-eos needs --eos-id");
  if (options.policy.prepend_bos && !options.read.bos_id) refuse("--prepend-bos needs --bos-id");
  const std::pair<const char*, std::int64_t> ids[] = {{"--pad-id", options.pad_id.value_or(0)},
                                                      {"--eos-id", options.read.eos_id.value_or(0)},
                                                      {"--bos-id", options.read.bos_id.value_or(0)}};
  for (const std::pair<const char*, std::int64_t>& id : ids) {
    if (id.second < 0 || id.second > kMaxId)
      refuse(fmt::format("{} {}: token ids are whole numbers from 0 to 4,294,967,295", id.first, id.second));
  }
  if (options.position_start < 0 || options.position_start + options.policy.row_tokens - 1 > kMaxId) {
    refuse(fmt::format("--position-start {}: positions must lie between 0 and 4,294,967,295", options.position_start));
  }
  if (options.id_type && *options.id_type != IdType::u16 && *options.id_type != IdType::u32)
    refuse("--id-dtype is auto, u16 or u32");
  if (options.id_type == IdType::u16 && largest_added_id(options) > kMaxU16) {
    refuse(fmt::format("--id-dtype u16 cannot hold the pad, EOS or BOS id {}; use auto or u32",
                       with_commas(largest_added_id(options))));
  }
  if (options.rows_multiple < 1) refuse("--rows-multiple must be at least 1");
  if (options.shape.world < 1 || options.shape.accumulation < 1 || options.shape.micro_batch < 1) {
    refuse("--world, --accumulation and --micro-batch are at least 1");
  }
  if (options.balance_attention && find_packer(options.packer).input_order) {
    refuse(fmt::format("{} keeps the order of the input, which --balance attention would undo; leave one of them out",
                       options.packer));
  }
  if (options.balance_attention && !options.plan.empty()) {
    refuse(
        "--plan says what each row holds, and --balance attention changes it; leave one of them out (the plans of a balanced "
        "dataset hold its balanced rows)");
  }
  if (options.partition_tokens < 1) refuse("--partition-tokens must be at least 1");
  if (options.part && options.scan.empty())
    refuse("--part needs --scan FILE: all parts go by one saved scan ('shardpack scan --save FILE' makes it)");
  if (options.part && (options.part->of < 1 || options.part->index < 1 || options.part->index > options.part->of))
    refuse(fmt::format("--part {}/{}: parts are numbered from 1 to their number", options.part->index, options.part->of));
  if (!options.scan.empty() && !find_preset(options.preset).positions_column.empty()) {
    refuse(fmt::format("--for {} asks how many tokens of each row are masked, which a saved scan does not know; leave --scan out",
                       options.preset));
  }
  if (options.shard_bytes < 1) refuse("--shard-bytes must be at least 1");
  if (options.zstd_level < 0 || options.zstd_level > 19) refuse("--compress zstd:LEVEL: levels go from 1 to 19");
}

RowOrder row_order(const PackOptions& options) {
  if (options.order) return *options.order;
  if (find_packer(options.packer).input_order) return RowOrder::input;
  // Who shuffles rows anyway gets them in an order in which the inputs are read nearly as they lie.
  return find_preset(options.preset).shuffled_by.empty() ? RowOrder::shuffled : RowOrder::windowed;
}

IdType choose_id_type(std::optional<IdType> asked, std::int64_t added, std::int64_t source_id_max) {
  if (!asked) return std::max(source_id_max, added) <= kMaxU16 ? IdType::u16 : IdType::u32;
  if (*asked == IdType::u16 && source_id_max > kMaxU16) {
    throw Error(ErrorCode::bad_data, fmt::format("the largest token id is {}, which --id-dtype u16 cannot hold; use auto or u32",
                                                 with_commas(source_id_max)));
  }
  return *asked;
}

IdType choose_id_type(const PackOptions& options, std::int64_t source_id_max) {
  return choose_id_type(options.id_type, largest_added_id(options), source_id_max);
}

namespace {

// JSON values.
std::string text(std::string_view value) { return JsonWriter().value(value).take(); }
std::string number(std::int64_t value) { return std::to_string(value); }
std::string flag(bool value) { return value ? "true" : "false"; }

std::string optional_type(const std::optional<IdType>& type, std::string_view none) {
  return type ? text(info(*type).name) : std::string(none);
}

}  // namespace

std::vector<RecordedOption> recorded_policy(const LengthPolicy& policy) {
  constexpr std::array<std::string_view, 4> kOverlong{"error", "truncate", "split", "drop"};
  return {{"overlong", text(kOverlong[static_cast<std::size_t>(policy.overlong)])},
          {"truncate_side", text(policy.truncate_side == TruncateSide::end ? "end" : "start")},
          {"split_min_tokens", number(policy.split_min_tokens)},
          {"min_tokens", number(policy.min_tokens)},
          {"drop_unlabeled", flag(policy.drop_unlabeled)},
          {"append_eos", flag(policy.append_eos)},
          {"prepend_bos", flag(policy.prepend_bos)},
          {"segment_multiple", number(policy.segment_multiple)},
          {"keep_together", number(policy.keep_together)},
          {"slot_rule", text(kSlotRules[static_cast<std::size_t>(policy.slot_rule)])}};
}

std::vector<RecordedOption> recorded_read_options(const ReadOptions& read) {
  const auto optional_number = [](const std::optional<std::int64_t>& value) { return value ? number(*value) : "null"; };
  return {{"format", read.format.empty() ? "null" : text(read.format)},
          {"split", read.split.empty() ? "null" : text(read.split)},
          {"ids_column", text(read.ids_column)},
          {"columns", text(to_text(read.columns))},
          {"positions_columns",
           read.positions_columns.empty() ? "null" : text(fmt::format("{}", fmt::join(read.positions_columns, ",")))},
          {"unit", text(read.unit == Unit::document ? "document" : "sequence")},
          {"null_row", text(read.null_row == NullRow::error ? "error" : "drop")},
          {"dtype", optional_type(read.dtype, "null")},
          {"eos_id", optional_number(read.eos_id)},
          {"bos_id", optional_number(read.bos_id)},
          {"limit", number(read.limit)},
          {"group_column", read.group_column.empty() ? "null" : text(read.group_column)}};
}

std::vector<RecordedOption> recorded_options(const PackOptions& options) {
  std::vector<RecordedOption> recorded = recorded_read_options(options.read);
  const auto add = [&](std::string name, std::string json) { recorded.emplace_back(std::move(name), std::move(json)); };
  add("packer", text(options.packer));
  add("max_segments", number(options.packing.max_segments));
  constexpr std::array<std::string_view, 3> kEfforts{"fast", "normal", "thorough"};
  add("plan_effort", text(kEfforts[static_cast<std::size_t>(options.packing.effort)]));
  add("nnls_weights", text(options.packing.nnls_weights == NnlsWeights::paper ? "paper" : "tokens"));
  add("seed", std::to_string(options.seed));
  constexpr std::array<std::string_view, 5> kOrders{"shuffled", "windowed", "by-strategy", "input", "balanced"};
  add("order", text(kOrders[static_cast<std::size_t>(row_order(options))]));
  add("balance", options.balance_attention ? "\"attention\"" : "\"none\"");
  add("world", number(options.shape.world));
  add("accumulation", number(options.shape.accumulation));
  add("micro_batch", number(options.shape.micro_batch));

  for (RecordedOption& option : recorded_policy(options.policy)) recorded.push_back(std::move(option));

  add("for", text(options.preset));
  add("as", options.container ? text(info(*options.container).name) : "null");
  add("allow_inner_eos", flag(options.allow_inner_eos));
  add("max_predictions", options.max_predictions ? number(*options.max_predictions) : "null");
  add("pad_id", number(options.pad_id.value_or(0)));
  add("position_start", number(options.position_start));
  add("id_dtype", optional_type(options.id_type, "\"auto\""));
  add("derived", flag(options.derived));
  add("compress", options.zstd_level > 0 ? text(fmt::format("zstd:{}", options.zstd_level)) : "null");
  add("rows_multiple", number(options.rows_multiple));
  constexpr std::array<std::string_view, 3> kTails{"repeat", "fill", "drop"};
  add("tail", text(kTails[static_cast<std::size_t>(options.tail)]));
  add("partition_tokens", number(options.partition_tokens));
  add("partition_order", text(kPartitionOrders[static_cast<std::size_t>(options.partition_order)]));
  add("shard_bytes", number(options.shard_bytes));
  return recorded;
}

RunIdentity identity_before_reading(const PackOptions& options) {
  RunIdentity identity{{"the version", kVersion}};
  for (const RecordedOption& option : recorded_options(options)) identity.emplace_back("option " + option.first, option.second);
  return identity;
}

}  // namespace shardpack
