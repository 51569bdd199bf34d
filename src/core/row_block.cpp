#include "core/row_block.h"

#include <algorithm>

#include "base/checked.h"
#include "core/column_values.h"
#include "core/placed_values.h"

namespace shardpack {

namespace {

template <class Id>
Id* ids_of(RowBlock& block) {
  return reinterpret_cast<Id*>(block.ids.data());
}

/// Calls visit(segment, index of the segment's first id in the block) for every segment, and pad(from, to) for the slots between.
template <class Visit, class Pad>
void walk(const RowBlock& block, Visit visit, Pad pad) {
  for (std::int64_t row = 0; row < block.rows; ++row) {
    std::int64_t at = block.slots_before(row);
    const auto begin = static_cast<std::size_t>(block.row_begin[static_cast<std::size_t>(row)]);
    const auto end = static_cast<std::size_t>(block.row_begin[static_cast<std::size_t>(row) + 1]);
    for (std::size_t s = begin; s < end; ++s) {
      const RowSegment& segment = block.segments[s];
      visit(segment, at);
      pad(at + segment.length(), at + segment.slots);
      at += segment.slots;
    }
    pad(at, block.slots_before(row + 1));
  }
}

template <class Id>
void fill_gaps_as(RowBlock& block, const FillIds& fill) {
  Id* const ids = ids_of<Id>(block);
  walk(
      block,
      [&](const RowSegment& segment, std::int64_t at) {
        if (segment.added & kAddedBos) ids[at] = static_cast<Id>(fill.bos);
        if (segment.added & kAddedEos) ids[at + segment.length() - 1] = static_cast<Id>(fill.eos);
      },
      [&](std::int64_t from, std::int64_t to) { std::fill(ids + from, ids + to, static_cast<Id>(fill.pad)); });
}

template <class Id>
Fingerprint fingerprint_as(const RowBlock& block, const FingerprintKeys& keys, const SequenceIndex& index) {
  const auto* const ids = reinterpret_cast<const Id*>(block.ids.data());
  Fingerprint total;
  walk(
      block,
      [&](const RowSegment& segment, std::int64_t at) {
        const SequenceId record = index.first_sequence(segment.file) + segment.record;
        total += keys.of(record, segment.first_token,
                         std::span(ids + at + (segment.added & kAddedBos), static_cast<std::size_t>(segment.tokens)));
      },
      [](std::int64_t, std::int64_t) {});
  return total;
}

}  // namespace

std::int64_t row_slots(const std::vector<Item>& items, const Assignment& assignment, std::int64_t row) {
  std::int64_t slots = 0;
  for (const std::int32_t i : assignment.row(row)) slots += items[static_cast<std::size_t>(i)].slots;
  return slots;
}

RowBlock lay_out_rows(const std::vector<Item>& items, const Assignment& assignment, const SequenceIndex& index, Length row_tokens,
                      IdType id_type, std::int64_t first_row, std::int64_t rows, std::int64_t shard_first_row,
                      std::vector<TokenRequest>& requests, Length unslotted, ByteBuffer ids) {
  RowBlock block;
  block.ids = std::move(ids);
  block.first_row = first_row - shard_first_row;
  block.first_segment =
      assignment.begin[static_cast<std::size_t>(first_row)] - assignment.begin[static_cast<std::size_t>(shard_first_row)];
  block.rows = rows;
  block.row_tokens = row_tokens;
  block.id_type = id_type;
  block.row_begin.push_back(0);
  if (row_tokens == 0) {
    block.slot_begin.push_back(0);
    for (std::int64_t row = first_row; row < first_row + rows; ++row)
      block.slot_begin.push_back(block.slot_begin.back() + row_slots(items, assignment, row));
  }
  block.ids.resize(static_cast<std::size_t>(block.slots()) * static_cast<std::size_t>(info(id_type).bytes));
  // Fetched before they are looked at: they lie all over memory, which answers many such questions at once.
  std::vector<Item> chosen;
  for (std::int64_t row = first_row; row < first_row + rows; ++row) {
    for (const std::int32_t i : assignment.row(row)) chosen.push_back(items[static_cast<std::size_t>(i)]);
  }
  auto next = chosen.begin();
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t at = block.slots_before(row);
    const auto end = next + std::ssize(assignment.row(first_row + row));
    for (; next != end; ++next) {
      const Item& item = *next;
      const std::int32_t file = index.file_of(item.sequence);
      block.segments.push_back({.file = file,
                                .record = item.sequence - index.first_sequence(file),
                                .first_token = item.first_token,
                                .tokens = item.tokens,
                                .slots = item.slots + unslotted,
                                .added = item.added});
      if (item.tokens > 0) requests.push_back({item.sequence, item.first_token, item.tokens, at + (item.added & kAddedBos)});
      at += item.slots + unslotted;
    }
    ensure(at <= block.slots_before(row + 1), "a row lies in the slots that are its own");
    block.row_begin.push_back(static_cast<std::int64_t>(block.segments.size()));
  }
  return block;
}

namespace {

/// Of the segments.
std::vector<SequenceId> sequences_of(const RowBlock& block, const SequenceIndex& index) {
  std::vector<SequenceId> sequences;
  for (const RowSegment& segment : block.segments) sequences.push_back(index.first_sequence(segment.file) + segment.record);
  return sequences;
}

/// Row slots in the place of places in the sequence.
void shift_places(const Column& column, const RowBlock& block, ColumnValues& values) {
  const std::vector<std::int64_t> shift = slots_of_token_0(block);
  std::vector<std::int64_t> places = whole_numbers(column.type, values.bytes);
  for (std::size_t s = 0; s < shift.size(); ++s) {
    for (std::int64_t i = values.begin[s]; i < values.begin[s + 1]; ++i) places[static_cast<std::size_t>(i)] += shift[s];
  }
  store_whole_numbers(places, column.type, values.bytes);
}

/// Values that belong to tokens one by one: column `places`, and all that go with it.
void read_placed_columns(const SequenceSource& source, std::size_t places, std::span<const SequenceId> sequences,
                         RowBlock& block) {
  const std::span<const Column> columns = source.columns();
  std::vector<TokenRun> runs;
  for (std::size_t s = 0; s < sequences.size(); ++s)
    runs.push_back({sequences[s], block.segments[s].first_token, block.segments[s].tokens});
  const PlacedReader reader(source, places, runs);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].places == columns[places].name) block.columns[c] = {reader.read(c), reader.begin()};
  }
  shift_places(columns[places], block, block.columns[places]);
}

}  // namespace

std::vector<std::int64_t> places_in_files(const RowBlock& block, const SequenceSource& source) {
  std::vector<std::int64_t> places;
  places.reserve(block.segments.size());
  for (const RowSegment& segment : block.segments) {
    const SequenceId sequence = source.index().first_sequence(segment.file) + segment.record;
    places.push_back(source.place_in_file(sequence, segment.first_token, segment.tokens).value_or(-1));
  }
  return places;
}

void read_columns(const SequenceSource& source, std::span<const TokenRequest> requests,
                  std::span<const std::int64_t> first_values, RowBlock& block) {
  const std::span<const Column> columns = source.columns();
  block.columns.resize(columns.size());
  const std::vector<SequenceId> sequences = sequences_of(block, source.index());
  for (std::size_t c = 0; c < columns.size(); ++c) {
    ColumnValues& values = block.columns[c];
    if (columns[c].kind == ColumnKind::token) {
      values.bytes.resize(static_cast<std::size_t>(block.slots() * info(columns[c].type).bytes));
      source.read_tokens(c, requests, values.bytes.data());
    } else if (holds_places(columns[c])) {
      read_placed_columns(source, c, sequences, block);
    } else if (!is_placed(columns[c])) {
      values = source.read_values(c, sequences);
    }
  }
  for (std::size_t c = 0; c < columns.size(); ++c) {
    for (std::int64_t& begin : block.columns[c].begin) begin += first_values[c];
  }
}

void fill_gaps(RowBlock& block, const FillIds& fill, std::span<const Column> columns) {
  block.id_type == IdType::u16 ? fill_gaps_as<std::uint16_t>(block, fill) : fill_gaps_as<std::uint32_t>(block, fill);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].kind != ColumnKind::token) continue;
    std::byte* const values = block.columns[c].bytes.data();
    const auto fill_from = [&](std::int64_t from, std::int64_t to) {
      fill_values(columns[c], values + from * info(columns[c].type).bytes, to - from);
    };
    walk(
        block,
        [&](const RowSegment& segment, std::int64_t at) {
          if (segment.added & kAddedBos) fill_from(at, at + 1);
          if (segment.added & kAddedEos) fill_from(at + segment.length() - 1, at + segment.length());
        },
        fill_from);
  }
}

namespace {

Fingerprint fingerprint_of_tokens(const RowBlock& block, const Column& column, const ColumnValues& values,
                                  const FingerprintKeys& keys, const SequenceIndex& index) {
  const int bytes = info(column.type).bytes;
  Fingerprint total;
  walk(
      block,
      [&](const RowSegment& segment, std::int64_t at) {
        const SequenceId record = index.first_sequence(segment.file) + segment.record;
        const std::int64_t first = at + (segment.added & kAddedBos);
        total += keys.of(record, segment.first_token, column.type, values.bytes.data() + first * bytes, segment.tokens);
      },
      [](std::int64_t, std::int64_t) {});
  return total;
}

Fingerprint fingerprint_of_sequences(const RowBlock& block, const Column& column, const ColumnValues& values,
                                     const FingerprintKeys& keys, const SequenceIndex& index, bool single_segments) {
  Fingerprint total;
  for (std::size_t s = 0; s < block.segments.size(); ++s) {
    const RowSegment& segment = block.segments[s];
    if (!counts_whole_sequence(segment.first_token, segment.tokens, single_segments)) continue;
    total += fingerprint_of_sequence(column, values, s, keys, index.first_sequence(segment.file) + segment.record);
  }
  return total;
}

/// Of values that belong to tokens one by one; their places are undone from the row's slots.
Fingerprint fingerprint_of_placed(const RowBlock& block, std::span<const Column> columns, std::size_t c,
                                  const FingerprintKeys& keys, const SequenceIndex& index) {
  const ColumnValues& values = block.columns[c];
  const std::size_t where = places_column(columns, columns[c]);
  const std::vector<std::int64_t> slots = whole_numbers(columns[where].type, block.columns[where].bytes),
                                  shift = slots_of_token_0(block);
  const auto width = static_cast<std::size_t>(info(columns[c].type).bytes);
  Fingerprint total;
  std::vector<std::int64_t> places;
  for (std::size_t s = 0; s < block.segments.size(); ++s) {
    const RowSegment& segment = block.segments[s];
    const auto first = static_cast<std::size_t>(values.begin[s] - values.begin.front()),
               last = static_cast<std::size_t>(values.begin[s + 1] - values.begin.front());
    places.clear();
    for (std::size_t i = first; i < last; ++i) places.push_back(slots[i] - shift[s]);
    const SequenceId record = index.first_sequence(segment.file) + segment.record;
    total += c == where ? keys.of_placed(record, places, ValueType::i64, std::as_bytes(std::span(places)).data())
                        : keys.of_placed(record, places, columns[c].type, values.bytes.data() + first * width);
  }
  return total;
}

}  // namespace

Fingerprint fingerprint_of_sequence(const Column& column, const ColumnValues& values, std::size_t i, const FingerprintKeys& keys,
                                    SequenceId record) {
  const bool listed = column.kind != ColumnKind::sequence;
  const std::int64_t first = listed ? values.begin[i] - values.begin[0] : static_cast<std::int64_t>(i);
  const std::int64_t count = listed ? values.begin[i + 1] - values.begin[i] : 1;
  const std::byte* const at = values.bytes.data() + first * info(column.type).bytes;
  if (column.kind == ColumnKind::text) {
    return keys.of_text(record, std::string_view(reinterpret_cast<const char*>(at), static_cast<std::size_t>(count)));
  }
  return keys.of(record, 0, column.type, at, count);
}

Fingerprint fingerprint_of(const RowBlock& block, const DatasetKeys& keys, const SequenceIndex& index,
                           std::span<const Column> columns, bool single_segments) {
  Fingerprint total = block.id_type == IdType::u16 ? fingerprint_as<std::uint16_t>(block, keys.ids, index)
                                                   : fingerprint_as<std::uint32_t>(block, keys.ids, index);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].kind == ColumnKind::token) {
      total += fingerprint_of_tokens(block, columns[c], block.columns[c], keys.columns[c], index);
    } else if (is_placed(columns[c])) {
      total += fingerprint_of_placed(block, columns, c, keys.columns[c], index);
    } else {
      total += fingerprint_of_sequences(block, columns[c], block.columns[c], keys.columns[c], index, single_segments);
    }
  }
  return total;
}

void read_loss_column(const SequenceSource& source, std::span<const TokenRequest> requests, RowBlock& block) {
  const std::span<const Column> columns = source.columns();
  const int loss = loss_column(columns);
  if (loss < 0) return;
  const auto number = static_cast<std::size_t>(loss);
  block.columns.resize(columns.size());
  if (is_placed(columns[number])) {
    const std::size_t places = places_column(columns, columns[number]);
    return read_placed_columns(source, places, sequences_of(block, source.index()), block);
  }
  ByteBuffer& values = block.columns[number].bytes;
  const std::int64_t slots = block.slots();
  values.resize(static_cast<std::size_t>(slots * info(columns[number].type).bytes));
  fill_values(columns[number], values.data(), slots);
  source.read_tokens(number, requests, values.data());
}

std::vector<std::int64_t> loss_tokens_of(const RowBlock& block, std::span<const Column> columns) {
  const int loss = loss_column(columns);
  if (loss < 0) return {};
  const Column& column = columns[static_cast<std::size_t>(loss)];
  const ColumnValues& values = block.columns[static_cast<std::size_t>(loss)];
  // Where a row's values begin. Padding and added tokens hold what takes no part, so those of all slots may be counted.
  const auto begin_of = [&](std::int64_t row) {
    if (!is_placed(column)) return block.slots_before(row);
    return values.begin[static_cast<std::size_t>(block.row_begin[static_cast<std::size_t>(row)])] - values.begin.front();
  };
  std::vector<std::int64_t> tokens;
  for (std::int64_t row = 0; row < block.rows; ++row) {
    const std::int64_t first = begin_of(row);
    const std::byte* const own = values.bytes.data() + first * info(column.type).bytes;
    tokens.push_back(count_loss_tokens(column, column.type, own, begin_of(row + 1) - first));
  }
  return tokens;
}

}  // namespace shardpack
