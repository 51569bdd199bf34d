// The last rows of a dataset whose row count must be a multiple (of world x accumulation x micro-batch): repeated, fill or
// dropped.
#pragma once

#include <cstdint>
#include <vector>

#include "jobs/partitions.h"
#include "shardpack/assignment.h"
#include "shardpack/jobs.h"

namespace shardpack {

struct TailRows {
  std::int64_t extra = 0;    ///< repeated or fill rows to add
  std::int64_t dropped = 0;  ///< planned rows to leave out: the last ones of the last partitions (Partition::dropped_rows)
};

/// What to do about the `rows` planned rows.
TailRows plan_tail(std::vector<Partition>& partitions, std::int64_t rows, const PackOptions& options);

/// What rows that are left out held.
struct DroppedRows {
  std::vector<RemovedRange> ranges;  ///< in input order
  std::int64_t sequences = 0;        ///< without a segment left in the partition
  std::int64_t segments = 0, source_tokens = 0, added_eos = 0, added_bos = 0;
};

/// Leave out all rows but the first `kept`.
void keep_first_rows(Assignment& rows, std::int64_t kept);

/// Take the partition's last dropped_rows rows out of `rows`, and derive its plans again from what is left.
DroppedRows drop_last_rows(OrderedRows& rows, const SequenceIndex& index, Partition& partition);

/// Copy rows to `head` until it has `wanted` of them: called partition by partition, it keeps the first rows of the dataset.
void keep_head(OrderedRows& head, const OrderedRows& rows, std::int64_t wanted);

/// The extra rows: the head over and over, or rows without a segment.
OrderedRows tail_rows(const OrderedRows& head, std::int64_t extra, Tail tail);

/// Distinct sequences with a segment in `rows`, and tokens in it.
RemovedCount count_contents(const OrderedRows& rows);

}  // namespace shardpack
