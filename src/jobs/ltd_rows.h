// The rows that a random-LTD run reads in turn, from where they were planned. A packed dataset is one such place; another plan of
// rows (a batch plan) is one more function that fills the same table, in its own order and with a width for each row.
#pragma once

#include <string>

#include "shardpack/ltd_manifest.h"
#include "shardpack/run_context.h"

namespace shardpack {

struct LtdRows {
  LtdRowTable table;
  LtdDataset dataset;
};

/// Lengths only: no shard's tokens are read. \throws what PackedDataset throws; Error{bad_data} for segments that do not fit
LtdRows read_ltd_rows(const std::string& path, const RunContext& context);

}  // namespace shardpack
