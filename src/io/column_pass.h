// The pass over the columns of opened shards: ranges, fingerprint, loss tokens; and what the columns of all files are together.
#pragma once

#include <cstdint>
#include <vector>

#include "core/fingerprint_keys.h"
#include "io/scan_pass.h"
#include "shardpack/column.h"
#include "shardpack/run_context.h"
#include "shardpack/sequence_index.h"

namespace shardpack {

/// The part of a sequence whose loss tokens are counted: all, or so many tokens at one side of it.
struct LossPart {
  std::int64_t tokens = 0;  ///< 0 = all
  LossSide side = LossSide::start;
};

/// For each column, over all files. Tables that have their facts already are not read.
/// \throws Error{bad_data} naming the file when a column is in some files only, or of another kind there.
std::vector<ColumnFacts> run_column_pass(const std::vector<OpenedFile>& files, const RunContext& context);

/// The dataset's columns with the types that hold all their values.
std::vector<Column> columns_of(const std::vector<OpenedFile>& files, const std::vector<ColumnFacts>& facts);

/// For every sequence the place of its loss (SequenceIndex::loss_place()) seen from `side`, by column number `column`,
/// the loss_column(). Reads it once more. \throws Error{limit} for a place of 2^32 - 1 or more
std::vector<std::uint32_t> loss_places(const std::vector<OpenedFile>& files, std::size_t column, LossSide side,
                                       const RunContext& context);

/// For every sequence the tokens of `part` that take part in the loss, by column number `column`, the loss_column(). Reads it
/// once more. Nothing when the values of some file were decoded and not kept.
std::vector<std::int64_t> loss_counts(const std::vector<OpenedFile>& files, std::size_t column, const LossPart& part,
                                      const RunContext& context);

/// A run of values of one record: range, loss tokens and fingerprint. Text takes `values` as its bytes, and comes whole.
void tally(const Column& column, const FingerprintKeys& keys, SequenceId record, std::int64_t position, ValueType type,
           const std::byte* values, std::int64_t count, ColumnFacts& facts);

}  // namespace shardpack
