// Smart batching: which sequences make each batch, and the length that they are padded to, for trainers that want one sequence a
// row. Every strategy is one chain: order key -> contiguous cut -> rank groups. A plan is a pure function of (lengths, options,
// seed).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardpack/item.h"
#include "shardpack/length_histogram.h"
#include "shardpack/types.h"

namespace shardpack {

// ---- strategies -------------------------------------------------------------------------------------------------------------
enum class BatchKind : std::uint8_t { fixed, dynamic, sorted, gist, mega, pool, buckets, tokens, quad };

struct BatchStrategy {
  BatchKind kind = BatchKind::sorted;
  std::int64_t amount = 0;           ///< M of mega and pool (batches), T of tokens and quad (tokens), N of buckets:auto:N
  std::int64_t quadratic = 0;        ///< Q of quad: a sequence of d tokens costs d + d * d / Q
  std::vector<Length> boundaries{};  ///< of buckets, ascending: bucket i holds lengths in [boundaries[i - 1], boundaries[i])

  /// The size of a batch follows from a budget, not from --batch-size.
  bool has_budget() const { return kind == BatchKind::tokens || kind == BatchKind::quad; }
};

struct BatchKindInfo {
  BatchKind kind;
  std::string_view name;
  std::string_view parameters;  ///< as typed after the name: ":M"
  std::string_view summary;     ///< one line, for help
};
std::span<const BatchKindInfo> batch_kinds();  ///< index = BatchKind

/// "sorted", "mega:50", "buckets:64,128", "buckets:auto:8", "tokens:8192", "quad:8192:512".
/// \throws Error{usage} saying what is wrong, with the nearest name
BatchStrategy parse_batch_strategy(std::string_view text);
std::string to_text(const BatchStrategy& strategy);

// ---- options ----------------------------------------------------------------------------------------------------------------
/// The length that a batch is padded to: its longest sequence, rounded up.
struct PadRule {
  Length multiple = 1;
  std::vector<Length> shapes{};  ///< ascending; when not empty, the smallest that is long enough

  /// \throws Error{limit} when nothing is long enough
  Length padded(std::int64_t longest) const;
};

/// What happens to the last step, when there are too few sequences to fill it on every rank.
/// short_step: spread over all ranks as evenly as can be, repeats of weight 0 where a rank would have nothing; repeat: filled
/// with sequences that count once more; drop: left out.
enum class BatchTail : std::uint8_t { short_step, repeat, drop };

struct BatchOptions {
  BatchStrategy strategy;
  std::int64_t batch_size = 0;     ///< sequences; 0 with a budget
  std::int64_t max_batch = 0;      ///< at most so many sequences under a budget; 0 = no limit
  std::int64_t size_multiple = 1;  ///< batches that are larger hold a multiple of this many sequences
  PadRule pad;
  Length fixed_length = 0;  ///< what `fixed` pads to; 0 = the longest sequence
  std::int64_t world = 1, accumulation = 1;
  BatchTail tail = BatchTail::short_step;
  bool oom_first = false;  ///< the costliest group opens the epoch, so that memory runs out at once or never
  std::uint64_t seed = 0;

  std::int64_t group_size() const { return world * accumulation; }  ///< batches an optimizer step takes over all ranks
  /// At most so many sequences in a batch that is padded to `padded` tokens.
  std::int64_t most(Length padded) const;
};

/// \throws Error{usage} for options that contradict each other
void check_batch_options(const BatchOptions& options);

// ---- plans ------------------------------------------------------------------------------------------------------------------
/// What is batched: sequences, or rows of a packed dataset.
struct BatchItems {
  std::vector<Length> lengths;      ///< tokens that padding has to cover, at least 1
  std::vector<std::int64_t> costs;  ///< packed rows: sum of squared segment lengths; empty: cost follows from the padded length
  std::vector<Length> tokens;       ///< packed rows: tokens of the segments; empty: equal to the lengths

  std::size_t size() const { return lengths.size(); }
  Length real_tokens(std::size_t item) const { return tokens.empty() ? lengths[item] : tokens[item]; }
};

/// Sequences after the length policy: which are batched, and how much of each.
struct BatchSelection {
  BatchItems items;
  std::vector<std::int64_t> sequences;  ///< ordinal of each item
  RemovedCounts removed{};
  std::int64_t tokens = 0;                  ///< of all items
  std::vector<std::int64_t> loss_tokens{};  ///< of each item; empty where no column tells them
  bool cut = false;                         ///< some item is shorter than its sequence
};

/// Lengths in tokens, the empty ones included. `policy`: row_tokens is the longest that a batch takes (0 = no limit); over-long
/// sequences are refused, truncated or dropped; those under min_tokens are dropped.
/// \throws Error{bad_data} for over-long sequences under Overlong::error, saying what each other choice would cost
BatchSelection select_batch_items(std::span<const std::int64_t> lengths, const LengthPolicy& policy);

/// The same rules on a histogram.
struct BatchLengths {
  LengthHistogram lengths;
  RemovedCounts removed{};
};
BatchLengths select_batch_lengths(const LengthHistogram& lengths, const LengthPolicy& policy);

struct BatchTotals {
  std::int64_t items = 0, tokens = 0;
};

/// The batches of one epoch in the order of training: batch (step x accumulation + micro) x world + rank.
struct BatchEpoch {
  std::vector<std::int64_t> begin{0};  ///< CSR, batches + 1
  std::vector<std::uint32_t> items;    ///< indices into BatchItems
  std::vector<Length> pad_length;      ///< one a batch
  std::vector<float> weights;          ///< one an item; empty when all are 1
  BatchTotals repeated, dropped;       ///< by the tail

  std::int64_t batches() const { return static_cast<std::int64_t>(pad_length.size()); }
  std::int64_t size(std::int64_t b) const { return begin[static_cast<std::size_t>(b) + 1] - begin[static_cast<std::size_t>(b)]; }
};

/// \throws Error{bad_data} naming the first longest item when it alone is over the budget, Error{limit} when it is over every
/// shape. \param sequences  what items are called, one each; empty: by their place
void check_batch_items(const BatchItems& items, const BatchOptions& options, std::span<const std::int64_t> sequences = {});

/// Epoch number `epoch`: ties, cuts and the order of groups are drawn anew for each, the number of batches is always the same.
/// \throws what check_batch_options() and check_batch_items() throw
/// Pure; O(items) but for gist, which is O(items log items). At most 2^32 - 1 items.
BatchEpoch plan_batches(const BatchItems& items, const BatchOptions& options, std::int64_t epoch);

/// Boundaries that cut the lengths into at most `buckets` buckets of equal total tokens.
std::vector<Length> equal_token_boundaries(std::span<const Length> lengths, std::int64_t buckets);

// ---- figures ----------------------------------------------------------------------------------------------------------------
struct BatchStats {
  std::int64_t batches = 0, items = 0;
  std::int64_t real_tokens = 0;    ///< of items that count (weight above 0)
  std::int64_t padded_tokens = 0;  ///< sum of size x padded length: what the trainer computes
  double padded_squares = 0;       ///< sum of size x padded length squared
  double real_squares = 0;         ///< sum of squared lengths, of segments where rows are packed: attention that is not padding
  std::int64_t shapes = 0;         ///< different (size, padded length) pairs
  std::int64_t largest_batch = 0;  ///< tokens of the largest batch, padded
  /// Ranks wait for the slowest: sum over steps of the costliest rank, divided by the sum of the mean rank. As planned, and as it
  /// would be if the same batches were shuffled freely.
  double imbalance = 1, free_imbalance = 1;
  double length_correlation = 0;  ///< of the padded lengths of consecutive steps; 0 when they do not vary

  double padding() const;  ///< share of the padded tokens that are padding
};
BatchStats batch_stats(const BatchItems& items, const BatchOptions& options, const BatchEpoch& epoch);

/// Of the pairs that share a batch in `first`, the share that shares one in `second` too. Pairs are sampled: the first two items
/// of each batch after a seeded draw.
double repeat_share(const BatchEpoch& first, const BatchEpoch& second, std::size_t items);

}  // namespace shardpack
