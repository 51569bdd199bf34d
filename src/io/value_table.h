// A column's values in one file, in as many stretches as the file keeps them in: what TokenTable is for ids.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/column_values.h"
#include "io/close_reads.h"
#include "io/file.h"
#include "shardpack/column.h"

namespace shardpack {

struct ValueTable {
  /// Values that lie one after the other.
  struct Stretch {
    std::int64_t first = 0;        ///< number of its first value in the table
    std::int64_t begin_bytes = 0;  ///< where that lies in the file
    ValueType type = ValueType::i64;
  };

  std::shared_ptr<const File> file;  ///< the data file, a side file, or a spool
  std::vector<Stretch> stretches;    ///< ascending by `first`, the first at 0
  std::int64_t values = 0;
  bool big_endian = false;

  /// Write the values [first, first + count) as `type` to `out`. \throws Error{internal} when they do not fit, Error{io}.
  /// Thread-safe.
  void read(std::int64_t first, std::int64_t count, ValueType type, std::byte* out) const;
  /// The same for many ranges, ascending as a rule, into `wanted`. What lies close together in the file is read at once.
  void read(std::span<const TableRange> ranges, ValueType type, std::byte* wanted) const;

  /// Calls visit(type, values, count) for the same values as they are stored (f16 as f32), stretch by stretch, in pieces of
  /// bounded size.
  template <class Visit>
  void for_each_run(std::int64_t first, std::int64_t count, Visit visit) const {
    std::vector<std::byte> buffer;
    while (count > 0) {
      const Run run = next_run(first, count);
      load(run, buffer);
      const ValueType type = settle(run, buffer);
      visit(type, buffer.data(), run.count);
      first += run.count;
      count -= run.count;
    }
  }

  /// Append `count` values that lie at `begin_bytes`.
  void append(std::int64_t count, std::int64_t begin_bytes, ValueType type);

 private:
  struct Run {
    std::int64_t begin_bytes = 0, bytes = 0, count = 0;
    ValueType type = ValueType::i64;
    std::int64_t destination = 0;  // where it is wanted, in values
  };
  Run next_run(std::int64_t first, std::int64_t count) const;
  void load(const Run& run, std::vector<std::byte>& stored) const;
  /// Stored values in the machine's order of bytes, f16 as f32. \return their type
  ValueType settle(const Run& run, std::vector<std::byte>& stored) const;
};

/// A column of one source file.
struct ColumnTable {
  Column column;                     ///< its type is settled when all files are known
  ValueTable values;                 ///< token: at the tokens' numbers; sequence: at the records'; list, text: one after another
  std::vector<std::int64_t> begin;   ///< list, text: records + 1 entries into the values; else empty
  std::optional<ColumnFacts> facts;  ///< set by formats that had to decode every value; the scan pass reads the others itself
};

}  // namespace shardpack
