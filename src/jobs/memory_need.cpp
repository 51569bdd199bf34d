#include "jobs/memory_need.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

/// The program, its libraries and their buffers; fingerprint keys (16 MiB a column at most); what no one counts.
constexpr std::int64_t kFixedBytes = std::int64_t{32} << 20;

std::int64_t plan_bytes(const PackingPlan& plan) {
  return static_cast<std::int64_t>(plan.lengths.size() * sizeof(Length) +
                                   (plan.begin.size() + plan.count.size()) * sizeof(std::int64_t));
}

std::int64_t plans_bytes(const std::vector<Partition>& partitions) {
  std::int64_t bytes = 0;
  for (const Partition& partition : partitions) {
    bytes += plan_bytes(partition.plan);
    for (const GroupPlan& group : partition.groups) bytes += plan_bytes(group.plan);
  }
  return bytes;
}

[[noreturn]] void refuse(std::int64_t needed, const RunContext& context, std::string_view what) {
  constexpr std::int64_t kMega = std::int64_t{1} << 20;
  throw Error(ErrorCode::limit, fmt::format("--memory {} is too little: {} need --memory {}M; or smaller partitions "
                                            "(--partition-tokens), which decide the bytes",
                                            short_bytes(context.memory_limit), what, (needed + kMega - 1) / kMega));
}

/// In flight at once, at the least: one in work, one being written.
std::int64_t least_block_bytes(const RewriteSettings& settings) { return 2 * settings.block_bytes(); }

}  // namespace

std::int64_t index_bytes(const SequenceIndex& index) {
  const std::int64_t width = 8 + (index.has_ends() ? 1 : 0) + (index.grouped() ? 4 : 0) + (index.has_loss_places() ? 4 : 0);
  return index.sequences() * width;
}

std::int64_t partition_bytes(std::int64_t items, std::int64_t rows, const PlanningOptions& planning, bool grouped) {
  // The items; where each is in its class and in its row; and a list of them for each way in which they are taken apart.
  std::int64_t item = static_cast<std::int64_t>(sizeof(Item)) + 3 * 4;
  if (planning.policy.keep_together > 1) item += static_cast<std::int64_t>(sizeof(Item));
  if (grouped) item += static_cast<std::int64_t>(sizeof(Item)) + 8;
  if (planning.balance_attention) item += 4 * 8;
  std::int64_t row = 2 * 8 + 2 * 4;  // where it and its items begin, its strategy, its place in the order
  std::int64_t counts = 0;
  if (planning.assign.order == RowOrder::windowed) {
    item += 4;     // places that wait for what is left
    row += 2 * 4;  // its window, and its place among that one's rows
    const Length row_tokens = planning.policy.row_tokens;
    const auto most_lengths =
        static_cast<std::int64_t>(std::sqrt(2.0 * static_cast<double>(rows) * row_tokens));  // 1 + 2 + 3 ...
    counts = std::min<std::int64_t>({items, row_tokens, most_lengths}) * window_count(rows, row_tokens) * 4;
  }
  return items * item + rows * row + counts;
}

void check_memory(const SequenceIndex& index, const std::vector<Partition>& partitions, const PlanningOptions& planning,
                  const RunContext& context) {
  if (context.memory_limit == 0) return;
  std::int64_t largest = 0;
  for (const Partition& partition : partitions) largest = std::max(largest, partition.sequences.count());
  const std::int64_t needed = kFixedBytes + index_bytes(index) + partition_bytes(largest, 0, planning, index.grouped());
  if (needed > context.memory_limit) {
    refuse(needed, context,
           fmt::format("lengths of {} sequences, and partitions of {},", with_commas(index.sequences()), with_commas(largest)));
  }
}

RunContext with_memory_left(const SequenceIndex& index, const std::vector<Partition>& partitions, const PlanningOptions& planning,
                            const RewriteSettings& settings, const RunContext& context) {
  RunContext writing = context;
  if (context.memory_limit == 0) return writing;
  std::int64_t largest = 0;
  for (const Partition& partition : partitions) {
    const PlanStats plan = stats(partition.plan);
    largest = std::max(largest, partition_bytes(plan.segments, plan.rows, planning, index.grouped()));
  }
  const std::int64_t held = kFixedBytes + index_bytes(index) + plans_bytes(partitions) + largest;
  const std::int64_t needed = held + least_block_bytes(settings);
  if (needed > context.memory_limit) refuse(needed, context, "lengths, plans, the largest partition and two blocks of rows");
  writing.memory_bytes = std::min(context.memory_bytes, context.memory_limit - held);
  return writing;
}

}  // namespace shardpack
