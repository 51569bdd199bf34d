// The one pass over the bytes of opened shards: id range, fingerprint, file hashes, and which sequences begin and end with BOS
// and EOS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/file_stamp.h"
#include "io/formats/format.h"
#include "io/token_table.h"
#include "shardpack/run_context.h"
#include "shardpack/sequence_index.h"

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

/// Reads every file that has no facts yet once, in order of place. It can be left and taken up again. `ends` is for jobs that add
/// BOS or EOS where they are missing. Memory: pieces of 1 MiB in flight. For one caller at a time.
class ScanPass {
 public:
  /// \param files  outlive it and stay where they are
  ScanPass(std::span<const OpenedFile> files, const std::optional<EndIds>& ends);
  ~ScanPass();
  ScanPass(ScanPass&&) noexcept;

  /// Go on in parallel, to the end or until `enough`, asked between pieces, says so. Advances the progress by the bytes of the
  /// data files. \throws Error{bad_data} for a negative id or one above 2^32 - 1; there is no going on then.
  void run(const RunContext& context, const std::function<bool()>& enough = {});

  /// Tokens of a file that lie together: its token `first` and those that follow, as they are stored.
  struct Tokens {
    std::size_t file_number = 0;
    std::int64_t first = 0;
    std::span<const std::byte> stored;
  };
  /// Go on in the caller's thread until all before token number `end`, of all files, are read; `take` is called with them, in
  /// order and for the time of the call. \throws as run()
  void read_on(std::int64_t end, const std::function<void(const Tokens&)>& take);

  std::int64_t tokens_before(std::size_t file_number) const;  ///< of all files before it
  bool complete() const;
  ScanPassResult take_result();  ///< once, of a complete pass

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Hashes and ends into the index of the same files. \return the facts of all of them together, without a hash
TokenFacts settle(ScanPassResult&& found, SequenceIndex& index);

/// Of records whose ids are at hand, one record after the other; `lengths` in tokens. Without a hash.
TokenFacts facts_of(SequenceId first_record, std::span<const std::int64_t> lengths, std::span<const std::uint32_t> ids);

/// The facts of two disjoint sets of tokens together.
void merge(TokenFacts& total, const TokenFacts& part);

}  // namespace shardpack
