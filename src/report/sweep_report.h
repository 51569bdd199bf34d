// A sweep as a table that fits a screen, and as every figure: a line a cell, CSV, JSON.
#pragma once

#include <string>

#include "shardpack/sweep.h"

namespace shardpack {

/// Lines of at most 100 columns. \param details  a line a cell below, of at most 120
std::string sweep_to_text(const SweepResult& result, bool details);
std::string sweep_to_csv(const SweepResult& result);
/// \param seconds  that the job took
std::string sweep_to_json(const SweepResult& result, double seconds);

/// What a file begins with that sweep_to_csv() and sweep_to_json() made.
inline constexpr std::string_view kSweepCsvSignature = "row_tokens,overlong,asked_packer";
inline constexpr std::string_view kSweepJsonSignature = "{\n  \"schema\": 1,\n  \"command\": \"sweep\"";

}  // namespace shardpack
