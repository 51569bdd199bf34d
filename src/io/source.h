// Open shards as one SequenceSource, with everything that the pass over their tokens finds.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "io/column_pass.h"
#include "io/file_stamp.h"
#include "io/formats/format.h"
#include "shardpack/run_context.h"
#include "shardpack/sequence_source.h"

namespace shardpack {

class ShardSource;

struct ScannedSource {
  std::unique_ptr<SequenceSource> source;
  ShardSource* passing = nullptr;  ///< the source, where the rest of the pass is left to finish_scan()
  TokenFacts totals;               ///< the fingerprint takes the columns in; hash stays empty: each file has its own
  std::int64_t loss_tokens = 0;
  std::vector<std::int64_t> loss_counts;  ///< by sequence: ScanNeeds::loss_counts
  RemovedCount padding;
  std::int64_t null_records = 0;
  std::vector<std::string> not_carried;        ///< sorted, each once
  std::vector<std::vector<FileStamp>> stamps;  ///< by file: the data file and its sidecars; none of standard input
};

struct ScanNeeds {
  bool random_access = true;              ///< tokens will be read again
  bool columns = true;                    ///< carry columns along; without, lengths and ids are all that is wanted
  LossSide loss_places = LossSide::none;  ///< note where each sequence's loss begins, or ends (--drop-unlabeled)
  bool ends = false;  ///< note which sequences begin with BOS and end with EOS (options.bos_id, options.eos_id)
  /// Count the loss tokens of each sequence, where a column tells them and its values can be read again: with random_access they
  /// always can.
  std::optional<LossPart> loss_counts{};
  /// Called with the index, on a thread of its own, while tokens are read; not where the index needs the tokens (ends, loss
  /// places) or has groups, and not with one thread. It keeps its own failures, and stops soon when it is asked to. \return did
  /// all go well?
  std::function<bool(const SequenceIndex&, const std::stop_token&)> meanwhile{};
  std::string_view meanwhile_stage{};  ///< what the progress calls it from the end of the reading on
  /// When `meanwhile` has gone well, leave the rest of the pass to whoever reads blocks of tokens, in the order of the input as a
  /// rule: finish_scan() is called after them. Not where columns are carried along.
  bool in_passing = false;
};

/// List, open and scan the inputs in one parallel pass: boundaries, id range, fingerprint, file hashes.
/// Memory: 8 bytes a record (9 with `ends`) and the blocks in flight.
ScannedSource open_source(const std::vector<std::string>& inputs, const ReadOptions& options, const ScanNeeds& needs,
                          const RunContext& context);

/// The pass to its end: until then the totals, and the hashes in the index, are not known. Does nothing where it is over.
/// \throws as open_source(), for what only the pass can see
void finish_scan(ScannedSource& scanned, const RunContext& context);

}  // namespace shardpack
