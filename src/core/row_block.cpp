#include "core/row_block.h"

#include <algorithm>

#include "base/checked.h"

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
    std::int64_t at = row * block.row_tokens;
    const auto begin = static_cast<std::size_t>(block.row_begin[static_cast<std::size_t>(row)]);
    const auto end = static_cast<std::size_t>(block.row_begin[static_cast<std::size_t>(row) + 1]);
    for (std::size_t s = begin; s < end; ++s) {
      const RowSegment& segment = block.segments[s];
      visit(segment, at);
      pad(at + segment.length(), at + segment.slots);
      at += segment.slots;
    }
    pad(at, (row + 1) * block.row_tokens);
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

RowBlock lay_out_rows(const std::vector<Item>& items, const Assignment& assignment, const SequenceIndex& index, Length row_tokens,
                      IdType id_type, std::int64_t first_row, std::int64_t rows, std::int64_t shard_first_row,
                      std::vector<TokenRequest>& requests) {
  RowBlock block;
  block.first_row = first_row - shard_first_row;
  block.first_segment =
      assignment.begin[static_cast<std::size_t>(first_row)] - assignment.begin[static_cast<std::size_t>(shard_first_row)];
  block.rows = rows;
  block.row_tokens = row_tokens;
  block.id_type = id_type;
  block.ids.resize(static_cast<std::size_t>(rows * row_tokens) * static_cast<std::size_t>(info(id_type).bytes));
  block.row_begin.push_back(0);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t at = row * row_tokens;
    for (const std::int32_t i : assignment.row(first_row + row)) {
      const Item& item = items[static_cast<std::size_t>(i)];
      const SequencePlace place = index.place(item.sequence);
      block.segments.push_back({.file = place.file,
                                .record = place.record,
                                .first_token = item.first_token,
                                .tokens = item.tokens,
                                .slots = item.slots,
                                .added = item.added});
      if (item.tokens > 0) requests.push_back({item.sequence, item.first_token, item.tokens, at + (item.added & kAddedBos)});
      at += item.slots;
    }
    block.row_begin.push_back(static_cast<std::int64_t>(block.segments.size()));
  }
  return block;
}

void fill_gaps(RowBlock& block, const FillIds& fill) {
  block.id_type == IdType::u16 ? fill_gaps_as<std::uint16_t>(block, fill) : fill_gaps_as<std::uint32_t>(block, fill);
}

Fingerprint fingerprint_of(const RowBlock& block, const FingerprintKeys& keys, const SequenceIndex& index) {
  return block.id_type == IdType::u16 ? fingerprint_as<std::uint16_t>(block, keys, index)
                                      : fingerprint_as<std::uint32_t>(block, keys, index);
}

}  // namespace shardpack
