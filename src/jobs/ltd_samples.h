// Single kept sets of a run: what --kept-at shows, and the samples in selection.json that a port can be checked against.
#pragma once

#include <vector>

#include "io/ltd_files.h"
#include "shardpack/ltd_manifest.h"

namespace shardpack {

/// \param rows  null = full rows
std::vector<std::uint32_t> kept_of(const LtdSetup& setup, const StepShape& shape, const KeptPlace& place,
                                   const LtdRowTable* rows);

/// Rows of a step's global batch; with a reshaping curriculum the pieces that they are cut into.
std::int64_t rows_in_step(const LtdSchedule& schedule, const StepShape& shape, std::int64_t step, const LtdRowTable* rows);

/// The first and last row of the first and last dropping layer, at the first, middle and last step that drops tokens.
std::vector<KeptSample> kept_samples(const LtdSetup& setup, const std::vector<LtdPlateau>& plateaus, const LtdRowTable* rows);

}  // namespace shardpack
