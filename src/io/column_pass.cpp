#include "io/column_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "base/units.h"
#include "core/column_values.h"
#include "core/fingerprint_keys.h"
#include "exec/ordered_map.h"
#include "io/placed_lists.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kChunkValues = std::int64_t{1} << 19;

/// Records of one file that a worker takes at once.
struct RecordRange {
  std::size_t first = 0, last = 0;
};

/// Calls visit(record, position, type, values, count) for all values of the records in `range`.
template <class Visit>
void for_each_record(const OpenedFile& file, const ColumnTable& table, RecordRange range, Visit visit) {
  const std::vector<std::int64_t>& tokens = file.record_begin();
  const bool per_record = table.column.kind == ColumnKind::sequence;
  const std::vector<std::int64_t>& begin = table.column.kind == ColumnKind::token ? tokens : table.begin;
  const auto begin_of = [&](std::size_t record) { return per_record ? static_cast<std::int64_t>(record) : begin[record]; };

  std::size_t record = range.first;
  std::int64_t at = begin_of(range.first);
  table.values.for_each_run(at, begin_of(range.last) - at, [&](ValueType type, const std::byte* values, std::int64_t count) {
    while (count > 0) {
      while (begin_of(record + 1) == at) ++record;
      const std::int64_t part = std::min(count, begin_of(record + 1) - at);
      // A record without tokens has no place in a row, nor has what belongs to it.
      if (tokens[record] != tokens[record + 1]) visit(record, at - begin_of(record), type, values, part);
      values += part * info(type).bytes;
      count -= part;
      at += part;
    }
  });
}

void check_below_2_63(const ColumnTable& table, std::size_t record, const std::byte* values, std::int64_t count) {
  visit_values(ValueType::u64, values, count, [&](auto typed) {
    for (const auto value : typed) {
      if (static_cast<std::uint64_t>(value) >> 63 == 0) continue;
      throw Error(ErrorCode::bad_data, fmt::format("the column '{}' holds {}; values are below 2^63", table.column.name, value),
                  table.values.file->shown(), fmt::format("record {}", with_commas(static_cast<std::int64_t>(record))));
    }
  });
}

void check_labels(const ColumnTable& table, const ColumnFacts& facts) {
  if (table.column.alignment != Alignment::minus100 || !facts.fractional) return;
  throw Error(ErrorCode::bad_data,
              fmt::format("the column '{0}' holds floating-point numbers, but labels are token ids or -100; store integers, or "
                          "--columns aligned,{0}:plain carries it as any other column",
                          table.column.name),
              table.values.file->shown());
}

// ---- values that belong to tokens -------------------------------------------------------------------------------------------

const ColumnTable& table_of_places(const OpenedFile& file, const Column& placed) {
  const auto found = std::find_if(file.shard.columns.begin(), file.shard.columns.end(),
                                  [&](const ColumnTable& table) { return table.column.name == placed.places; });
  ensure(found != file.shard.columns.end(), "placed values have a column that says where");
  return *found;
}

ColumnFacts scan_placed(const OpenedFile& file, const ColumnTable& table, RecordRange range, const FingerprintKeys& keys) {
  const ColumnTable& where = table_of_places(file, table.column);
  check_equal_lists(table, where, range.first, range.last, file.input.name);
  const std::vector<std::int64_t> places = read_places(where, file.record_begin(), range.first, range.last, file.input.name);
  ColumnFacts facts;
  std::size_t record = range.first;
  std::int64_t at = table.begin[range.first];
  const auto end = [&] { return table.begin[record + 1]; };
  table.values.for_each_run(at, table.begin[range.last] - at, [&](ValueType type, const std::byte* values, std::int64_t count) {
    if (type == ValueType::u64) check_below_2_63(table, record, values, count);
    facts.add(type, values, count);
    while (count > 0) {
      while (end() == at) ++record;
      const std::int64_t part = std::min(count, end() - at);
      const auto own =
          std::span(places).subspan(static_cast<std::size_t>(at - table.begin[range.first]), static_cast<std::size_t>(part));
      facts.fingerprint += keys.of_placed(file.first_sequence + static_cast<SequenceId>(record), own, type, values);
      facts.loss_tokens += count_loss_tokens(table.column, type, values, part);
      values += part * info(type).bytes;
      count -= part;
      at += part;
    }
  });
  return facts;
}

ColumnFacts scan_records(const OpenedFile& file, const ColumnTable& table, RecordRange range, const FingerprintKeys& keys) {
  if (is_placed(table.column)) return scan_placed(file, table, range, keys);
  ColumnFacts facts;
  std::string text;  // of the record, as far as it has been read
  std::optional<std::size_t> text_record;
  const auto finish_text = [&] {
    if (!text_record) return;
    tally(table.column, keys, file.first_sequence + static_cast<SequenceId>(*text_record), 0, ValueType::u8,
          std::as_bytes(std::span(text)).data(), static_cast<std::int64_t>(text.size()), facts);
    text.clear();
    text_record.reset();
  };
  if (table.column.kind == ColumnKind::text) {
    // An empty text has no value to visit, and counts all the same.
    for (std::size_t record = range.first; record < range.last; ++record) {
      if (file.record_begin()[record] == file.record_begin()[record + 1]) continue;
      if (table.begin[record] != table.begin[record + 1]) continue;
      tally(table.column, keys, file.first_sequence + static_cast<SequenceId>(record), 0, ValueType::u8, nullptr, 0, facts);
    }
  }
  for_each_record(file, table, range,
                  [&](std::size_t record, std::int64_t position, ValueType type, const std::byte* values, std::int64_t count) {
                    if (type == ValueType::u64) check_below_2_63(table, record, values, count);
                    if (table.column.kind != ColumnKind::text) {
                      return tally(table.column, keys, file.first_sequence + static_cast<SequenceId>(record), position, type,
                                   values, count, facts);
                    }
                    if (text_record != record) finish_text();
                    text_record = record;
                    text.append(reinterpret_cast<const char*>(values), static_cast<std::size_t>(count));
                  });
  finish_text();
  check_labels(table, facts);
  return facts;
}

/// Runs of whole records of about kChunkValues values.
std::optional<RecordRange> next_range(const OpenedFile& file, const ColumnTable& table, std::size_t& next) {
  const auto records = static_cast<std::size_t>(file.records());
  if (next == records) return std::nullopt;
  RecordRange range{next, next};
  if (table.column.kind == ColumnKind::sequence) {
    range.last = std::min(records, next + static_cast<std::size_t>(kChunkValues));
  } else {
    const std::vector<std::int64_t>& begin = table.column.kind == ColumnKind::token ? file.record_begin() : table.begin;
    const auto end =
        std::upper_bound(begin.begin() + static_cast<std::ptrdiff_t>(next) + 1, begin.end(), begin[next] + kChunkValues);
    range.last = std::max(next + 1, static_cast<std::size_t>(end - begin.begin()) - 1);
  }
  next = range.last;
  return range;
}

std::int64_t longest_of(const std::vector<OpenedFile>& files) {
  std::int64_t longest = 0;
  for (const OpenedFile& file : files) {
    for (const ColumnTable& table : file.shard.columns) {
      if (table.facts || table.column.kind == ColumnKind::sequence || table.column.kind == ColumnKind::text) continue;
      const bool by_token = table.column.kind == ColumnKind::token || is_placed(table.column);
      longest = std::max(longest, longest_record(by_token ? file.record_begin() : table.begin));
    }
  }
  return longest;
}

void check_same_columns(const OpenedFile& first, const OpenedFile& other) {
  const auto find = [](const OpenedFile& file, const std::string& name) {
    return std::find_if(file.shard.columns.begin(), file.shard.columns.end(),
                        [&](const ColumnTable& table) { return table.column.name == name; });
  };
  const auto missing = [&](const std::string& name, const std::string& from, const std::string& in) {
    throw Error(
        ErrorCode::bad_data,
        fmt::format("there is no column '{}' that can be carried, and {} has one; give both the same columns, or name those "
                    "to carry by --columns",
                    name, in),
        from);
  };
  for (const ColumnTable& table : other.shard.columns) {
    if (find(first, table.column.name) == first.shard.columns.end())
      missing(table.column.name, first.input.name, other.input.name);
  }
  for (const ColumnTable& table : first.shard.columns) {
    const auto found = find(other, table.column.name);
    if (found == other.shard.columns.end()) missing(table.column.name, other.input.name, first.input.name);
    if (found->column.kind != table.column.kind) {
      const auto kind = [](const Column& column) { return kColumnKinds[static_cast<std::size_t>(column.kind)]; };
      throw Error(ErrorCode::bad_data,
                  fmt::format("the column '{}' looks like one of kind {}, and in {} like one of kind {}; say which it is by "
                              "--columns {}:{}",
                              table.column.name, kind(found->column), first.input.name, kind(table.column), table.column.name,
                              kind(table.column)),
                  other.input.name);
    }
    if (found->column.places != table.column.places) {
      const auto goes_with = [](const Column& column) {
        return is_placed(column) ? fmt::format("as many values as {}", column.places) : std::string("lists of its own length");
      };
      throw Error(ErrorCode::bad_data,
                  fmt::format("the column '{0}' has {1} in the first records, and in {2} {3}; --columns aligned,{0}:list makes "
                              "it one of its own length everywhere",
                              table.column.name, goes_with(found->column), first.input.name, goes_with(table.column)),
                  other.input.name);
    }
  }
}

}  // namespace

void tally(const Column& column, const FingerprintKeys& keys, SequenceId record, std::int64_t position, ValueType type,
           const std::byte* values, std::int64_t count, ColumnFacts& facts) {
  if (column.kind == ColumnKind::text) {
    facts.least = std::min<std::int64_t>(facts.least, 0);  // bytes
    facts.greatest = std::max<std::int64_t>(facts.greatest, 255);
    facts.fingerprint +=
        keys.of_text(record, std::string_view(reinterpret_cast<const char*>(values), static_cast<std::size_t>(count)));
    return;
  }
  facts.add(type, values, count);
  facts.fingerprint += keys.of(record, position, type, values, count);
  if (is_loss_column(column)) facts.loss_tokens += count_loss_tokens(column, type, values, count);
}

std::vector<ColumnFacts> run_column_pass(const std::vector<OpenedFile>& files, const RunContext& context) {
  if (files.empty()) return {};
  for (std::size_t i = 1; i < files.size(); ++i) check_same_columns(files.front(), files[i]);

  const FingerprintKeys any_column(longest_of(files));
  std::vector<ColumnFacts> facts(files.front().shard.columns.size());
  for (std::size_t c = 0; c < facts.size(); ++c) {
    const FingerprintKeys keys = any_column.of_column(files.front().shard.columns[c].column.name);
    for (const OpenedFile& file : files) {
      const ColumnTable& table = file.shard.columns[c];
      if (table.facts) {
        facts[c] += *table.facts;
        continue;
      }
      std::size_t next = 0;
      ordered_map(
          context.pool, default_in_flight(context.pool), context.stop, [&] { return next_range(file, table, next); },
          [&](RecordRange range) {
            try {
              return scan_records(file, table, range, keys);
            } catch (const Error& error) {
              if (!error.path().empty()) throw;
              throw Error(error.code(), fmt::format("{}: {}", table.column.name, error.message()), file.input.name);
            }
          },
          [&](ColumnFacts&& part) { facts[c] += part; });
    }
  }
  return facts;
}

namespace {

/// Calls visit(record, place) for each token of the records in `range` that takes part in the loss by a column of listed tokens.
template <class Visit>
void for_each_listed_loss(const OpenedFile& file, const ColumnTable& table, RecordRange range, Visit visit) {
  const ColumnTable& where = table_of_places(file, table.column);
  const std::vector<std::int64_t> places = read_places(where, file.record_begin(), range.first, range.last, file.input.name);
  for_each_record(file, table, range,
                  [&](std::size_t record, std::int64_t position, ValueType type, const std::byte* values, std::int64_t count) {
                    const std::int64_t first = where.begin[record] - where.begin[range.first] + position;
                    for (std::int64_t i = 0; i < count; ++i) {
                      const std::byte* const value = values + i * info(type).bytes;
                      if (count_loss_tokens(table.column, type, value, 1) > 0)
                        visit(record, places[static_cast<std::size_t>(first + i)]);
                    }
                  });
}

/// loss_places() of the records in `range`.
std::vector<std::uint32_t> places_in(const OpenedFile& file, const ColumnTable& table, RecordRange range, LossSide side) {
  constexpr std::int64_t kNowhere = -1;
  std::vector<std::int64_t> places(range.last - range.first, kNowhere);
  if (is_placed(table.column)) {
    for_each_listed_loss(file, table, range, [&](std::size_t record, std::int64_t found) {
      std::int64_t& place = places[record - range.first];
      if (place == kNowhere || (side == LossSide::start ? found < place : found > place)) place = found;
    });
  } else {
    for_each_record(file, table, range,
                    [&](std::size_t record, std::int64_t position, ValueType type, const std::byte* values, std::int64_t count) {
                      std::int64_t& place = places[record - range.first];
                      if (side == LossSide::start && place != kNowhere) return;
                      const std::int64_t found = side == LossSide::start ? first_loss_token(table.column, type, values, count)
                                                                         : last_loss_token(table.column, type, values, count);
                      if (found >= 0) place = position + found;
                    });
  }
  std::vector<std::uint32_t> result(places.size(), SequenceIndex::kNoLoss);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] == kNowhere) continue;
    const std::size_t record = range.first + i;
    const std::int64_t tokens = file.record_begin()[record + 1] - file.record_begin()[record];
    const std::int64_t place = side == LossSide::start ? places[i] : tokens - 1 - places[i];
    if (place >= std::int64_t{SequenceIndex::kNoLoss}) {
      throw Error(ErrorCode::limit, "--drop-unlabeled: the first token that takes part in the loss lies beyond 2^32 tokens",
                  file.input.name, fmt::format("record {}", with_commas(static_cast<std::int64_t>(record))));
    }
    result[i] = static_cast<std::uint32_t>(place);
  }
  return result;
}

}  // namespace

std::vector<std::uint32_t> loss_places(const std::vector<OpenedFile>& files, std::size_t column, LossSide side,
                                       const RunContext& context) {
  std::vector<std::uint32_t> places;
  for (const OpenedFile& file : files) {
    const ColumnTable& table = file.shard.columns[column];
    std::size_t next = 0;
    ordered_map(
        context.pool, default_in_flight(context.pool), context.stop, [&] { return next_range(file, table, next); },
        [&](RecordRange range) { return places_in(file, table, range, side); },
        [&](std::vector<std::uint32_t>&& part) { places.insert(places.end(), part.begin(), part.end()); });
  }
  return places;
}

namespace {

/// loss_counts() of the records in `range`.
std::vector<std::int64_t> counts_in(const OpenedFile& file, const ColumnTable& table, RecordRange range, const LossPart& part) {
  std::vector<std::int64_t> counts(range.last - range.first);
  const auto counted = [&](std::size_t record) {
    const std::int64_t tokens = file.record_begin()[record + 1] - file.record_begin()[record];
    const std::int64_t kept = part.tokens > 0 ? std::min(part.tokens, tokens) : tokens;
    const std::int64_t begin = part.side == LossSide::end ? tokens - kept : 0;
    return std::pair(begin, begin + kept);
  };
  if (is_placed(table.column)) {
    for_each_listed_loss(file, table, range, [&](std::size_t record, std::int64_t place) {
      const auto [begin, end] = counted(record);
      counts[record - range.first] += begin <= place && place < end ? 1 : 0;
    });
    return counts;
  }
  for_each_record(file, table, range,
                  [&](std::size_t record, std::int64_t position, ValueType type, const std::byte* values, std::int64_t count) {
                    const auto [begin, end] = counted(record);
                    const std::int64_t first = std::max(position, begin), last = std::min(position + count, end);
                    if (first >= last) return;
                    counts[record - range.first] +=
                        count_loss_tokens(table.column, type, values + (first - position) * info(type).bytes, last - first);
                  });
  return counts;
}

}  // namespace

std::vector<std::int64_t> loss_counts(const std::vector<OpenedFile>& files, std::size_t column, const LossPart& part,
                                      const RunContext& context) {
  std::vector<std::int64_t> counts;
  for (const OpenedFile& file : files) {
    const ColumnTable& table = file.shard.columns[column];
    // Lists of tokens are kept in any case; there may be none of them in a whole file.
    const bool kept = table.values.file != nullptr || is_placed(table.column);
    if (!kept && file.records() > 0 && file.record_begin().back() > 0) return {};
    std::size_t next = 0;
    ordered_map(
        context.pool, default_in_flight(context.pool), context.stop, [&] { return next_range(file, table, next); },
        [&](RecordRange range) { return counts_in(file, table, range, part); },
        [&](std::vector<std::int64_t>&& some) { counts.insert(counts.end(), some.begin(), some.end()); });
  }
  return counts;
}

std::vector<Column> columns_of(const std::vector<OpenedFile>& files, const std::vector<ColumnFacts>& facts) {
  std::vector<Column> columns;
  for (std::size_t c = 0; c < facts.size(); ++c) {
    Column column = files.front().shard.columns[c].column;
    column.type = column.kind == ColumnKind::text ? ValueType::u8 : packed_type(facts[c], fill_value(column));
    if (holds_places(column) && column.type == ValueType::u8) column.type = ValueType::i32;  // they become slots of rows
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace shardpack
