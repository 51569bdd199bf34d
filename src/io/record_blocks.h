// Runs of records that a worker encodes at once, cut by the records alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "io/record_spool.h"

namespace shardpack {

struct RecordBlock {
  std::int64_t first = 0, last = 0;  ///< records [first, last) of the spool
};

/// Cuts [first, last) into blocks of at most 2^14 records and, where there is more than one, 2^18 tokens.
class RecordBlocks {
 public:
  RecordBlocks(const RecordSpool& spool, std::int64_t first, std::int64_t last) : spool_(spool), next_(first), last_(last) {}

  std::optional<RecordBlock> next() {
    if (next_ == last_) return std::nullopt;
    RecordBlock block{next_, next_ + 1};
    const std::int64_t begin = spool_.begin[static_cast<std::size_t>(next_)];
    while (block.last < last_ && block.last - block.first < kRecords &&
           spool_.begin[static_cast<std::size_t>(block.last) + 1] - begin <= kTokens) {
      ++block.last;
    }
    next_ = block.last;
    return block;
  }

 private:
  static constexpr std::int64_t kTokens = std::int64_t{1} << 18;
  static constexpr std::int64_t kRecords = std::int64_t{1} << 14;

  const RecordSpool& spool_;
  std::int64_t next_, last_;
};

}  // namespace shardpack
