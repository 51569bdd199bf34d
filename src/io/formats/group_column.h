// The column whose values rows must not mix: a number for each record, and the values that the numbers stand for.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/formats/format.h"

namespace shardpack {

/// Numbers values in the order in which they come.
class GroupNumbering {
 public:
  /// \throws Error{usage} when there are more than kMaxGroups
  std::int32_t number_of(const GroupKey& key);
  const std::vector<GroupKey>& keys() const { return keys_; }

 private:
  std::map<GroupKey, std::int32_t> numbers_;
  std::vector<GroupKey> keys_;  // by number
};

/// Append the values of a run of records, numbered within it, to a column that `numbering` numbers.
void add_groups(const GroupColumn& run, GroupNumbering& numbering, GroupColumn& column);

/// X.COLUMN.npy beside the data file `file`, X being its name without the last suffix.
InputFile group_file_of(const InputFile& file, const std::string& column);

/// Take the values of `shard`'s records from the group file, and note it among the shard's files. \throws Error{usage} when it is
/// not there, Error{bad_data} when it is no list of one whole number for each record.
void read_group_file(OpenedShard& shard, const InputFile& file, const std::string& column);

/// The values of all shards as one ascending list; the shards' numbers become places in it.
std::vector<GroupKey> merge_groups(const std::vector<GroupColumn*>& columns);

}  // namespace shardpack
