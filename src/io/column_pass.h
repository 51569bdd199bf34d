// The pass over the columns of opened shards: ranges, fingerprint, loss tokens; and what the columns of all files are together.
#pragma once

#include <vector>

#include "core/fingerprint_keys.h"
#include "io/scan_pass.h"
#include "shardpack/column.h"
#include "shardpack/run_context.h"

namespace shardpack {

/// For each column, over all files. Tables that have their facts already are not read.
/// \throws Error{bad_data} naming the file when a column is in some files only, or of another kind there.
std::vector<ColumnFacts> run_column_pass(const std::vector<OpenedFile>& files, const RunContext& context);

/// The dataset's columns with the types that hold all their values.
std::vector<Column> columns_of(const std::vector<OpenedFile>& files, const std::vector<ColumnFacts>& facts);

/// A run of values of one record: range, loss tokens and fingerprint. Text takes `values` as its bytes, and comes whole.
void tally(const Column& column, const FingerprintKeys& keys, SequenceId record, std::int64_t position, ValueType type,
           const std::byte* values, std::int64_t count, ColumnFacts& facts);

}  // namespace shardpack
