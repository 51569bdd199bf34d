// The sources read again, the way the manifest says they were read, and compared with what it recorded of them.
#pragma once

#include <string>
#include <vector>

#include "io/source.h"
#include "jobs/pack_options.h"
#include "jobs/verify_issues.h"
#include "shardpack/jobs.h"
#include "shardpack/manifest.h"

namespace shardpack {

/// \return the options that the sources were read with, of those that a manifest records. \throws Error{bad_data} for a value
/// that is not one of ours
ReadOptions recorded_read_options(const RecordedOptions& options);

/// Were over-long sequences cut off at their start? Then a sequence's only segment need not begin with its first token.
bool truncates_at_start(const Manifest& manifest);

/// Were sequences dropped, one by one, of which no token was left that takes part in the loss? Then the side that was kept of
/// others.
LossSide recorded_loss_side(const Manifest& manifest);

/// Compare files, totals and fingerprint. A source that cannot be read as it was is an issue; one that is not there is an Error.
/// \return the sources, none when they could not be read or have other records than the manifest says
std::optional<ScannedSource> check_against(const Manifest& manifest, const std::vector<std::string>& inputs,
                                           const RunContext& context, IssueList& issues);

}  // namespace shardpack
