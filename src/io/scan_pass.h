// The one pass over the bytes of opened shards: id range, fingerprint, file hashes, and which sequences begin and end with BOS
// and EOS.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/file_stamp.h"
#include "io/formats/format.h"
#include "io/token_table.h"
#include "shardpack/run_context.h"

namespace shardpack {

/// A source file after opening. Its place in a list of them is its file number.
struct OpenedFile {
  InputFile input;
  std::string format;
  OpenedShard shard;
  std::vector<FileStamp> stamps;  ///< of shard.files; empty for standard input
  SequenceId first_sequence = 0;
  const std::vector<std::int64_t>* in_index = nullptr;  ///< where shard.record_begin has gone, once there is an index

  const std::vector<std::int64_t>& record_begin() const { return in_index != nullptr ? *in_index : shard.record_begin; }
  std::int64_t records() const { return static_cast<std::int64_t>(record_begin().size()) - 1; }
};

/// Ids to look for at the ends of sequences.
struct EndIds {
  std::optional<std::int64_t> bos, eos;
};

struct ScanPassResult {
  std::vector<TokenFacts> facts;   ///< by file; those that the shard had already are kept
  std::vector<std::uint8_t> ends;  ///< by sequence, as SequenceIndex::ends(); empty unless asked for
};

/// Read every file that has no facts yet once, in order of place and in parallel. `ends` is for jobs that add BOS or EOS where
/// they are missing. Memory: pieces of 1 MiB in flight. Advances the progress by the bytes of the data files.
/// \throws Error{bad_data} for a negative id or one above 2^32 - 1.
ScanPassResult run_scan_pass(const std::vector<OpenedFile>& files, const std::optional<EndIds>& ends, const RunContext& context);

/// Of records whose ids are at hand, one record after the other; `lengths` in tokens. Without a hash.
TokenFacts facts_of(SequenceId first_record, std::span<const std::int64_t> lengths, std::span<const std::uint32_t> ids);

/// The facts of two disjoint sets of tokens together.
void merge(TokenFacts& total, const TokenFacts& part);

}  // namespace shardpack
