// Blocks of whole lines are read in order, parsed by the workers and collected in order.
#include "io/formats/jsonl.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "base/units.h"
#include "core/column_values.h"
#include "core/fingerprint_keys.h"
#include "exec/ordered_map.h"
#include "io/byte_stream.h"
#include "io/formats/column_names.h"
#include "io/formats/group_column.h"
#include "io/formats/jsonl_block.h"
#include "io/spool.h"
#include "io/text_line.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kBlockMemory = std::int64_t{4} * kLineBlockBytes;  // its text, ids and the parser's tables
constexpr std::int64_t kLineMemoryFactor = 8;                             // text, index and strings of the parser, ids

/// Puts the blocks of a file together, in order.
class ShardCollector {
 public:
  ShardCollector(const InputFile& file, const OpenContext& context, ChosenColumns columns)
      : file_(file), first_record_(context.first_record), ids_(context.temp_dir, context.spool) {
    shard_.files = {file.path};
    shard_.record_begin = {0};
    for (Column& column : columns.carried) {
      ColumnTable& table = shard_.columns.emplace_back();
      if (is_listed(column)) table.begin = {0};
      // The facts of values that belong to tokens need two columns at once: the column pass reads these again.
      if (!is_placed(column)) table.facts.emplace();
      table.column = std::move(column);
    }
    for (const ColumnTable& table : shard_.columns) values_.emplace_back(context.temp_dir, context.spool || !table.facts);
  }

  void add(const JsonlBlock& block) {
    if (block.fault) fail(*block.fault, records() == 0 && block.lengths.empty());
    lines_ += block.lines;
    ids_.append(shard_.ids, block.ids);
    add_fingerprint(block);
    for (std::size_t c = 0; c < shard_.columns.size(); ++c) add_column(block.columns[c], block.lengths, c);
    for (const std::int64_t length : block.lengths) shard_.record_begin.push_back(shard_.record_begin.back() + length);
    add_groups(block.groups, numbering_, shard_.groups);
    shard_.null_records += block.null_records;
    shard_.padding += block.padding;
    other_columns_.insert(block.other_columns.begin(), block.other_columns.end());
    if (block.ids.empty()) return;
    facts_.id_min = facts_.id_max < 0 ? std::int64_t{block.id_min} : std::min(facts_.id_min, std::int64_t{block.id_min});
    facts_.id_max = std::max(facts_.id_max, std::int64_t{block.id_max});
  }

  OpenedShard finish(std::string hash) {
    facts_.hash = std::move(hash);
    shard_.not_carried.assign(other_columns_.begin(), other_columns_.end());
    shard_.groups.keys = numbering_.keys();
    shard_.facts = std::move(facts_);
    return std::move(shard_);
  }

 private:
  [[noreturn]] void fail(const LineFault& fault, bool first_record) const {
    // A column that the user named and no record has is a slip of the command line, not of the data.
    const bool misnamed = fault.missing_column && first_record;
    std::string message = fault.message;
    if (!first_record) message += fault.else_help;
    throw Error(misnamed ? ErrorCode::usage : fault.code, message, file_.name,
                fmt::format("line {}", with_commas(lines_ + fault.line + 1)));
  }

  /// `token_lengths`: of the block's records.
  void add_column(const JsonlColumn& block, const std::vector<std::int64_t>& token_lengths, std::size_t number) {
    ColumnTable& table = shard_.columns[number];
    values_[number].append(table.values, block.type, block.bytes);
    for (const std::int64_t length : block.lengths) table.begin.push_back(table.begin.back() + length);

    if (!table.facts) return;
    *table.facts += block.facts;
    if (is_loss_column(table.column)) {
      table.facts->loss_tokens += count_loss_tokens(table.column, block.type, block.bytes.data(), block.count);
    }
    const FingerprintKeys keys = keys_.of_column(table.column.name);
    const int bytes = info(block.type).bytes;
    const std::byte* values = block.bytes.data();
    for (std::size_t i = 0; i < token_lengths.size(); ++i) {
      const ColumnKind kind = table.column.kind;
      const std::int64_t count = kind == ColumnKind::token      ? token_lengths[i]
                                 : kind == ColumnKind::sequence ? 1
                                                                : block.lengths[i];
      const SequenceId record = first_record_ + records() + static_cast<SequenceId>(i);
      if (token_lengths[i] > 0) {  // a record without tokens has no place in a row
        table.facts->fingerprint +=
            kind == ColumnKind::text
                ? keys.of_text(record, {reinterpret_cast<const char*>(values), static_cast<std::size_t>(count)})
                : keys.of(record, 0, block.type, values, count);
      }
      values += count * bytes;
    }
  }

  void add_fingerprint(const JsonlBlock& block) {
    auto longest = block.lengths.empty() ? 0 : *std::max_element(block.lengths.begin(), block.lengths.end());
    for (const JsonlColumn& column : block.columns)
      for (const std::int64_t length : column.lengths) longest = std::max(longest, length);
    if (longest > keys_for_) {  // in steps, because a table costs more than a short file
      keys_for_ = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(longest)));
      keys_ = FingerprintKeys(keys_for_);
    }
    std::span<const std::uint32_t> rest(block.ids);
    SequenceId record = first_record_ + records();
    for (const std::int64_t length : block.lengths) {
      facts_.fingerprint += keys_.of(record++, 0, rest.first(static_cast<std::size_t>(length)));
      rest = rest.subspan(static_cast<std::size_t>(length));
    }
  }

  std::int64_t records() const { return static_cast<std::int64_t>(shard_.record_begin.size()) - 1; }

  const InputFile& file_;
  const SequenceId first_record_;
  std::int64_t lines_ = 0;
  std::int64_t keys_for_ = 0;  // tokens
  FingerprintKeys keys_{0};
  GroupNumbering numbering_;
  Spool ids_;
  std::vector<Spool> values_;  // by column
  std::set<std::string, std::less<>> other_columns_;
  TokenFacts facts_;
  OpenedShard shard_;
};

}  // namespace

bool matches_jsonl(const FormatProbe& probe) {
  if (probe.file.path == "-") return true;
  // What the probe holds of a compressed file may decode to nothing. A damaged one is told by its name, and opening says why.
  const bool compressed = compression_of(probe.head) != Compression::none;
  const std::string decoded = compressed ? peek_plain(probe.file.path, 4096) : std::string();
  const std::string_view text = without_byte_order_mark(compressed ? decoded : probe.head);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') return true;

  std::string_view name = probe.file.path;
  for (const std::string_view suffix : {".gz", ".zst", ".zstd"}) {
    if (name.ends_with(suffix)) {
      name.remove_suffix(suffix.size());
      break;
    }
  }
  return name.ends_with(".jsonl") || name.ends_with(".json") || name.ends_with(".ndjson");
}

OpenedShard open_jsonl(const InputFile& file, const ReadOptions& options, const OpenContext& context) {
  const bool budgeted = context.memory_bytes > 0;
  ByteStream stream(file.path, file.name, context.memory_bytes / 2,
                    DecodeAhead::within(context.pool, context.stop, context.memory_bytes));
  const std::int64_t max_line_bytes =
      budgeted ? std::clamp(context.memory_bytes / kLineMemoryFactor, kBlockMemory, kMaxLineBytes) : kMaxLineBytes;
  const std::int64_t max_records = options.limit > 0 ? std::max<std::int64_t>(options.limit - context.first_record, 0) : -1;
  LineBlockReader reader(stream, max_line_bytes, max_records);
  std::optional<LineBlock> first = reader.next();
  std::int64_t settling_records = 0;
  const ColumnsSeen seen = first ? observe_jsonl(*first, options, settling_records) : ColumnsSeen();
  ChosenColumns chosen = choose_columns(seen, settling_records, options, file.name);
  const std::vector<Column> carried = chosen.carried;
  ShardCollector collector(file, context, std::move(chosen));

  int in_flight = default_in_flight(context.pool);
  if (budgeted) in_flight = static_cast<int>(std::clamp<std::int64_t>(context.memory_bytes / kBlockMemory, 1, in_flight));
  std::int64_t reported_bytes = 0;
  const auto read_block = [&] {
    std::optional<LineBlock> block = first ? std::exchange(first, std::nullopt) : reader.next();
    context.progress.advance(stream.stored_bytes() - std::exchange(reported_bytes, stream.stored_bytes()));
    return block;
  };
  ordered_map(
      context.pool, in_flight, context.stop, read_block, [&](LineBlock&& block) { return parse_jsonl(block, options, carried); },
      [&](JsonlBlock&& block) { collector.add(block); });
  stream.skip_rest();  // a limit may have left some
  return collector.finish(stream.stored_hash());
}

}  // namespace shardpack
