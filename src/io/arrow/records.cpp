#include "io/arrow/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "base/units.h"
#include "core/column_values.h"
#include "core/placed_values.h"
#include "io/formats/column_names.h"
#include "io/formats/group_column.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

/// Collects the records of one run.
class RunReader {
 public:
  RunReader(const RecordColumns& columns, const RecordFields& fields, const ReadOptions& options, bool in_place)
      : columns_(columns), carried_(fields.carried()), options_(options), in_place_(in_place) {}

  RecordRun read(std::int64_t first, std::int64_t count) {
    const std::vector<ListRow> ids = columns_.ids.read_rows(first, count);
    std::vector<ListRow> masks;
    if (columns_.mask) masks = columns_.mask->read_rows(first, count);
    std::vector<std::optional<GroupKey>> groups;
    if (columns_.group) groups = columns_.group->read(first, count);

    run_.lengths.reserve(ids.size());
    run_.columns.resize(carried_.size());
    read_carried(first, count);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::int64_t row = first + static_cast<std::int64_t>(i);
      const bool no_group = columns_.group && !groups[i];
      tokens_ = 0;
      if (ids[i].null || no_group) {
        if (options_.null_row == NullRow::error) {
          const ColumnName& name = ids[i].null ? columns_.ids.name() : columns_.group->name();
          name.fail(fmt::format("{} is null; --null-row drop leaves such records out", name.column), row);
        }
        ++run_.null_records;
        for (std::size_t c = 0; c < carried_.size(); ++c) take_nothing(c);
      } else {
        columns_.ids.check_no_nulls(row, ids[i]);
        first_piece_ = pieces_.size();
        if (columns_.mask) {
          keep_unmasked(row, ids[i], masks[i]);
        } else {
          keep(ids[i].begin, ids[i].count);
        }
        for (std::size_t c = 0; c < carried_.size(); ++c) take_column(c, i, row, ids[i]);
      }
      run_.lengths.push_back(tokens_);
      if (columns_.group) run_.groups.of_record.push_back(no_group ? -1 : numbering_.number_of(*groups[i]));
    }
    run_.groups.keys = numbering_.keys();
    return std::move(run_);
  }

 private:
  /// The columns' rows, whatever becomes of them.
  void read_carried(std::int64_t first, std::int64_t count) {
    lists_.resize(carried_.size());
    numbers_.resize(carried_.size());
    valid_.resize(carried_.size());
    texts_.resize(carried_.size());
    for (std::size_t c = 0; c < carried_.size(); ++c) {
      if (const auto* const list = std::get_if<ListColumn>(&columns_.carried[c])) {
        lists_[c] = list->read_rows(first, count);
        run_.columns[c].type = list->value_type();
      } else if (const auto* const number = std::get_if<NumberColumn>(&columns_.carried[c])) {
        numbers_[c] = number->read_stored(first, count);
        valid_[c] = number->valid(first, count);
        run_.columns[c].type = number->type();
      } else {
        texts_[c] = std::get<ScalarColumn>(columns_.carried[c]).read(first, count);
      }
    }
  }

  [[noreturn]] static void fail_null(const ColumnName& name, std::int64_t row) {
    name.fail(fmt::format("{} is null, which the rows before are not; --columns names those to carry, without it", name.column),
              row);
  }

  /// For a record that is left out: a place among the records, and nothing for its tokens.
  void take_nothing(std::size_t c) {
    RecordRun::Values& values = run_.columns[c];
    if (carried_[c].kind == ColumnKind::sequence)
      values.stored.resize(values.stored.size() + static_cast<std::size_t>(info(values.type).bytes));
    if (is_listed(carried_[c])) values.lengths.push_back(0);
  }

  /// What record number `i` of the run has of column `c`.
  void take_column(std::size_t c, std::size_t i, std::int64_t row, const ListRow& ids) {
    RecordRun::Values& values = run_.columns[c];
    if (const auto* const number = std::get_if<NumberColumn>(&columns_.carried[c])) {
      if (valid_[c][i] == 0) fail_null(number->name(), row);
      const auto width = static_cast<std::ptrdiff_t>(info(values.type).bytes);
      const auto at = numbers_[c].begin() + static_cast<std::ptrdiff_t>(i) * width;
      values.stored.insert(values.stored.end(), at, at + width);
      return;
    }
    if (const auto* const scalar = std::get_if<ScalarColumn>(&columns_.carried[c])) {
      if (!texts_[c][i]) fail_null(scalar->name(), row);
      const auto bytes = std::as_bytes(std::span(std::get<std::string>(*texts_[c][i])));
      values.stored.insert(values.stored.end(), bytes.begin(), bytes.end());
      values.lengths.push_back(static_cast<std::int64_t>(bytes.size()));
      return;
    }
    const auto& list = std::get<ListColumn>(columns_.carried[c]);
    const ListRow& entries = lists_[c][i];
    if (entries.null) fail_null(list.name(), row);
    list.check_no_nulls(row, entries);
    if (is_placed(carried_[c]) && columns_.mask) return take_placed(c, i, row, ids);
    if (carried_[c].kind == ColumnKind::list) {
      take_entries(list, entries.begin, entries.count, values);
      values.lengths.push_back(entries.count);
      return;
    }
    if (entries.count != ids.count) {
      list.name().fail(unequal_to_ids(list.name().column, entries.count, ids.count), row);
    }
    // The same pieces as of the ids.
    std::int64_t done = 0;
    for (std::size_t piece = first_piece_; piece < pieces_.size(); ++piece) {
      const std::int64_t begin = pieces_[piece].begin - ids.begin;
      count_lost_loss(c, list, entries.begin + done, begin - done);
      take_entries(list, entries.begin + begin, pieces_[piece].count, values);
      done = begin + pieces_[piece].count;
    }
    count_lost_loss(c, list, entries.begin + done, ids.count - done);
  }

  /// What is left of a positions column when the padding of a record is taken out.
  struct Places {
    std::int64_t row = -1;                   // that this is of
    std::vector<std::int64_t> places, kept;  // as stored; those that stay, counted anew
    std::vector<std::uint8_t> stays;         // of places
  };

  const Places& places_of(std::size_t where, std::size_t i, std::int64_t row, const ListRow& ids) {
    places_.resize(carried_.size());
    Places& result = places_[where];
    if (result.row == row) return result;
    result = {.row = row, .places = {}, .kept = {}, .stays = {}};
    const auto& list = std::get<ListColumn>(columns_.carried[where]);
    const ListRow& entries = lists_[where][i];
    if (entries.null) fail_null(list.name(), row);
    list.check_no_nulls(row, entries);
    if (list.value_type() >= ValueType::f16)
      list.name().fail(fmt::format("{} holds floating-point numbers; positions are whole numbers, from 0", list.name().column),
                       row);
    list.read_numbers(entries.begin, entries.count, result.places);
    std::vector<std::int64_t> anew(static_cast<std::size_t>(ids.count), -1);
    std::int64_t next = 0;
    for (std::size_t piece = first_piece_; piece < pieces_.size(); ++piece) {
      for (std::int64_t t = 0; t < pieces_[piece].count; ++t)
        anew[static_cast<std::size_t>(pieces_[piece].begin - ids.begin + t)] = next++;
    }
    for (const std::int64_t place : result.places) {
      if (place < 0 || place >= ids.count) {
        list.name().fail(fmt::format("{}[{}] is {}; it is a position in a sequence of {} tokens", list.name().column,
                                     with_commas(std::ssize(result.stays)), place, with_commas(ids.count)),
                         row);
      }
      const std::int64_t now = anew[static_cast<std::size_t>(place)];
      result.stays.push_back(now >= 0 ? 1 : 0);
      if (now >= 0) result.kept.push_back(now);
    }
    return result;
  }

  /// The values of a record that belong to tokens which stay.
  void take_placed(std::size_t c, std::size_t i, std::int64_t row, const ListRow& ids) {
    const std::size_t where = places_column(carried_, carried_[c]);
    const Places& places = places_of(where, i, row, ids);
    const auto& list = std::get<ListColumn>(columns_.carried[c]);
    const ListRow& entries = lists_[c][i];
    if (entries.count != std::ssize(places.places)) {
      list.name().fail(unequal_lists(carried_[c].name, entries.count, carried_[where].name, std::ssize(places.places)), row);
    }
    RecordRun::Values& values = run_.columns[c];
    values.lengths.push_back(std::ssize(places.kept));
    if (c == where) {  // never above what was stored, so the type has room
      const auto width = static_cast<std::size_t>(info(values.type).bytes);
      for (const std::int64_t place : places.kept) {
        const auto bytes = std::as_bytes(std::span(&place, 1)).first(width);
        values.stored.insert(values.stored.end(), bytes.begin(), bytes.end());
      }
    }
    for (std::int64_t begin = 0; begin < entries.count;) {
      std::int64_t end = begin;
      while (end < entries.count && places.stays[static_cast<std::size_t>(end)] == places.stays[static_cast<std::size_t>(begin)])
        ++end;
      if (places.stays[static_cast<std::size_t>(begin)] == 0) {
        count_lost_loss(c, list, entries.begin + begin, end - begin);
      } else if (c != where) {
        take_entries(list, entries.begin + begin, end - begin, values);
      }
      begin = end;
    }
  }

  void take_entries(const ListColumn& list, std::int64_t begin, std::int64_t count, RecordRun::Values& values) const {
    if (count == 0) return;
    if (!in_place_ || list.is_bool()) return list.read_stored(begin, count, values.stored);
    append_kept(values.kept, begin, count);
  }

  /// Tokens of padding that would have taken part in the loss.
  void count_lost_loss(std::size_t c, const ListColumn& list, std::int64_t begin, std::int64_t count) {
    if (count == 0 || static_cast<int>(c) != loss_) return;
    std::vector<std::byte> stored;
    list.read_stored(begin, count, stored);
    ValueType type = list.value_type();
    if (type == ValueType::f16) {  // a number where some bit but the sign is set
      type = ValueType::u16;
      for (std::size_t i = 1; i < stored.size(); i += 2) stored[i] &= std::byte{0x7F};
    }
    run_.padding.loss_tokens += count_loss_tokens(carried_[c], type, stored.data(), count);
  }

  static void append_kept(std::vector<RecordRun::Kept>& kept, std::int64_t begin, std::int64_t count) {
    if (!kept.empty() && kept.back().begin + kept.back().count == begin) {
      kept.back().count += count;
    } else {
      kept.push_back({begin, count});
    }
  }

  void keep(std::int64_t begin, std::int64_t count) {
    if (count == 0) return;
    tokens_ += count;
    if (!carried_.empty()) pieces_.push_back({begin, count});
    append_kept(run_.kept, begin, count);
  }

  /// Leaves out the ids whose mask is 0.
  void keep_unmasked(std::int64_t row, const ListRow& ids, const ListRow& mask) {
    const ColumnName& name = columns_.mask->name();
    if (mask.null) name.fail(fmt::format("{} is null; expected as many 0 and 1 as token ids", name.column), row);
    if (mask.count != ids.count) {
      name.fail(fmt::format("{} has {} entries for {} token ids", name.column, with_commas(mask.count), with_commas(ids.count)),
                row);
    }
    columns_.mask->check_no_nulls(row, mask);
    constexpr std::int64_t kChunk = 64 << 10;  // values
    for (std::int64_t done = 0; done < mask.count; done += kChunk) {
      const std::int64_t count = std::min(kChunk, mask.count - done);
      columns_.mask->read_numbers(mask.begin + done, count, bits_);
      std::int64_t begin = 0;  // of the ones that are not kept yet
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t bit = bits_[static_cast<std::size_t>(i)];
        if (bit == 1) continue;
        if (bit != 0) {
          name.fail(fmt::format("{}[{}] is {}; expected 0 or 1", name.column, with_commas(done + i), bit), row);
        }
        keep(ids.begin + done + begin, i - begin);
        begin = i + 1;
      }
      keep(ids.begin + done + begin, count - begin);
    }
    if (tokens_ == ids.count) return;
    ++run_.padding.sequences;
    run_.padding.tokens += ids.count - tokens_;
  }

  const RecordColumns& columns_;
  const std::vector<Column>& carried_;
  const ReadOptions& options_;
  const bool in_place_;
  const int loss_ = loss_column(carried_);
  // Of the run's records, by column.
  std::vector<std::vector<ListRow>> lists_;
  std::vector<std::vector<std::byte>> numbers_;
  std::vector<std::vector<std::uint8_t>> valid_;
  std::vector<std::vector<std::optional<GroupKey>>> texts_;
  std::vector<Places> places_;           // by column, of one record
  std::vector<RecordRun::Kept> pieces_;  // of all records, one after the other
  std::size_t first_piece_ = 0;          // of the current record
  RecordRun run_;
  GroupNumbering numbering_;
  std::int64_t tokens_ = 0;         // of the current record
  std::vector<std::int64_t> bits_;  // of its mask
};

ListColumn list_column(const arrow::RecordBatch& batch, const std::string& column, const std::string& shown,
                       std::int64_t first_row) {
  return {*batch.column_data(batch.schema()->GetFieldIndex(column)), {shown, column, first_row}};
}

}  // namespace

RecordFields::RecordFields(const arrow::Schema& schema, const ReadOptions& options, const std::string& shown,
                           std::string_view loader, std::string_view saver)
    : shown_(shown) {
  const auto number_of = [&](const std::string& column) {
    const std::vector<int> found = schema.GetAllFieldIndices(column);
    if (found.size() > 1) {
      throw Error(ErrorCode::bad_data, fmt::format("there are {} columns '{}'; rename all but one", found.size(), column), shown);
    }
    if (found.size() == 1) needed_.push_back(found[0]);
    return found.empty() ? -1 : found[0];
  };
  if (const int ids = number_of(options.ids_column); ids >= 0) {
    check_integer_lists(*schema.field(ids), false, "token ids", shown);
  } else {
    const bool misnamed = options.ids_column != ReadOptions{}.ids_column;
    throw Error(misnamed ? ErrorCode::usage : ErrorCode::bad_data,
                no_ids_message(options.ids_column, schema.field_names(), loader, saver), shown);
  }
  const std::string mask_column(kMaskColumn);
  if (const int mask = options.ids_column == mask_column ? -1 : number_of(mask_column); mask >= 0) {
    check_integer_lists(*schema.field(mask), true, "0 and 1", shown);
  }
  if (!options.group_column.empty()) {
    const int group = number_of(options.group_column);
    if (group < 0) {
      throw Error(ErrorCode::usage,
                  fmt::format("no column '{}'; there are {}", options.group_column, quoted_list(schema.field_names())), shown);
    }
    ScalarColumn::check(*schema.field(group), shown);
  }
  std::sort(needed_.begin(), needed_.end());
  for (int i = 0; i < schema.num_fields(); ++i) {
    const bool needed = std::binary_search(needed_.begin(), needed_.end(), i);
    const bool once = schema.GetAllFieldIndices(schema.field(i)->name()).size() == 1;
    if (needed || (once && carried_form(*schema.field(i)))) numbers_.push_back(i);
  }
}

/// What the first `rows` rows of a batch hold of the columns that could be carried.
void RecordFields::observe(const arrow::RecordBatch& batch, std::int64_t rows, const ReadOptions& options,
                           ColumnsSeen& seen) const {
  const std::vector<ListRow> ids = list_column(batch, options.ids_column, shown_, 0).read_rows(0, rows);
  for (auto& [column, found] : seen) {
    if (found.other) continue;
    const arrow::ArrayData& array = *batch.column_data(batch.schema()->GetFieldIndex(column));
    const ColumnName name{shown_, column, 0};
    if (found.list) {
      const std::vector<ListRow> lists = ListColumn(array, name).read_rows(0, rows);
      for (std::size_t row = 0; row < lists.size(); ++row) {
        if (lists[row].null) continue;
        ++found.records;
        found.lengths.push_back(lists[row].count);
        if (!ids[row].null) found.equal_length = found.equal_length && lists[row].count == ids[row].count;
      }
    } else if (found.number) {
      const std::vector<std::uint8_t> valid = NumberColumn(array, name).valid(0, rows);
      found.records += std::count(valid.begin(), valid.end(), std::uint8_t{1});
    } else {
      const std::vector<std::optional<GroupKey>> texts = ScalarColumn(array, name).read(0, rows);
      found.records += std::count_if(texts.begin(), texts.end(), [](const auto& text) { return text.has_value(); });
    }
  }
}

void RecordFields::choose(const arrow::Schema& schema, const std::vector<std::shared_ptr<arrow::RecordBatch>>& first,
                          const ReadOptions& options) {
  ColumnsSeen seen;
  for (int i = 0; i < schema.num_fields(); ++i) {
    if (std::binary_search(needed_.begin(), needed_.end(), i)) continue;
    ColumnSeen& found = seen[schema.field(i)->name()];
    const bool read = std::binary_search(numbers_.begin(), numbers_.end(), i);
    const std::optional<ColumnKind> form = read ? carried_form(*schema.field(i)) : std::nullopt;
    found.other = !form;
    found.list = form == ColumnKind::list;
    found.number = form == ColumnKind::sequence;
    found.text = form == ColumnKind::text;
  }
  std::int64_t rows = 0;
  for (const std::shared_ptr<arrow::RecordBatch>& batch : first) {
    const std::int64_t count = std::min(batch->num_rows(), kSettlingRecords - rows);
    observe(*batch, count, options, seen);
    rows += count;
  }
  for (auto& [column, found] : seen) {
    if (found.other) found.records = rows;  // told by its type, and not by rows that are missing
  }
  ChosenColumns chosen = choose_columns(seen, rows, options, shown_);
  carried_ = std::move(chosen.carried);
  not_carried_ = std::move(chosen.not_carried);
  numbers_ = needed_;
  for (const Column& column : carried_) numbers_.push_back(schema.GetFieldIndex(column.name));
  std::sort(numbers_.begin(), numbers_.end());
}

RecordColumns::RecordColumns(const arrow::RecordBatch& batch, const ReadOptions& options, const RecordFields& fields,
                             const std::string& shown, std::int64_t first_row)
    : ids(list_column(batch, options.ids_column, shown, first_row)) {
  const auto& schema = *batch.schema();
  const std::string mask_column(kMaskColumn);
  if (options.ids_column != mask_column && schema.GetFieldIndex(mask_column) >= 0) {
    mask.emplace(list_column(batch, mask_column, shown, first_row));
  }
  if (!options.group_column.empty()) {
    group.emplace(*batch.column_data(schema.GetFieldIndex(options.group_column)),
                  ColumnName{shown, options.group_column, first_row});
  }
  for (const Column& column : fields.carried()) {
    const arrow::ArrayData& array = *batch.column_data(schema.GetFieldIndex(column.name));
    const ColumnName name{shown, column.name, first_row};
    counted_anew.push_back(mask && holds_places(column));
    if (column.kind == ColumnKind::sequence) {
      carried.emplace_back(std::in_place_type<NumberColumn>, array, name);
    } else if (column.kind == ColumnKind::text) {
      carried.emplace_back(std::in_place_type<ScalarColumn>, array, name);
    } else {
      carried.emplace_back(std::in_place_type<ListColumn>, array, name);
    }
  }
}

bool RecordColumns::stays_in_place(std::size_t column) const {
  const auto* const list = std::get_if<ListColumn>(&carried[column]);
  return list != nullptr && !list->is_bool() && !counted_anew[column];
}

RecordCollector::RecordCollector(const InputFile& file, const ReadOptions& options, const RecordFields& fields,
                                 const OpenContext& context)
    : temp_dir_(context.temp_dir), spools_(fields.carried().size()) {
  shard_.ids_column = options.ids_column;
  shard_.files = {file.path};
  shard_.record_begin = {0};
  shard_.not_carried = fields.not_carried();
  for (const Column& column : fields.carried()) {
    ColumnTable& table = shard_.columns.emplace_back();
    table.column = column;
    if (is_listed(column)) table.begin = {0};
  }
}

void RecordCollector::add(const RecordRun& run, const RecordColumns* columns, const std::shared_ptr<const File>& file) {
  std::vector<std::int64_t>& begin = shard_.record_begin;
  const std::size_t before = begin.size() - 1;
  begin.resize(begin.size() + run.lengths.size());
  for (std::size_t i = 0; i < run.lengths.size(); ++i) begin[before + i + 1] = begin[before + i] + run.lengths[i];
  add_groups(run.groups, groups_, shard_.groups);
  shard_.null_records += run.null_records;
  shard_.padding += run.padding;
  for (std::size_t c = 0; c < run.columns.size(); ++c) {
    const RecordRun::Values& values = run.columns[c];
    ColumnTable& table = shard_.columns[c];
    for (const std::int64_t length : values.lengths) table.begin.push_back(table.begin.back() + length);
    if (columns == nullptr || !columns->stays_in_place(c)) {
      if (!spools_[c]) spools_[c].emplace(temp_dir_);
      spools_[c]->append(table.values, values.type, values.stored);
      continue;
    }
    const auto& list = std::get<ListColumn>(columns->carried[c]);
    table.values.file = file;
    for (const RecordRun::Kept& kept : values.kept)
      table.values.append(kept.count, list.values().begin_bytes + list.place_of(kept.begin), values.type);
  }
}

OpenedShard RecordCollector::finish() {
  shard_.groups.keys = groups_.keys();
  return std::move(shard_);
}

std::int64_t rows_to_read(const ReadOptions& options, const OpenContext& context) {
  if (options.limit == 0) return std::numeric_limits<std::int64_t>::max();
  return std::max<std::int64_t>(options.limit - context.first_record, 0);
}

RecordRun read_records(const RecordColumns& columns, const RecordFields& fields, std::int64_t first, std::int64_t count,
                       const ReadOptions& options, bool in_place) {
  return RunReader(columns, fields, options, in_place).read(first, count);
}

}  // namespace shardpack
