// sweep: what if? Packers, row lengths, segment limits and over-long policies, each with each, planned from one reading of the
// lengths.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardpack/bounds.h"
#include "shardpack/formats.h"
#include "shardpack/item.h"
#include "shardpack/length_histogram.h"
#include "shardpack/packer.h"
#include "shardpack/run_context.h"

namespace shardpack {

/// Packers in input order need one; a histogram has none, so its sequences are put into a seeded one, and of more than this many
/// a sample is taken, evenly over the lengths.
inline constexpr std::int64_t kOrderedSequences = std::int64_t{1} << 18;

struct SweepOptions {
  std::vector<Length> row_tokens;  ///< slots in a row
  std::vector<Overlong> overlong;  ///< empty = split, or drop where sequences are kept together, which are never cut
  std::vector<std::string> packers{"auto", "lpfhp", "spfhp", "none", "sequential", "concat"};
  std::vector<std::int32_t> max_segments{0};  ///< 0 = no limit (nnlshp: depth 3)
  LengthPolicy policy;                        ///< all but row_tokens and overlong; split_min_tokens counts under split
  PackerOptions packing;                      ///< all but row_tokens and max_segments
  std::uint64_t seed = 0;                     ///< of the order that a histogram's sequences are put into
};

/// Where a packer in input order found it. sampled: the cell's figures are an estimate.
enum class InputOrder : std::uint8_t { not_needed, real, shuffled, sampled };

/// One choice, and what `plan` says of it.
struct SweepCell {
  Length row_tokens = 0;
  Overlong overlong = Overlong::split;
  std::string packer;
  std::int32_t max_segments = 0;

  std::string problem;  ///< why there is no plan, and no figure: over-long sequences under `error`, a contradiction, a limit
  std::string planner;  ///< the packer that made the plan; `auto` chooses one
  std::int32_t segment_limit = 0;          ///< of the plan: a packer may have its own
  std::int64_t sequences = 0, tokens = 0;  ///< in the rows; tokens with what is added
  std::int64_t added_eos = 0, added_bos = 0;
  RemovedCounts removed{};
  std::int64_t touched_sequences = 0, touched_tokens = 0;  ///< cut or dropped for being over-long, or cut at a row's end
  std::int64_t rows = 0, segments = 0, strategies = 0, max_segments_in_row = 0;
  LowerBound bound;
  std::int64_t best_bound = 0;  ///< the best that any plan of the same items, with as many segments or more, proves
  InputOrder order = InputOrder::not_needed;
  double seconds = 0;  ///< planning took

  double efficiency() const;         ///< tokens / slots; 1 for no rows
  std::int64_t lost_tokens() const;  ///< of the source, by any cause but padding
};

struct SweepResult {
  LengthHistogram lengths;         ///< of all sequences
  std::vector<Length> row_tokens;  ///< the choices, each once, in the order given
  std::vector<Overlong> overlong;
  std::vector<std::string> packers;
  std::vector<std::int32_t> max_segments;
  std::vector<OverlongCost> over;   ///< by row length
  std::vector<SweepCell> cells;     ///< by row length, policy, packer, segment limit; the last changes fastest
  std::optional<std::size_t> knee;  ///< find_knee() of the cells

  const SweepCell& cell(std::size_t row_length, std::size_t policy, std::size_t packer, std::size_t limit) const {
    return cells[((row_length * overlong.size() + policy) * packers.size() + packer) * max_segments.size() + limit];
  }
  const OverlongCost& over_of(std::size_t cell) const { return over[cell / (cells.size() / over.size())]; }
};

/// Inputs: one histogram file (CSV, JSON, list, .npy of lengths), or shards. Equal inputs, options and seed give equal cells
/// (but `seconds`), for any number of threads.
/// \throws Error{usage} for an empty list, an unknown packer, and when every choice contradicts itself
SweepResult sweep(const std::vector<std::string>& inputs, const ReadOptions& read, const SweepOptions& options,
                  const RunContext& context);

/// Half a per cent: how far from the best is still as good.
inline constexpr double kKneeTolerance = 0.005;

/// The cell to take. Of the cells with a plan those stay that lose at most kKneeTolerance of the source's tokens more than the
/// best of them, then those that touch at most this share of its sequences more than the best, then those whose efficiency is
/// within it of the best. Of these: the shortest rows, then the lowest segment limit, the fewest lost tokens, the fewest rows;
/// the first of equals.
std::optional<std::size_t> find_knee(std::span<const SweepCell> cells, const LengthHistogram& lengths);

}  // namespace shardpack
