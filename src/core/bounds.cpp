#include "shardpack/bounds.h"

#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "base/wide.h"

namespace shardpack {

namespace {
std::int64_t ceil_div_wide(Int128 slots, Length row_tokens) {
  return slots <= 0 ? 0 : static_cast<std::int64_t>((slots + row_tokens - 1) / row_tokens);
}

/// No two items over half a row share one, and an item over L - t shares none with an item of at least t. So the rows are at
/// least those of the items over L/2, and what the items from t to L/2 need beyond the free slots of those rows that they can
/// enter. Any t up to L/2 gives a bound; between two lengths that occur the larger t gives the better one, so these are all to
/// try.
std::int64_t martello_toth(const std::vector<LengthCount>& counts, Length row_tokens) {
  const auto first_large =
      std::find_if(counts.begin(), counts.end(), [&](const LengthCount& c) { return c.length > row_tokens / 2; });
  std::int64_t large = 0;
  for (auto c = first_large; c != counts.end(); ++c) large += c->count;

  std::int64_t best = large;
  Int128 small_slots = 0, free_slots = 0;
  auto shared_end = first_large;  // large items before it are at most L - t
  for (auto t = first_large; t != counts.begin();) {
    --t;
    small_slots += static_cast<Int128>(t->length) * t->count;
    for (; shared_end != counts.end() && shared_end->length <= row_tokens - t->length; ++shared_end) {
      free_slots += static_cast<Int128>(row_tokens - shared_end->length) * shared_end->count;
    }
    best = std::max(best, large + ceil_div_wide(small_slots - free_slots, row_tokens));
  }
  return best;
}
}  // namespace

std::string_view name(BoundKind kind) {
  switch (kind) {
    case BoundKind::l1:
      return "l1";
    case BoundKind::l2:
      return "l2";
    case BoundKind::cardinality:
      return "cardinality";
    case BoundKind::lp:
      return "lp";
  }
  ensure(false, "a bound kind has a name");
  return {};
}

LowerBound lower_bound(const LengthHistogram& items, Length row_tokens, std::int32_t max_segments) {
  ensure(row_tokens >= 1 && max_segments >= 0, "a row has slots");
  std::vector<LengthCount> counts = items.counts();
  if (!counts.empty() && counts.front().length == 0) counts.erase(counts.begin());
  ensure(counts.empty() || counts.back().length <= row_tokens, "every item fits a row");

  LowerBound best{ceil_div(items.tokens(), row_tokens), BoundKind::l1};
  const std::int64_t l2 = martello_toth(counts, row_tokens);
  if (l2 > best.rows) best = {l2, BoundKind::l2};
  const std::int64_t cardinality = max_segments == 0 ? 0 : ceil_div(items.sequences() - items.empty(), max_segments);
  if (cardinality > best.rows) best = {cardinality, BoundKind::cardinality};
  return best;
}

}  // namespace shardpack
