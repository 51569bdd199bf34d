// Source + added = packed + removed: what pack proves before it publishes.
#pragma once

#include "shardpack/manifest.h"

namespace shardpack {

/// In sequences, tokens, loss tokens and fingerprints. \param resumed  some rows were written by an interrupted run
/// \throws Error{internal}; Error{bad_data} when tokens of an interrupted run are other ones, and may have been read while an
/// input was another
void check_conservation(const Manifest& manifest, bool resumed);

/// The part of it that speaks of fingerprints. \throws the same
void check_equal_sums(const Fingerprint& before, const Fingerprint& after, bool resumed);

}  // namespace shardpack
