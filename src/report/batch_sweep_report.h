// sweep --batching as a table, and as every figure.
#pragma once

#include <string>

#include "shardpack/batch_sweep.h"

namespace shardpack {

std::string batch_sweep_to_text(const BatchSweepResult& result);
std::string batch_sweep_to_csv(const BatchSweepResult& result);
/// \param seconds  that the job took
std::string batch_sweep_to_json(const BatchSweepResult& result, double seconds);

/// What a file begins with that batch_sweep_to_csv() made.
inline constexpr std::string_view kBatchSweepCsvSignature = "strategy,batches,";

}  // namespace shardpack
