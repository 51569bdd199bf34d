// Rows without tokens: is it true where their segments' tokens lie in the sources' files, and what is there?
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "jobs/verify_fingerprint.h"
#include "jobs/verify_rows.h"
#include "shardpack/manifest.h"
#include "shardpack/sequence_source.h"

namespace shardpack {

/// What is wrong with the seq_begin of a piece, which comes from the file `from`; "" for nothing. \param source  the sources read
/// again, which tell where it lies; may be null
std::string begin_fault(std::int64_t begin, const PlacedPiece& piece, const ManifestSource& from, const SequenceSource* source);

/// Reads the pieces' tokens in the sources; their ids and fingerprint go into `facts`. \throws Error{io}, Error{bad_data}
void read_in_sources(std::span<const PlacedPiece> pieces, const SequenceSource& source, const FingerprintRecount& recount,
                     RowFacts& facts);

}  // namespace shardpack
