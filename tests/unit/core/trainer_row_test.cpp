// Rows made for a trainer and read back: ids and labels are what they were, for every preset and every kind of labels.
#include "core/trainer_row.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/column_values.h"
#include "shardpack/error.h"
#include "support/catch.h"

namespace shardpack {
namespace {

using Numbers = std::vector<std::int64_t>;

constexpr Length kRow = 24;
constexpr std::int64_t kRows = 4;

template <class T>
void put(ByteBuffer& bytes, const Numbers& numbers) {
  const std::vector<T> values(numbers.begin(), numbers.end());
  const std::span<const std::byte> stored = std::as_bytes(std::span(values));
  bytes.assign(stored.begin(), stored.end());
}

SequenceIndex index_of_records() {
  SourceFile file;
  file.name = "a.jsonl";
  for (std::int64_t record = 0; record <= 200; ++record) file.record_begin.push_back(100 * record);
  return SequenceIndex({file});
}

/// Random rows, with what they hold as numbers.
struct Sample {
  Sample(std::uint64_t seed, const Preset& preset, const Column* column) : random(seed) {
    const Length unslotted = unslotted_tokens(preset.slot_rule);
    block.rows = kRows;
    block.row_tokens = kRow + 8 * unslotted;
    block.row_begin = {0};
    ids.assign(static_cast<std::size_t>(kRows * block.row_tokens), 0);
    labels.assign(ids.size(), column == nullptr ? 0 : fill_value(*column));
    for (std::int64_t row = 0; row < kRows; ++row) {
      std::int64_t slots = 0, at = row * block.row_tokens;
      for (int s = 0; s < 8 && slots < kRow; ++s) {
        const std::int64_t own = 1 + draw(std::min<std::int64_t>(kRow - slots, 7)), length = own + unslotted;
        block.segments.push_back({.record = static_cast<std::int64_t>(block.segments.size()),
                                  .tokens = static_cast<Length>(length),
                                  .slots = static_cast<Length>(length)});
        for (std::int64_t i = 0; i < length; ++i) ids[static_cast<std::size_t>(at + i)] = 3 + draw(60'000);
        if (column != nullptr) fill_labels(*column, at, length);
        slots += own;
        at += length;
        if (draw(6) == 0) break;  // the rest is padding
      }
      block.row_begin.push_back(static_cast<std::int64_t>(block.segments.size()));
    }
    put<std::uint16_t>(block.ids, ids);
    if (column == nullptr) return;
    ColumnValues& values = block.columns.emplace_back();
    if (column->type == ValueType::u8) put<std::uint8_t>(values.bytes, labels);
    if (column->type == ValueType::i32) put<std::int32_t>(values.bytes, labels);
    if (column->type == ValueType::i64) put<std::int64_t>(values.bytes, labels);
  }

  std::int64_t draw(std::int64_t below) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(below)); }

  void fill_labels(const Column& column, std::int64_t at, std::int64_t length) {
    const std::int64_t ahead = column.alignment == Alignment::target_shifted ? 1 : 0;
    for (std::int64_t i = 0; i + ahead < length; ++i) {
      const std::int64_t token = ids[static_cast<std::size_t>(at + i + ahead)];
      const bool learned = draw(2) == 0;
      labels[static_cast<std::size_t>(at + i)] = is_label_mask(column) ? (learned ? 1 : 0) : learned ? token : kNoLabel;
    }
  }

  std::mt19937_64 random;
  RowBlock block;
  Numbers ids, labels;  // of every place in the block
};

Numbers part(const Numbers& numbers, std::int64_t first, std::int64_t count) {
  return Numbers(numbers.begin() + first, numbers.begin() + first + count);
}

void check_round_trip(const Preset& preset, const Column* column, std::uint64_t seed) {
  const std::vector<Column> columns = column == nullptr ? std::vector<Column>{} : std::vector<Column>{*column};
  OutputRules rules = output_rules(preset, preset.containers.front(), columns, IdType::u16);
  rules.row_tokens = kRow;
  Sample sample(seed, preset, column);
  RowBlock block = sample.block;
  const TrainerRows made = trainer_rows(block, rules, columns, index_of_records());
  Numbers first_values;
  if (rules.keeps_first_values) widen_values(column->type, made.first_values, first_values);

  TrainerRow row(rules);
  for (std::int64_t r = 0; r < kRows; ++r) {
    row.take(made.columns, r);
    std::vector<SlotRun> segments;
    std::int64_t end = 0;
    const auto first = static_cast<std::size_t>(sample.block.row_begin[static_cast<std::size_t>(r)]);
    for (std::size_t s = first; s < static_cast<std::size_t>(sample.block.row_begin[static_cast<std::size_t>(r) + 1]); ++s) {
      const Length length = sample.block.segments[s].length();
      segments.push_back({end, length, length});
      end += length;
    }
    for (std::size_t c = 0; c < rules.columns.size(); ++c)
      CHECK(static_cast<std::int64_t>(row.column(c).size()) == row.expected_values(rules.columns[c].source, segments));
    const std::int64_t at = r * sample.block.row_tokens;
    CHECK(part(Numbers(row.ids().begin(), row.ids().end()), 0, end) == part(sample.ids, at, end));
    if (column == nullptr) continue;
    Numbers stated, labels;
    row.stated_labels(segments, stated);
    row.source_labels(*column, segments, stated, std::span(first_values).subspan(rules.keeps_first_values ? first : 0), labels);
    CHECK(part(labels, 0, end) == part(sample.labels, at, end));
  }
}

TEST_CASE("what a preset's rows say is what the sources had") {
  const std::vector<Column> kinds{{"labels", ColumnKind::token, ValueType::i32, Alignment::minus100},
                                  {"labels", ColumnKind::token, ValueType::i64, Alignment::minus100},
                                  {"loss_mask", ColumnKind::token, ValueType::u8, Alignment::plain},
                                  {"completion_mask", ColumnKind::token, ValueType::i32, Alignment::plain},
                                  {"labels", ColumnKind::token, ValueType::i32, Alignment::target_shifted},
                                  {"loss_mask", ColumnKind::token, ValueType::u8, Alignment::target_shifted}};
  for (const Preset& preset : presets()) {
    if (is_native(preset) || !preset.positions_column.empty()) continue;  // the latter needs columns of the sources
    INFO(std::string(preset.name));
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      check_round_trip(preset, nullptr, seed);
      if (preset.labels == LabelRule::none) continue;
      for (const Column& column : kinds) check_round_trip(preset, &column, seed);
    }
  }
}

}  // namespace
}  // namespace shardpack
