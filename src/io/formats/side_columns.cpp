#include "io/formats/side_columns.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/units.h"
#include "core/column_values.h"
#include "io/column_choice.h"
#include "io/formats/column_names.h"
#include "io/npy.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::string_view kLossMask = "loss_mask";

/// A column's file, opened.
struct SideFile {
  std::string path;
  std::shared_ptr<const File> file;
  std::vector<std::int64_t> shape;
  std::int64_t begin_bytes = 0, values = 0;
  ValueType type = ValueType::u8;
  bool big_endian = false;
  bool numbers = true;  // else nothing more is known of it
  bool per_token = true;
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
      column.list = side.numbers && side.per_token;
      column.number = side.numbers && !side.per_token;
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

  void judge_shape(const std::string& name, SideFile& side) const {
    const bool fits_tokens = side.shape == token_shape_;
    const bool fits_records = side.shape == std::vector<std::int64_t>{records()};
    if (!fits_tokens && !fits_records) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("shape ({}) is neither one value for each token of {} ({}) nor one for each of its {} sequences; "
                              "--columns none, or with the names of others, does without it",
                              fmt::join(side.shape, ", "), file_.name, fmt::join(token_shape_, ", "), with_commas(records())),
                  side.file->shown());
    }
    side.per_token = fits_tokens;
    if (!fits_tokens || !fits_records) return;
    // A token a sequence.
    const std::optional<ColumnKind> said = kind_said(options_.columns, name);
    side.per_token = said ? *said != ColumnKind::sequence : is_aligned_name(name) || name == kMaskColumn;
  }

  const OpenedShard& shard_;
  const InputFile& file_;
  const ReadOptions& options_;
  std::vector<std::int64_t> token_shape_;
  std::map<std::string, SideFile, std::less<>> files_;
  std::vector<std::string> unread_;  // left out by --columns
};

ColumnTable table_of(Column column, const SideFile& side, const std::vector<std::int64_t>& record_begin) {
  ColumnTable table;
  if (column.kind == ColumnKind::list) table.begin = record_begin;
  table.values.file = side.file;
  table.values.big_endian = side.big_endian;
  table.values.append(side.values, side.begin_bytes, side.type);
  table.column = std::move(column);
  return table;
}

/// Takes the tokens whose mask is 0 out of a shard, and their values out of its columns.
class Masking {
 public:
  Masking(OpenedShard& shard, const SideFile& mask) : shard_(shard), mask_(mask), kept_ids_(shard.ids) {
    if (!mask.numbers || !mask.per_token || mask.type > ValueType::i64) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("expected {}, 0 or 1 for each token of {}", kMaskColumn, shard.ids.file->shown()),
                  mask.file->shown());
    }
    kept_ids_.stretches.clear();
    kept_ids_.tokens = 0;
    std::vector<Column> columns;
    for (const ColumnTable& column : shard.columns) {
      if (is_placed(column.column)) {
        throw Error(
            ErrorCode::usage,
            fmt::format("--positions-columns {}: positions cannot be counted anew without the padding that {} tells; leave "
                        "the padding out of the arrays, or store them as JSON lines, Arrow or Parquet",
                        column.column.places, kMaskColumn),
            shard.ids.file->shown());
      }
      kept_values_.push_back(column.values);
      kept_values_.back().stretches.clear();
      kept_values_.back().values = 0;
      columns.push_back(column.column);
    }
    loss_ = loss_column(columns);
  }

  void apply() {
    ValueTable mask;
    mask.file = mask_.file;
    mask.big_endian = mask_.big_endian;
    mask.append(mask_.values, mask_.begin_bytes, mask_.type);
    std::vector<std::uint8_t> keep;
    for (std::size_t record = 0; record + 1 < shard_.record_begin.size(); ++record) {
      const std::int64_t first = old_end_, end = shard_.record_begin[record + 1];
      read(mask, first, end - first, keep);
      take_record(first, keep);
      old_end_ = end;
      shard_.record_begin[record + 1] = kept_ids_.tokens;
    }
    if (shard_.padding.sequences == 0) return;
    shard_.ids = std::move(kept_ids_);
    for (std::size_t c = 0; c < shard_.columns.size(); ++c) {
      if (!is_per_token(c)) continue;
      shard_.columns[c].values = std::move(kept_values_[c]);
      if (!shard_.columns[c].begin.empty()) shard_.columns[c].begin = shard_.record_begin;
    }
  }

 private:
  bool is_per_token(std::size_t column) const {
    const ColumnKind kind = shard_.columns[column].column.kind;
    return kind == ColumnKind::token || kind == ColumnKind::list;
  }

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
        if (loss_ >= 0) shard_.padding.loss_tokens += loss_tokens(first + i, end - i);
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
  int loss_ = -1;
  std::int64_t old_end_ = 0;
};

}  // namespace

void take_side_columns(OpenedShard& shard, const InputFile& file, const ReadOptions& options,
                       std::vector<std::int64_t> token_shape, const std::optional<InputFile>& loss_mask) {
  SideFiles sides(shard, file, options, std::move(token_shape));
  for (const SideColumn& column : file.columns) sides.open(column);
  if (loss_mask) sides.open_loss_mask(*loss_mask);
  const std::optional<SideFile> mask = sides.take(kMaskColumn);

  ChosenColumns chosen = sides.choose();
  for (Column& column : chosen.carried) {
    const SideFile side = *sides.take(column.name);
    shard.files.push_back(side.path);
    shard.columns.push_back(table_of(std::move(column), side, shard.record_begin));
  }
  shard.not_carried = std::move(chosen.not_carried);
  if (mask) {
    Masking(shard, *mask).apply();
    shard.files.push_back(mask->path);
  }
}

}  // namespace shardpack
