// The rows that a random-LTD run reads, from where they were planned: a packed dataset, or a batch plan.
#pragma once

#include <string>
#include <vector>

#include "shardpack/ltd_manifest.h"
#include "shardpack/run_context.h"

namespace shardpack {

struct LtdRows {
  LtdRowTable table;
  LtdDataset dataset;
};

/// Lengths only: no token is read. \param paths  a packed dataset's folder; or a batch plan's, followed (or preceded) by that of
/// the packed dataset whose rows it batches
/// \throws what PackedDataset and BatchFolder throw; Error{bad_data} for segments or batches that do not fit, or another dataset;
/// Error{usage} for a missing dataset and for one too many
LtdRows read_ltd_rows(const std::vector<std::string>& paths, const RunContext& context);

}  // namespace shardpack
