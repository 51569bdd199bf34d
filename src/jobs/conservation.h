// Source + added = packed + removed: what pack proves before it publishes.
#pragma once

#include <string_view>

#include "shardpack/manifest.h"

namespace shardpack {

/// In sequences, tokens, loss tokens and fingerprints. \throws Error{internal}; Error{bad_data}, saying `excuse` unless it is
/// empty, when something else than this run may be to blame: what other runs have read, or said
void check_conservation(const Manifest& manifest, std::string_view excuse);

/// The part of it that speaks of fingerprints. \throws the same
void check_equal_sums(const Fingerprint& before, const Fingerprint& after, std::string_view excuse);

/// The excuse of a run that goes by a saved scan, and so has not read the inputs before.
inline constexpr std::string_view kNotOfTheScan =
    "the packed tokens are not those of the saved scan: an input was changed after it, and its time is the same; scan again";

/// The excuse of a run that goes on with what an interrupted one finished.
inline constexpr std::string_view kInputChangedBack =
    "the finished shards are not of these inputs: one was changed since the interrupted run read it; they are removed, "
    "so run again";

}  // namespace shardpack
