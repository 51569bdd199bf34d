// Records whose arrays had to be decoded into memory: their ids go to a spool, from which they are read at random.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/arrow/records.h"
#include "io/spool.h"

namespace shardpack {

struct DecodedRun {
  RecordRun run;
  std::vector<std::uint32_t> ids;  ///< of the run's records, one after the other
  TokenFacts facts;
};

/// Rows [first, first + count) of a record batch.
struct RowStretch {
  const RecordColumns* columns;
  std::int64_t first = 0, count = 0;
};

/// The records of all these rows, the first of them number `first_record` of the dataset. Columns have the same types in all.
DecodedRun decode_records(std::span<const RowStretch> stretches, const RecordFields& fields, const ReadOptions& options,
                          SequenceId first_record);

/// Decoded ids of a file and what is known of them, from front to back.
class SpooledIds {
 public:
  explicit SpooledIds(const OpenContext& context);

  void add(std::span<const std::uint32_t> ids, const TokenFacts& facts);
  /// Give table and facts to `shard`. `hash`: of the data file and its sidecars
  void finish(OpenedShard& shard, std::string hash);

 private:
  TokenTable table_;
  Spool spool_;
  TokenFacts facts_;
};

/// Puts the decoded runs of a file together, in order.
class DecodedCollector {
 public:
  DecodedCollector(const InputFile& file, const ReadOptions& options, const RecordFields& fields, const OpenContext& context);

  void add(const DecodedRun& decoded);
  OpenedShard finish(std::string hash);

 private:
  RecordCollector records_;
  SpooledIds ids_;
};

}  // namespace shardpack
