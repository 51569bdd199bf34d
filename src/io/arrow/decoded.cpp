#include "io/arrow/decoded.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/checked.h"
#include "io/scan_pass.h"

namespace shardpack {

namespace {

/// \throws Error{bad_data} for the value at entry `index`, which is no token id.
[[noreturn]] void fail_id(const RowStretch& stretch, std::int64_t index, const std::string& value) {
  const ListColumn& ids = stretch.columns->ids;
  const std::vector<ListRow> rows = ids.read_rows(stretch.first, stretch.count);
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const ListRow& candidate) {
    return !candidate.null && index >= candidate.begin && index < candidate.begin + candidate.count;
  });
  ensure(row != rows.end(), "every value that is kept belongs to a row");
  ids.name().fail(bad_id_message(ids.name().column, index - row->begin, value), stretch.first + (row - rows.begin()));
}

/// Append the ids that lie at `kept` of the stretch's column.
void decode_ids(const RowStretch& stretch, const std::vector<RecordRun::Kept>& all_kept, std::vector<std::uint32_t>& ids) {
  const ListColumn& column = stretch.columns->ids;
  const std::size_t before = ids.size();
  std::int64_t tokens = 0;
  for (const RecordRun::Kept& kept : all_kept) tokens += kept.count;
  ids.resize(before + static_cast<std::size_t>(tokens));

  TokenTable stored;  // for its conversions alone
  stored.type = column.type();
  std::vector<std::byte> bytes;
  std::span<std::uint32_t> out = std::span(ids).subspan(before);
  constexpr std::int64_t kChunk = 64 << 10;  // ids: what is converted stays in the cache
  for (const RecordRun::Kept& kept : all_kept) {
    for (std::int64_t done = 0; done < kept.count; done += kChunk) {
      const std::int64_t count = std::min(kChunk, kept.count - done);
      bytes.resize(static_cast<std::size_t>(count * info(stored.type).bytes));
      column.values().read(column.place_of(kept.begin + done), bytes);
      if (const auto bad = stored.first_bad(kept.begin + done, bytes)) fail_id(stretch, bad->token, bad->value);
      stored.decode(0, bytes, out.first(static_cast<std::size_t>(count)));
      out = out.subspan(static_cast<std::size_t>(count));
    }
  }
}

template <class T>
void append(std::vector<T>& all, const std::vector<T>& part) {
  all.insert(all.end(), part.begin(), part.end());
}

/// Records that follow those of `all`, of other rows: where they lay is forgotten.
void append(RecordRun& all, const RecordRun& part, GroupNumbering& groups) {
  append(all.lengths, part.lengths);
  add_groups(part.groups, groups, all.groups);
  all.null_records += part.null_records;
  all.padding += part.padding;
  all.columns.resize(part.columns.size());
  for (std::size_t c = 0; c < part.columns.size(); ++c) {
    all.columns[c].type = part.columns[c].type;
    append(all.columns[c].stored, part.columns[c].stored);
    append(all.columns[c].lengths, part.columns[c].lengths);
  }
}

}  // namespace

DecodedRun decode_records(std::span<const RowStretch> stretches, const RecordFields& fields, const ReadOptions& options,
                          SequenceId first_record) {
  DecodedRun decoded;
  GroupNumbering groups;
  for (const RowStretch& stretch : stretches) {
    RecordRun run = read_records(*stretch.columns, fields, stretch.first, stretch.count, options, false);
    decode_ids(stretch, run.kept, decoded.ids);
    if (stretches.size() == 1) {
      decoded.run = std::move(run);
    } else {
      append(decoded.run, run, groups);
    }
  }
  if (stretches.size() > 1) decoded.run.groups.keys = groups.keys();
  decoded.facts = facts_of(first_record, decoded.run.lengths, decoded.ids);
  return decoded;
}

SpooledIds::SpooledIds(const OpenContext& context) : spool_(context.temp_dir, context.spool) {}

void SpooledIds::add(std::span<const std::uint32_t> ids, const TokenFacts& facts) {
  spool_.append(table_, ids);
  merge(facts_, facts);
}

void SpooledIds::finish(OpenedShard& shard, std::string hash) {
  shard.ids = std::move(table_);
  facts_.hash = std::move(hash);
  shard.facts = std::move(facts_);
}

DecodedCollector::DecodedCollector(const InputFile& file, const ReadOptions& options, const RecordFields& fields,
                                   const OpenContext& context)
    : records_(file, options, fields, context), ids_(context) {}

void DecodedCollector::add(const DecodedRun& decoded) {
  ids_.add(decoded.ids, decoded.facts);
  records_.add(decoded.run);
}

OpenedShard DecodedCollector::finish(std::string hash) {
  OpenedShard shard = records_.finish();
  ids_.finish(shard, std::move(hash));
  return shard;
}

}  // namespace shardpack
