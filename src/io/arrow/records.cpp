#include "io/arrow/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/units.h"
#include "io/formats/column_names.h"
#include "io/formats/group_column.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

/// Collects the records of one run.
class RunReader {
 public:
  RunReader(const RecordColumns& columns, const ReadOptions& options) : columns_(columns), options_(options) {}

  RecordRun read(std::int64_t first, std::int64_t count) {
    const std::vector<ListRow> ids = columns_.ids.read_rows(first, count);
    std::vector<ListRow> masks;
    if (columns_.mask) masks = columns_.mask->read_rows(first, count);
    std::vector<std::optional<GroupKey>> groups;
    if (columns_.group) groups = columns_.group->read(first, count);

    run_.lengths.reserve(ids.size());
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
      } else {
        columns_.ids.check_no_nulls(row, ids[i]);
        if (columns_.mask) {
          keep_unmasked(row, ids[i], masks[i]);
        } else {
          keep(ids[i].begin, ids[i].count);
        }
      }
      run_.lengths.push_back(tokens_);
      if (columns_.group) run_.groups.of_record.push_back(no_group ? -1 : numbering_.number_of(*groups[i]));
    }
    run_.groups.keys = numbering_.keys();
    return std::move(run_);
  }

 private:
  void keep(std::int64_t begin, std::int64_t count) {
    if (count == 0) return;
    tokens_ += count;
    if (!run_.kept.empty() && run_.kept.back().begin + run_.kept.back().count == begin) {
      run_.kept.back().count += count;
    } else {
      run_.kept.push_back({begin, count});
    }
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
  const ReadOptions& options_;
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
                           std::string_view loader, std::string_view saver) {
  const auto number_of = [&](const std::string& column) {
    const std::vector<int> found = schema.GetAllFieldIndices(column);
    if (found.size() > 1) {
      throw Error(ErrorCode::bad_data, fmt::format("there are {} columns '{}'; rename all but one", found.size(), column), shown);
    }
    if (found.size() == 1) numbers_.push_back(found[0]);
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
  std::sort(numbers_.begin(), numbers_.end());
  for (int i = 0; i < schema.num_fields(); ++i) {
    if (!std::binary_search(numbers_.begin(), numbers_.end(), i)) not_read_.push_back(schema.field(i)->name());
  }
}

RecordColumns::RecordColumns(const arrow::RecordBatch& batch, const ReadOptions& options, const std::string& shown,
                             std::int64_t first_row)
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
}

RecordCollector::RecordCollector(const InputFile& file, const ReadOptions& options, const RecordFields& fields) {
  shard_.ids_column = options.ids_column;
  shard_.files = {file.path};
  shard_.record_begin = {0};
  shard_.not_carried = fields.not_read();
}

void RecordCollector::add(const RecordRun& run) {
  for (const std::int64_t length : run.lengths) shard_.record_begin.push_back(shard_.record_begin.back() + length);
  add_groups(run.groups, groups_, shard_.groups);
  shard_.null_records += run.null_records;
  shard_.padding.sequences += run.padding.sequences;
  shard_.padding.tokens += run.padding.tokens;
}

OpenedShard RecordCollector::finish() {
  shard_.groups.keys = groups_.keys();
  return std::move(shard_);
}

std::int64_t rows_to_read(const ReadOptions& options, const OpenContext& context) {
  if (options.limit == 0) return std::numeric_limits<std::int64_t>::max();
  return std::max<std::int64_t>(options.limit - context.first_record, 0);
}

RecordRun read_records(const RecordColumns& columns, std::int64_t first, std::int64_t count, const ReadOptions& options) {
  return RunReader(columns, options).read(first, count);
}

}  // namespace shardpack
