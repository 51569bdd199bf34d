#include "io/arrow/decoded.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/checked.h"
#include "io/scan_pass.h"

namespace shardpack {

namespace {

/// \throws Error{bad_data} for the value at entry `index`, which is no token id.
[[noreturn]] void fail_id(const RecordColumns& columns, std::int64_t first, std::int64_t count, std::int64_t index,
                          const std::string& value) {
  const std::vector<ListRow> rows = columns.ids.read_rows(first, count);
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const ListRow& candidate) {
    return !candidate.null && index >= candidate.begin && index < candidate.begin + candidate.count;
  });
  ensure(row != rows.end(), "every value that is kept belongs to a row");
  columns.ids.name().fail(bad_id_message(columns.ids.name().column, index - row->begin, value), first + (row - rows.begin()));
}

}  // namespace

DecodedRun decode_records(const RecordColumns& columns, const RecordFields& fields, std::int64_t first, std::int64_t count,
                          const ReadOptions& options, SequenceId first_record) {
  DecodedRun decoded;
  decoded.run = read_records(columns, fields, first, count, options, false);
  std::int64_t tokens = 0;
  for (const RecordRun::Kept& kept : decoded.run.kept) tokens += kept.count;
  decoded.ids.resize(static_cast<std::size_t>(tokens));

  TokenTable stored;  // for its conversions alone
  stored.type = columns.ids.type();
  std::vector<std::byte> bytes;
  std::span<std::uint32_t> out(decoded.ids);
  constexpr std::int64_t kChunk = 64 << 10;  // ids: what is converted stays in the cache
  for (const RecordRun::Kept& kept : decoded.run.kept) {
    for (std::int64_t done = 0; done < kept.count; done += kChunk) {
      const std::int64_t ids = std::min(kChunk, kept.count - done);
      bytes.resize(static_cast<std::size_t>(ids * info(stored.type).bytes));
      columns.ids.values().read(columns.ids.place_of(kept.begin + done), bytes);
      if (const auto bad = stored.first_bad(kept.begin + done, bytes)) fail_id(columns, first, count, bad->token, bad->value);
      stored.decode(0, bytes, out.first(static_cast<std::size_t>(ids)));
      out = out.subspan(static_cast<std::size_t>(ids));
    }
  }
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
