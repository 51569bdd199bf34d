// Which columns of the inputs are carried along, from what the first records show and what --columns says.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardpack/column.h"
#include "shardpack/formats.h"

namespace shardpack {

/// Records on which the kinds of columns are settled; a later one that differs is an error.
inline constexpr std::int64_t kSettlingRecords = 1000;

/// What the first records of a file show of a column.
struct ColumnSeen {
  std::int64_t records = 0;  ///< in which it is there and not null
  bool number = false, text = false, list = false;
  bool other = false;                   ///< something else somewhere: an object, lists in lists, a list of strings
  bool equal_length = true;             ///< as a list: as long as the ids in every record
  std::vector<std::int64_t> lengths{};  ///< as a list of its own length: of each record

  ColumnSeen& operator+=(const ColumnSeen& later);
};
using ColumnsSeen = std::map<std::string, ColumnSeen, std::less<>>;

struct ChosenColumns {
  std::vector<Column> carried;           ///< ascending by name; types are not settled yet
  std::vector<std::string> not_carried;  ///< ascending
};

/// Of a file whose first `records` records hold `seen` (the ids, the mask and the group column are not among them).
/// `name` is the file's, for messages. \throws Error{usage} for a name of --columns that is not there or cannot be carried.
ChosenColumns choose_columns(const ColumnsSeen& seen, std::int64_t records, const ReadOptions& options, const std::string& name);

/// The value of --columns: "aligned" (the default), "all" or "none", or names; names after one of the first two add to it. A name
/// may be followed by its kind and its alignment: "labels:token:minus100". \throws Error{usage}
ColumnChoice parse_column_choice(std::string_view text);

/// Its inverse: the shortest such text.
std::string to_text(const ColumnChoice& choice);

/// Does --columns leave a column of this name out, whatever it holds?
bool is_excluded(const ColumnChoice& choice, std::string_view column);

/// The value of --positions-columns: names, each once. \throws Error{usage}
std::vector<std::string> parse_positions_columns(std::string_view text);

/// What is wrong with a record that has other than one value of `column` for each position.
std::string unequal_lists(std::string_view column, std::int64_t values, std::string_view positions, std::int64_t places);

/// What is wrong with a record that has other than one value of `column` for each token id.
std::string unequal_to_ids(std::string_view column, std::int64_t values, std::int64_t ids);

/// Is it one of those that --columns names?
bool is_named(const ColumnChoice& choice, std::string_view column);

/// Is this the name of a column of positions, or of lists that go with one: one that is named, or BERT's?
bool is_placed_name(std::string_view column, const std::vector<std::string>& positions_columns);

/// Is this the name of a column with a value for each token, whatever its lengths: labels, loss_mask, token_type_ids?
bool is_aligned_name(std::string_view column);

}  // namespace shardpack
