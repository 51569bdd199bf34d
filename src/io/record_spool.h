// Records of a packed dataset on their way back: in source order, in temporary files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/file.h"
#include "shardpack/column.h"
#include "shardpack/types.h"

namespace shardpack {

/// Some consecutive records with all that belongs to them. Written at any place by any thread, then read.
/// Memory: 8 bytes a record, and 8 more for each column of kind list and text.
struct RecordSpool {
  struct Values {
    Column column;
    File file;                        ///< token: at the tokens' numbers; sequence: at the records'; list, text: one after another
    std::vector<std::int64_t> begin;  ///< list, text: records + 1 entries into the values; else empty
  };

  IdType id_type = IdType::u16;
  File ids;
  std::vector<std::int64_t> begin{0};  ///< tokens; records + 1 entries
  std::vector<Values> columns;

  std::int64_t records() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  /// Where the values of record `record` begin in a column, counted in values.
  std::int64_t value_begin(const Values& values, std::int64_t record) const {
    if (values.column.kind == ColumnKind::sequence) return record;
    return (values.begin.empty() ? begin : values.begin)[static_cast<std::size_t>(record)];
  }
};

}  // namespace shardpack
