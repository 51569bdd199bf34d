#include "io/formats/side_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "base/units.h"
#include "core/column_values.h"
#include "io/column_choice.h"
#include "io/formats/column_names.h"
#include "io/npy.h"
#include "io/placed_lists.h"
#include "io/spool.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::string_view kLossMask = "loss_mask";

/// What a record has in a column's file, by the array's shape; lists that go with positions by their name, too.
enum class Per : std::uint8_t { token, record, list };

/// A column's file, opened.
struct SideFile {
  std::string path;
  std::shared_ptr<const File> file;
  std::vector<std::int64_t> shape;
  std::int64_t begin_bytes = 0, values = 0;
  ValueType type = ValueType::u8;
  bool big_endian = false;
  bool numbers = true;  // else nothing more is known of it
  Per per = Per::token;
  std::int64_t width = 0;  // of lists, in values

  bool is_array_of_rows() const { return shape.size() == 2; }
};

SideFile open_npy_column(const SideColumn& column) {
  SideFile side;
  side.path = column.path;
  side.file = std::make_shared<const File>(column.path, File::Mode::read, column.name);
  const NpyHeader header = read_npy_header(*side.file);
  side.numbers = holds_numbers(header);
  if (!side.numbers) return side;
  if (header.fortran_order && header.shape.size() > 1) {
    throw Error(ErrorCode::bad_data, "the array is in Fortran order, column by column; save numpy.ascontiguousarray() of it",
                column.name);
  }
  side.shape = header.shape;
  side.begin_bytes = header.data_begin;
  side.values = header.elements();
  side.type = value_type(header, column.name, side.big_endian);
  return side;
}

SideFile open_mask_bytes(const InputFile& mask) {
  SideFile side;
  side.path = mask.path;
  side.file = std::make_shared<const File>(mask.path, File::Mode::read, mask.name);
  side.values = side.file->size();
  side.shape = {side.values};
  return side;
}

std::optional<ColumnKind> kind_said(const ColumnChoice& choice, const std::string& name) {
  for (const ColumnChoice::Named& named : choice.names) {
    if (named.name == name) return named.kind;
  }
  return std::nullopt;
}

/// Opens the columns of one data file, and tells by their shapes what they are.
class SideFiles {
 public:
  SideFiles(const OpenedShard& shard, const InputFile& file, const ReadOptions& options, std::vector<std::int64_t> token_shape)
      : shard_(shard), file_(file), options_(options), token_shape_(std::move(token_shape)) {
    if (token_shape_.empty()) token_shape_ = {shard.ids.tokens};
  }

  void open(const SideColumn& column) {
    if (is_read(column.column)) add(column.column, open_npy_column(column));
  }
  void open_loss_mask(const InputFile& mask) {
    const std::string name(kLossMask);
    if (is_read(name)) add(name, open_mask_bytes(mask));
  }

  std::optional<SideFile> take(std::string_view name) {
    const auto found = files_.find(name);
    if (found == files_.end()) return std::nullopt;
    SideFile file = std::move(found->second);
    files_.erase(found);
    return file;
  }

  ChosenColumns choose() const {
    ColumnsSeen seen;
    for (const std::string& name : unread_) seen[name].other = true;
    for (const auto& [name, side] : files_) {
      ColumnSeen& column = seen[name];
      column.records = records();
      column.other = !side.numbers;
      column.list = side.numbers && side.per != Per::record;
      column.number = side.numbers && side.per == Per::record;
      if (side.per == Per::list) see_lengths(side.width, column);
    }
    return choose_columns(seen, records(), options_, file_.name);
  }

 private:
  std::int64_t records() const { return static_cast<std::int64_t>(shard_.record_begin.size()) - 1; }

  bool is_read(const std::string& name) {
    if (name == kMaskColumn || !is_excluded(options_.columns, name)) return true;
    unread_.push_back(name);
    return false;
  }

  void add(const std::string& name, SideFile side) {
    if (side.numbers) judge_shape(name, side);
    const auto [at, is_new] = files_.try_emplace(name, std::move(side));
    if (!is_new) {
      throw Error(
          ErrorCode::usage,
          fmt::format("both {} and {} are its column '{}'; keep one of them", at->second.file->shown(), side.file->shown(), name),
          file_.name);
    }
  }

  /// Of the first records, as formats with lists show it.
  void see_lengths(std::int64_t width, ColumnSeen& column) const {
    const std::int64_t first = std::min(records(), kSettlingRecords);
    column.lengths.assign(static_cast<std::size_t>(first), width);
    for (std::size_t record = 0; record < static_cast<std::size_t>(first); ++record)
      column.equal_length = column.equal_length && shard_.record_begin[record + 1] - shard_.record_begin[record] == width;
  }

  void judge_shape(const std::string& name, SideFile& side) const {
    const bool fits_tokens = side.shape == token_shape_;
    const bool fits_records = side.shape == std::vector<std::int64_t>{records()};
    const bool fits_lists = side.is_array_of_rows() && side.shape[0] == records();
    if (!fits_tokens && !fits_records && !fits_lists) {
      throw Error(
          ErrorCode::bad_data,
          fmt::format("shape ({}) is neither one value for each token of {} ({}) nor one for each of its {} sequences, nor "
                      "a row for each; --columns none, or with the names of others, does without it",
                      fmt::join(side.shape, ", "), file_.name, fmt::join(token_shape_, ", "), with_commas(records())),
          side.file->shown());
    }
    const bool placed = is_placed_name(name, options_.positions_columns);
    const bool one_each = fits_lists && side.shape[1] == 1 && !placed;
    side.per = fits_tokens && !(fits_lists && placed) ? Per::token : fits_records || one_each ? Per::record : Per::list;
    if (side.per == Per::list) side.width = side.shape[1];
    if (!fits_tokens || !fits_records) return;
    // A token a sequence.
    const std::optional<ColumnKind> said = kind_said(options_.columns, name);
    const bool is_token = said ? *said != ColumnKind::sequence : is_aligned_name(name) || name == kMaskColumn;
    side.per = is_token ? Per::token : Per::record;
  }

  const OpenedShard& shard_;
  const InputFile& file_;
  const ReadOptions& options_;
  std::vector<std::int64_t> token_shape_;
  std::map<std::string, SideFile, std::less<>> files_;
  std::vector<std::string> unread_;  // left out by --columns
};

/// Lists that are carried as a value a token have as many values as tokens, in every record.
void check_lengths(const Column& column, const SideFile& side, const std::vector<std::int64_t>& record_begin) {
  for (std::size_t record = 0; record + 1 < record_begin.size(); ++record) {
    const std::int64_t tokens = record_begin[record + 1] - record_begin[record];
    if (tokens == side.width) continue;
    throw Error(ErrorCode::bad_data, unequal_to_ids(column.name, side.width, tokens), side.file->shown(),
                fmt::format("record {}", with_commas(static_cast<std::int64_t>(record))));
  }
}

ColumnTable table_of(Column column, const SideFile& side, const std::vector<std::int64_t>& record_begin) {
  ColumnTable table;
  if (side.per == Per::list && column.kind == ColumnKind::token) check_lengths(column, side, record_begin);
  if (column.kind == ColumnKind::list) table.begin = record_begin;
  if (column.kind == ColumnKind::list && side.per == Per::list) {
    for (std::size_t record = 0; record < table.begin.size(); ++record)
      table.begin[record] = static_cast<std::int64_t>(record) * side.width;
  }
  table.values.file = side.file;
  table.values.big_endian = side.big_endian;
  table.values.append(side.values, side.begin_bytes, side.type);
  table.column = std::move(column);
  return table;
}

/// Rows of an array are equally long, so that something fills up those of sequences with fewer positions. Weights tell what does;
/// without them positions ascend, which nothing that fills up can.
void check_filling(const OpenedShard& shard, const ColumnTable& positions, const SideFile& side) {
  if (!holds_places(positions.column) || !side.is_array_of_rows() || side.type >= ValueType::f16) return;
  const std::string weights = weights_of_positions(positions.column.name);
  const auto tells = [&](const ColumnTable& table) {
    return table.column.name == weights && table.column.places == positions.column.name;
  };
  if (std::any_of(shard.columns.begin(), shard.columns.end(), tells)) return;
  const std::int64_t width = side.shape[1];
  std::int64_t at = 0, before = -1;
  positions.values.for_each_run(0, positions.values.values, [&](ValueType type, const std::byte* values, std::int64_t count) {
    visit_values(type, values, count, [&](auto typed) {
      for (const auto value : typed) {
        const auto place = static_cast<std::int64_t>(value);
        if (at % width != 0 && place <= before) {
          throw Error(ErrorCode::bad_data,
                      fmt::format("{}[{}] is {} behind {}: does it fill the list up? A column {} tells, 1 for what counts and 0 "
                                  "for what does not; with positions alone they ascend",
                                  positions.column.name, with_commas(at % width), place, before, weights),
                      side.file->shown(), fmt::format("record {}", with_commas(at / width)));
        }
        before = place;
        ++at;
      }
    });
  });
}

/// A column of positions and those that go with it, as padding leaves them. Positions are counted anew.
class PlacedMasking {
 public:
  /// \param places  number of the column of positions
  PlacedMasking(const OpenedShard& shard, std::size_t places, const std::string& temp_dir)
      : shard_(shard), record_begin_(shard.record_begin), places_(places), spool_(temp_dir) {
    for (std::size_t c = 0; c < shard.columns.size(); ++c) {
      if (shard.columns[c].column.places != shard.columns[places].column.name) continue;
      numbers_.push_back(c);
      values_.push_back(shard.columns[c].values);
      values_.back().stretches.clear();
      values_.back().values = 0;
    }
    type_ = where().values.stretches.empty() ? ValueType::u8 : where().values.stretches.front().type;
  }

  /// \param loss  the column that tells the loss; may be none of these, or -1
  /// \return the tokens that went and took part in the loss by it
  std::int64_t take_record(std::size_t record, const std::vector<std::uint8_t>& keep, int loss) {
    for (const std::size_t c : numbers_) check_equal_lists(shard_.columns[c], where(), record, record + 1, shown());
    const std::vector<std::int64_t> places = read_places(where(), record_begin_, record, record + 1, shown());
    std::vector<std::int64_t> anew(keep.size());
    std::exclusive_scan(keep.begin(), keep.end(), anew.begin(), std::int64_t{0});
    const auto stays = [&](std::size_t i) { return keep[static_cast<std::size_t>(places[i])] != 0; };
    std::int64_t kept = 0;
    for (std::size_t i = 0; i < places.size();) {
      std::size_t end = i;
      for (; end < places.size() && stays(end); ++end) {
        const std::int64_t& place = anew[static_cast<std::size_t>(places[end])];
        const auto bytes = std::as_bytes(std::span(&place, 1)).first(static_cast<std::size_t>(info(type_).bytes));
        pending_.insert(pending_.end(), bytes.begin(), bytes.end());
      }
      keep_run(record, static_cast<std::int64_t>(i), static_cast<std::int64_t>(end - i));
      kept += static_cast<std::int64_t>(end - i);
      i = end + 1;  // what it ended at goes
    }
    begin_.push_back(begin_.back() + kept);
    if (std::ssize(pending_) >= kPendingBytes) flush();
    const bool tells = std::find(numbers_.begin(), numbers_.end(), static_cast<std::size_t>(loss)) != numbers_.end();
    if (!tells || kept == std::ssize(places)) return 0;
    const ColumnTable& table = shard_.columns[static_cast<std::size_t>(loss)];
    std::int64_t lost = 0;
    std::size_t entry = 0;
    table.values.for_each_run(table.begin[record], std::ssize(places),
                              [&](ValueType type, const std::byte* values, std::int64_t run) {
                                for (std::int64_t i = 0; i < run; ++i, ++entry) {
                                  if (!stays(entry))
                                    lost += count_loss_tokens(table.column, type, values + i * info(type).bytes, 1);
                                }
                              });
    return lost;
  }

  /// Give what is left to the columns.
  void finish(std::vector<ColumnTable>& columns) {
    flush();
    for (std::size_t n = 0; n < numbers_.size(); ++n) {
      columns[numbers_[n]].values = numbers_[n] == places_ ? std::move(counted_) : std::move(values_[n]);
      columns[numbers_[n]].begin = begin_;
    }
  }

 private:
  static constexpr std::ptrdiff_t kPendingBytes = 1 << 20;

  const ColumnTable& where() const { return shard_.columns[places_]; }
  const std::string& shown() const { return shard_.ids.file->shown(); }
  /// Of the columns beside the positions, entries [first, first + count) of a record.
  void keep_run(std::size_t record, std::int64_t first, std::int64_t count) {
    if (count == 0) return;
    for (std::size_t n = 0; n < numbers_.size(); ++n) {
      if (numbers_[n] == places_) continue;
      const ColumnTable& table = shard_.columns[numbers_[n]];
      const ValueTable::Stretch& all = table.values.stretches.front();
      values_[n].append(count, all.begin_bytes + (table.begin[record] + first) * info(all.type).bytes, all.type);
    }
  }
  void flush() {
    spool_.append(counted_, type_, pending_);
    pending_.clear();
  }

  const OpenedShard& shard_;
  const std::vector<std::int64_t> record_begin_;  // before
  const std::size_t places_;
  std::vector<std::size_t> numbers_;  // of all these columns
  std::vector<ValueTable> values_;    // what is left of them
  std::vector<std::int64_t> begin_{0};
  ValueType type_ = ValueType::u8;  // of the positions, as they were stored
  Spool spool_;
  ValueTable counted_;  // in it
  std::vector<std::byte> pending_;
};

/// Takes the tokens whose mask is 0 out of a shard, and their values out of its columns.
class Masking {
 public:
  Masking(OpenedShard& shard, const SideFile& mask, const std::string& temp_dir)
      : shard_(shard), mask_(mask), kept_ids_(shard.ids) {
    if (!mask.numbers || mask.per != Per::token || mask.type > ValueType::i64) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("expected {}, 0 or 1 for each token of {}", kMaskColumn, shard.ids.file->shown()),
                  mask.file->shown());
    }
    kept_ids_.stretches.clear();
    kept_ids_.tokens = 0;
    std::vector<Column> columns;
    for (std::size_t c = 0; c < shard.columns.size(); ++c) {
      const ColumnTable& column = shard.columns[c];
      if (holds_places(column.column)) placed_.emplace_back(shard, c, temp_dir);
      kept_values_.push_back(column.values);
      kept_values_.back().stretches.clear();
      kept_values_.back().values = 0;
      columns.push_back(column.column);
    }
    loss_ = loss_column(columns);
  }

  /// To the first `records`; those behind lose all that they have.
  void apply(std::int64_t records) {
    ValueTable mask;
    mask.file = mask_.file;
    mask.big_endian = mask_.big_endian;
    mask.append(mask_.values, mask_.begin_bytes, mask_.type);
    std::vector<std::uint8_t> keep;
    const auto read_records = std::min(static_cast<std::size_t>(records), shard_.record_begin.size() - 1);
    for (std::size_t record = 0; record < read_records; ++record) {
      const std::int64_t first = old_end_, end = shard_.record_begin[record + 1];
      read(mask, first, end - first, keep);
      take_record(first, keep);
      for (PlacedMasking& placed : placed_) shard_.padding.loss_tokens += placed.take_record(record, keep, loss_);
      old_end_ = end;
      shard_.record_begin[record + 1] = kept_ids_.tokens;
    }
    std::fill(shard_.record_begin.begin() + static_cast<std::ptrdiff_t>(read_records) + 1, shard_.record_begin.end(),
              kept_ids_.tokens);
    if (shard_.padding.sequences == 0) return;
    shard_.ids = std::move(kept_ids_);
    for (std::size_t c = 0; c < shard_.columns.size(); ++c) {
      if (!is_per_token(c)) continue;
      shard_.columns[c].values = std::move(kept_values_[c]);
    }
    for (PlacedMasking& placed : placed_) placed.finish(shard_.columns);
  }

 private:
  bool is_per_token(std::size_t column) const { return shard_.columns[column].column.kind == ColumnKind::token; }

  void read(const ValueTable& mask, std::int64_t first, std::int64_t count, std::vector<std::uint8_t>& keep) const {
    keep.clear();
    mask.for_each_run(first, count, [&](ValueType type, const std::byte* values, std::int64_t run) {
      visit_values(type, values, run, [&](auto typed) {
        for (const auto value : typed) {
          if (value != 0 && value != 1) {
            throw Error(ErrorCode::bad_data, fmt::format("{}; expected 0 or 1", value), mask_.file->shown(),
                        fmt::format("element {}", with_commas(first + static_cast<std::int64_t>(keep.size()))));
          }
          keep.push_back(static_cast<std::uint8_t>(value));
        }
      });
    });
  }

  void take_record(std::int64_t first, const std::vector<std::uint8_t>& keep) {
    const auto count = static_cast<std::int64_t>(keep.size());
    std::int64_t padding = 0;
    for (std::int64_t i = 0; i < count;) {
      std::int64_t end = i;
      while (end < count && keep[static_cast<std::size_t>(end)] == keep[static_cast<std::size_t>(i)]) ++end;
      if (keep[static_cast<std::size_t>(i)] != 0) {
        keep_run(first + i, end - i);
      } else {
        padding += end - i;
        if (loss_ >= 0 && is_per_token(static_cast<std::size_t>(loss_)))
          shard_.padding.loss_tokens += loss_tokens(first + i, end - i);
      }
      i = end;
    }
    if (padding == 0) return;
    ++shard_.padding.sequences;
    shard_.padding.tokens += padding;
  }

  void keep_run(std::int64_t first, std::int64_t count) {
    kept_ids_.append(count, shard_.ids.stretches.front().begin_bytes + first * info(shard_.ids.type).bytes);
    for (std::size_t c = 0; c < shard_.columns.size(); ++c) {
      if (!is_per_token(c)) continue;
      const ValueTable::Stretch& all = shard_.columns[c].values.stretches.front();
      kept_values_[c].append(count, all.begin_bytes + first * info(all.type).bytes, all.type);
    }
  }

  std::int64_t loss_tokens(std::int64_t first, std::int64_t count) const {
    const ColumnTable& column = shard_.columns[static_cast<std::size_t>(loss_)];
    std::int64_t tokens = 0;
    column.values.for_each_run(first, count, [&](ValueType type, const std::byte* values, std::int64_t run) {
      tokens += count_loss_tokens(column.column, type, values, run);
    });
    return tokens;
  }

  OpenedShard& shard_;
  const SideFile& mask_;
  TokenTable kept_ids_;
  std::vector<ValueTable> kept_values_;  // as the shard's columns
  std::deque<PlacedMasking> placed_;
  int loss_ = -1;
  std::int64_t old_end_ = 0;
};

}  // namespace

void take_side_columns(OpenedShard& shard, const InputFile& file, const ReadOptions& options, const OpenContext& context,
                       std::vector<std::int64_t> token_shape, const std::optional<InputFile>& loss_mask) {
  SideFiles sides(shard, file, options, std::move(token_shape));
  for (const SideColumn& column : file.columns) sides.open(column);
  if (loss_mask) sides.open_loss_mask(*loss_mask);
  const std::optional<SideFile> mask = sides.take(kMaskColumn);

  ChosenColumns chosen = sides.choose();
  std::vector<SideFile> carried;
  for (Column& column : chosen.carried) {
    carried.push_back(*sides.take(column.name));
    shard.files.push_back(carried.back().path);
    shard.columns.push_back(table_of(std::move(column), carried.back(), shard.record_begin));
  }
  shard.not_carried = std::move(chosen.not_carried);
  for (std::size_t c = 0; c < carried.size(); ++c) check_filling(shard, shard.columns[c], carried[c]);
  if (mask) {
    const std::int64_t records = options.limit > 0 ? options.limit - context.first_record : std::ssize(shard.record_begin) - 1;
    Masking(shard, *mask, context.temp_dir).apply(records);
    shard.files.push_back(mask->path);
  }
}

}  // namespace shardpack
