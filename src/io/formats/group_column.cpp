#include "io/formats/group_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/units.h"
#include "io/formats/flat_tokens.h"
#include "io/formats/integer_array.h"
#include "io/npy.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {
void check_number(std::size_t groups) {
  if (groups <= kMaxGroups) return;
  throw Error(ErrorCode::usage,
              fmt::format("--group-column has more than {} different values; each has a plan of its own, so name a "
                          "column with fewer",
                          with_commas(static_cast<std::int64_t>(kMaxGroups))));
}
}  // namespace

std::int32_t GroupNumbering::number_of(const GroupKey& key) {
  const auto [entry, is_new] = numbers_.try_emplace(key, static_cast<std::int32_t>(keys_.size()));
  if (is_new) {
    keys_.push_back(key);
    check_number(keys_.size());
  }
  return entry->second;
}

void add_groups(const GroupColumn& run, GroupNumbering& numbering, GroupColumn& column) {
  std::vector<std::int32_t> numbers;
  for (const GroupKey& key : run.keys) numbers.push_back(numbering.number_of(key));
  for (const std::int32_t number : run.of_record) {
    column.of_record.push_back(number < 0 ? -1 : numbers[static_cast<std::size_t>(number)]);
  }
}

InputFile group_file_of(const InputFile& file, const std::string& column) { return side_file(file, "." + column + ".npy"); }

void read_group_file(OpenedShard& shard, const InputFile& file, const std::string& column) {
  const InputFile values = group_file_of(file, column);
  if (!exists(values)) {
    throw Error(
        ErrorCode::usage,
        fmt::format("--group-column {}: there is no {} beside it, with a whole number for each sequence", column, values.name),
        file.name);
  }
  const File opened(values.path, File::Mode::read, values.name);
  const NpyHeader header = read_npy_header(opened);
  const bool is_list = header.descr.starts_with("[");  // a structure's fields
  if (!is_list && header.descr.find_first_of("USO") != std::string::npos) {
    throw Error(ErrorCode::bad_data,
                fmt::format("group values are whole numbers here, found descr '{}'; number them, as in np.unique(a, "
                            "return_inverse=True)[1]",
                            header.descr),
                values.name);
  }
  bool big_endian = false;
  const IdType type = integer_type(header, values.name, big_endian);
  const std::int64_t records = static_cast<std::int64_t>(shard.record_begin.size()) - 1;
  if (header.shape.size() != 1 || header.shape[0] != records) {
    throw Error(ErrorCode::bad_data,
                fmt::format("expected one value for each of the {} sequences of {}, found shape ({})", with_commas(records),
                            file.name, fmt::join(header.shape, ", ")),
                values.name);
  }
  GroupNumbering numbering;
  IntegerArray array(opened, header.data_begin, records, type, big_endian);
  shard.groups.of_record.reserve(static_cast<std::size_t>(records));
  for (std::int64_t record = 0; record < records; ++record) {
    const std::int64_t value = array.next();
    if (type == IdType::u64 && value < 0) {
      throw Error(ErrorCode::bad_data, "a value is 2^63 or more", values.name, fmt::format("element {}", with_commas(record)));
    }
    shard.groups.of_record.push_back(numbering.number_of(value));
  }
  shard.groups.keys = numbering.keys();
  shard.files.push_back(values.path);
}

std::vector<GroupKey> merge_groups(const std::vector<GroupColumn*>& columns) {
  std::set<GroupKey> all;
  for (const GroupColumn* column : columns) {
    all.insert(column->keys.begin(), column->keys.end());
    check_number(all.size());
  }
  std::vector<GroupKey> keys(all.begin(), all.end());
  for (GroupColumn* column : columns) {
    std::vector<std::int32_t> places;
    for (const GroupKey& key : column->keys) {
      places.push_back(static_cast<std::int32_t>(std::ranges::lower_bound(keys, key) - keys.begin()));
    }
    for (std::int32_t& number : column->of_record) {
      if (number >= 0) number = places[static_cast<std::size_t>(number)];
    }
    column->keys.clear();
  }
  return keys;
}

}  // namespace shardpack
