// The walk that the histogram packers share: lengths from longest to shortest, each count of equal items put into open
// strategies.
//
// A packer is two choices: which open strategy takes the next items (its `OpenRows`), and how many copies of a length enter a row
// at once. Since all items of a length are equal and rows of a strategy are too, a step moves whole counts, and a length splits
// at most two strategies. So time depends on distinct lengths and strategies, never on the number of items.
//
// Strategies with a thousand segments are ordinary at long rows. While they are open they share what they have in common: each is
// a leaf of a tree whose nodes hold some copies of one length, so that to extend or to split one costs one node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "shardpack/error.h"
#include "shardpack/packer.h"

namespace shardpack {

/// Equal rows that still have room.
struct OpenStrategy {
  std::int64_t rows = 0;
  std::int64_t first_row = 0;  ///< ordinal of the first of them in the order of opening; they are consecutive
  Length free = 0;             ///< slots
  std::int32_t segments = 0;
  std::int64_t node = -1;  ///< in the StrategyTree; -1 = empty
};

class StrategyTree {
 public:
  /// \return the node of `parent` with `copies` more of `length`. `parent` itself is changed where it can be: when no other
  /// strategy shares it (`own`) and it holds that length already.
  std::int64_t extend(std::int64_t parent, bool own, Length length, std::int32_t copies) {
    if (own && parent >= 0 && nodes_[static_cast<std::size_t>(parent)].length == length) {
      nodes_[static_cast<std::size_t>(parent)].copies += copies;
      return parent;
    }
    nodes_.push_back({parent, length, copies});
    return static_cast<std::int64_t>(nodes_.size()) - 1;
  }
  /// A node for a strategy that did not grow in this walk. Nothing is ever added to it in place.
  std::int64_t root(std::span<const Length> lengths) {
    std::int64_t node = -1;
    for (const Length length : lengths) node = extend(node, false, length, 1);
    return extend(node, false, 0, 0);
  }
  /// Append the strategy that ends in `node` to `plan`.
  void write(std::int64_t node, std::int64_t rows, PackingPlan& plan) {
    lengths_.clear();
    for (; node >= 0; node = nodes_[static_cast<std::size_t>(node)].parent) {
      const Node& at = nodes_[static_cast<std::size_t>(node)];
      lengths_.insert(lengths_.end(), static_cast<std::size_t>(at.copies), at.length);
    }
    // Lengths were added longest first, but for those of a root.
    if (!std::is_sorted(lengths_.begin(), lengths_.end())) std::sort(lengths_.begin(), lengths_.end());
    std::reverse(lengths_.begin(), lengths_.end());
    plan.add(lengths_, rows);
  }

 private:
  struct Node {
    std::int64_t parent;
    Length length;
    std::int32_t copies;
  };
  std::vector<Node> nodes_;
  std::vector<Length> lengths_;
};

enum class Copies : std::uint8_t {
  one,      ///< an item a row and step; what fits no open row opens a row of its own
  fitting,  ///< as many as fit the row, fewer when too few are left
};

/// \tparam OpenRows  void put(const OpenStrategy&); std::optional<OpenStrategy> take(Length length): one with room for `length`
///   slots, removed, or nothing. Lengths never grow from call to call. The order in which it chooses must not depend on anything
///   but the calls.
/// \param open, tree  may hold strategies with room to start from, made by StrategyTree::root(); the plan has them too
template <class OpenRows>
PackingPlan fill_decreasing(const LengthHistogram& items, const PackerOptions& options, std::stop_token stop, Copies copies,
                            OpenRows open, StrategyTree tree = {}) {
  PackingPlan plan;
  const std::vector<LengthCount> counts = items.counts();
  const std::int32_t max_segments = options.max_segments > 0 ? options.max_segments : std::numeric_limits<std::int32_t>::max();
  std::int64_t rows_opened = 0;

  for (auto entry = counts.rbegin(); entry != counts.rend(); ++entry) {
    if (stop.stop_requested()) throw Error(ErrorCode::cancelled, "planning was stopped");
    const auto length = static_cast<Length>(entry->length);
    for (std::int64_t left = entry->count; left > 0;) {
      const std::optional<OpenStrategy> taken = open.take(length);
      OpenStrategy from = taken ? *taken : OpenStrategy{left, rows_opened, options.row_tokens, 0, -1};

      const std::int64_t fitting = std::min(from.free / length, max_segments - from.segments);
      const auto each = static_cast<std::int32_t>(copies == Copies::one ? 1 : std::min(fitting, left));
      const std::int64_t rows = std::min(from.rows, left / each);
      left -= rows * each;
      if (!taken) rows_opened += rows;

      const bool split = taken && from.rows > rows;
      if (split) {
        OpenStrategy rest = from;
        rest.rows -= rows;
        rest.first_row += rows;
        open.put(rest);
      }
      // After a split under Copies::one nothing is left, and under Copies::fitting no node of this length is extended again: a
      // node of this length that is still to be extended belongs to one strategy.
      from.rows = rows;
      from.free -= each * length;
      from.segments += each;
      from.node = tree.extend(from.node, !split, length, each);
      const bool full = from.segments == max_segments || from.free < counts.front().length;
      if (full) {
        tree.write(from.node, from.rows, plan);
      } else {
        open.put(from);
      }
    }
  }
  while (const std::optional<OpenStrategy> strategy = open.take(1)) tree.write(strategy->node, strategy->rows, plan);
  return plan;
}

}  // namespace shardpack
