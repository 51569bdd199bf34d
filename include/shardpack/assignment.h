// Which items make each row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shardpack/item.h"
#include "shardpack/packing_plan.h"
#include "shardpack/training_shape.h"

namespace shardpack {

/// CSR: row r holds items[begin[r] .. begin[r+1]), indices into the partition's items, in the order of the row.
struct Assignment {
  std::vector<std::int64_t> begin{0};
  std::vector<std::int32_t> items;
  std::vector<std::int32_t> windows;  ///< of each row, where they are dealt to windows and not in an order yet; else empty

  std::int64_t rows() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  std::span<const std::int32_t> row(std::int64_t r) const {
    const auto at = static_cast<std::size_t>(r);
    return std::span(items).subspan(static_cast<std::size_t>(begin[at]), static_cast<std::size_t>(begin[at + 1] - begin[at]));
  }
};

/// shuffled: over the whole partition. windowed: rows are made of items that lie near each other in the input as far as the plan
/// allows, and are shuffled within windows, so that the tokens of a window are read in one go; for trainers that shuffle rows
/// anyway. balanced: whole steps of rows that cost alike, shuffled (row_balance.h).
enum class RowOrder : std::uint8_t { shuffled, windowed, by_strategy, input, balanced };

/// Slots of a window, at the most: enough that most lengths of a strategy are found in it, and 8 MiB of 32-bit ids.
inline constexpr std::int64_t kWindowSlots = std::int64_t{1} << 21;

/// Windows that `rows` rows are cut into by RowOrder::windowed, of equal size but for a row.
std::int64_t window_count(std::int64_t rows, Length row_tokens);

struct AssignOptions {
  std::uint64_t seed = 0;
  std::int32_t partition = 0;  ///< selects the stream of random numbers
  RowOrder order = RowOrder::shuffled;
  bool ordered = true;          ///< false: items are drawn as the order asks, but rows stay by strategy, for order_rows()
  std::int64_t first_item = 0;  ///< items of the partition that other calls place, before these: moves on in the same stream
  Length row_tokens = 0;        ///< windowed: slots of a row
  TrainingShape shape = {};     ///< balanced: how rows are consumed
  std::int64_t first_row = 0;   ///< balanced: rows of the dataset before the partition's
};

/// Fill a plan's rows with items: among items of equal slots the draw is a seeded shuffle (windowed: one in each window), then
/// rows are ordered.
/// \throws Error{internal} when the plan is not an exact cover of the items. Pure; O(items + strategy entries).
Assignment assign(const std::vector<Item>& items, const PackingPlan& plan, const AssignOptions& options);

/// Rows of units as rows of the segments that `keep_together` consecutive items of a unit are (units_of() undone).
Assignment spread_units(const Assignment& rows, std::int32_t keep_together);

/// The numbers of existing rows in the order that is asked for, and the rows in it. by_strategy leaves them as they are; under
/// input the items of a row are put into input order too.
std::vector<std::int32_t> order_of_rows(const Assignment& rows, const std::vector<Item>& items, const AssignOptions& options);
Assignment order_rows(const Assignment& rows, const std::vector<Item>& items, const AssignOptions& options);

/// Rows in input order, and the items they are made of (concat cuts sequences at row ends, so it has items of its own).
struct OrderedRows {
  std::vector<Item> items;
  Assignment rows;
};

/// Next fit in input order: an item that does not fit, or would exceed max_segments, opens the next row. Nothing is reordered.
OrderedRows pack_sequential(std::vector<Item> items, Length row_tokens, std::int32_t max_segments);

/// One long stream cut every row_tokens slots: no padding but in the last row; sequences are cut at row ends, and nowhere else.
/// `items` come from Overlong::split with the same row_tokens; consecutive pieces of a sequence are joined again before the cut.
/// A segment may then hold nothing but an added EOS. With a segment limit a row is closed early.
OrderedRows pack_concat(const std::vector<Item>& items, Length row_tokens, std::int32_t max_segments, Length segment_multiple);

/// The plan that an assignment amounts to: strategies and counts, canonical, with a bound. With policy.keep_together above 1 each
/// row holds whole units.
PackingPlan derive_plan(const OrderedRows& rows, std::string_view packer, const LengthPolicy& policy, std::int32_t max_segments);

}  // namespace shardpack
