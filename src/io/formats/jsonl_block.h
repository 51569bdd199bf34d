// What the lines of a block of JSON Lines hold, and what is wrong with one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/column_values.h"
#include "io/column_choice.h"
#include "io/formats/line_blocks.h"
#include "io/token_table.h"
#include "shardpack/byte_buffer.h"
#include "shardpack/column.h"
#include "shardpack/error.h"
#include "shardpack/formats.h"

namespace shardpack {

/// What is wrong with a line.
struct LineFault {
  std::string message;
  ErrorCode code = ErrorCode::bad_data;
  bool missing_column = false;      // one that the command line names
  std::string_view else_help = {};  // what helps where an earlier record has the column
  std::int64_t line = 0;            // in its block, from 0
};

/// A block's values of one column: whole numbers or fractions as they are read, or text.
class JsonlColumn {
 public:
  void add(std::int64_t value);
  void add(std::span<const std::int64_t> values);
  /// One fraction, and all whole numbers of the block are kept as fractions.
  void add(double value);
  void add(std::string_view text) { text_.insert(text_.end(), text.begin(), text.end()); }

  /// Value number `i`; none for one that is kept as a fraction.
  std::optional<std::int64_t> whole(std::size_t i) const { return fractional_ ? std::nullopt : std::optional(whole_[i]); }
  void set_whole(std::size_t i, std::int64_t value) { whole_[i] = value; }

  std::size_t size() const { return fractional_ ? fractions_.size() : whole_.size() + text_.size(); }
  void resize(std::size_t size);

  /// Keep of the values from `first` on those whose mask is not 0.
  void keep_masked(std::size_t first, const std::vector<std::uint8_t>& mask);
  /// Those that it leaves out and that take part in the loss by `column`, which these are the values of.
  std::int64_t count_masked_loss(const Column& column, std::size_t first, const std::vector<std::uint8_t>& mask) const;

  /// The values in the narrowest type that packed rows have, for the spool.
  void settle(ColumnKind kind);

  std::vector<std::int64_t> lengths;  // of each record, where the kind is list or text
  ValueType type = ValueType::i64;    // these four: once settled
  ByteBuffer bytes;
  std::int64_t count = 0;
  ColumnFacts facts;  // but for fingerprint and loss

 private:
  std::vector<std::int64_t> whole_;
  std::vector<double> fractions_;
  std::vector<char> text_;
  bool fractional_ = false;
};

/// All that is read from a block.
struct JsonlBlock {
  std::int64_t lines = 0;
  std::vector<std::uint32_t> ids;
  std::vector<std::int64_t> lengths;  // of each record, in ids
  GroupColumn groups;
  std::int64_t null_records = 0;
  RemovedCount padding;
  std::vector<JsonlColumn> columns;  // as those carried
  std::set<std::string, std::less<>> other_columns;
  std::uint32_t id_min = std::numeric_limits<std::uint32_t>::max(), id_max = 0;
  std::optional<LineFault> fault;  // the lines before it are not worth keeping
};

/// Parses the lines of a block, one JSON document a line. `carried`: columns to be read beside the ids. Faults are values.
JsonlBlock parse_jsonl(const LineBlock& block, const ReadOptions& options, const std::vector<Column>& carried);

/// What the first records of a file hold beside ids, mask and group: up to kSettlingRecords of them, or to the first that has a
/// fault. \param records  how many were looked at
ColumnsSeen observe_jsonl(const LineBlock& first, const ReadOptions& options, std::int64_t& records);

}  // namespace shardpack
