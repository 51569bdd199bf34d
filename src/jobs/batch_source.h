// What is to be batched, from any input: lengths of sequences, or rows of a packed dataset with the cost of their segments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/source.h"
#include "shardpack/batch_plan.h"
#include "shardpack/formats.h"
#include "shardpack/manifest.h"
#include "shardpack/run_context.h"

namespace shardpack {

/// How an input is to be opened.
struct BatchNeeds {
  LossPart loss_part{};        ///< of a sequence: the part whose loss tokens are counted
  bool tokens = false;         ///< shards are wanted: tokens, not lengths or rows
  bool random_access = false;  ///< tokens will be read again
};

struct BatchSource {
  std::vector<std::int64_t> lengths;  ///< of every sequence (the empty ones too), or the tokens of every row
  std::vector<std::int64_t> costs;    ///< rows: sum of squared segment lengths
  Length row_tokens = 0;              ///< rows: slots; 0 for sequences
  std::int64_t null_records = 0;      ///< of the empty sequences
  std::vector<ManifestSource> sources;
  std::optional<std::string> manifest_hash;  ///< rows: of the packed dataset's manifest.json
  std::string loss_column;                   ///< "" where no column tells which tokens take part in the loss
  std::vector<std::int64_t> loss_tokens;     ///< of every sequence (the part asked for) or row, where a column tells them
  ScannedSource shards;                      ///< where the input is shards: what is in them

  bool rows() const { return row_tokens > 0; }
};

/// The part of a sequence that a batch takes under `policy`.
LossPart batched_part(const LengthPolicy& policy);

/// \throws Error{usage} where tokens are wanted and there are none, what open_source(), read_lengths() and the packed dataset's
/// readers throw
BatchSource read_batch_source(const std::vector<std::string>& inputs, const ReadOptions& read, const BatchNeeds& needs,
                              const RunContext& context);

}  // namespace shardpack
