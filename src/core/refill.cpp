// Best fit decreasing leaves some slots of many rows unused: when their turn comes, the short items that would fit are gone, or
// were never of the right length. Taken apart together with some full rows, which bring items of all lengths along, nearly all of
// them can be filled to the last slot, and the slots saved add up to whole rows.
#include "core/refill.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::uint32_t kRounds = 4;
constexpr std::int64_t kSampledRows = 200;  // full rows taken apart in a round
/// What a round takes apart at most, in strategies times slots of a row, and never fewer than kLeastStrategies.
constexpr std::int64_t kOpenedSlots = std::int64_t{1} << 23, kLeastStrategies = 16;
/// Steps of all rounds: words of 64 sums that are computed, and sums that are found.
constexpr std::int64_t kMaxSteps = std::int64_t{1} << 24;

/// Items without a place, by length, longest first. No count is 0.
using Pool = std::map<Length, std::int64_t, std::greater<>>;

/// Equal rows.
struct FilledRows {
  std::vector<Length> lengths;  // descending
  std::int64_t rows = 0;
};

/// Fills rows from a pool.
class RowFiller {
 public:
  explicit RowFiller(const PackingPlan& plan)
      : row_tokens_(plan.row_tokens),
        max_segments_(plan.max_segments > 0 ? plan.max_segments : std::numeric_limits<std::int32_t>::max()),
        reached_(static_cast<std::size_t>(row_tokens_) / 64 + 1),
        open_(reached_.size()),
        last_(static_cast<std::size_t>(row_tokens_) + 1),
        segments_(static_cast<std::size_t>(row_tokens_) + 1) {}

  bool exhausted() const { return steps_ > kMaxSteps; }

  /// Rows with the longest item and with others that leave the least room: long ones if they do, for they are hardest to place
  /// later. As many rows as the pool has items for; these are taken out of it.
  FilledRows fill(Pool& pool) {
    const Length longest = pool.begin()->first;
    FilledRows filled{{longest}, 0};
    take(pool, longest, 1);
    for (Length sum = best_sum(pool, row_tokens_ - longest); sum > 0; sum -= filled.lengths.back()) {
      filled.lengths.push_back(last_[static_cast<std::size_t>(sum)]);
    }
    std::sort(filled.lengths.rbegin(), filled.lengths.rend());
    pool[longest] += 1;

    filled.rows = std::numeric_limits<std::int64_t>::max();
    for_each_length(filled.lengths,
                    [&](Length length, std::int64_t copies) { filled.rows = std::min(filled.rows, pool[length] / copies); });
    for_each_length(filled.lengths, [&](Length length, std::int64_t copies) { take(pool, length, copies * filled.rows); });
    return filled;
  }

 private:
  static void take(Pool& pool, Length length, std::int64_t items) {
    const auto at = pool.find(length);
    at->second -= items;
    if (at->second == 0) pool.erase(at);
  }

  template <class Visit>
  static void for_each_length(const std::vector<Length>& lengths, Visit visit) {
    for (auto first = lengths.begin(); first != lengths.end();) {
      const auto last = std::find_if(first, lengths.end(), [&](Length length) { return length != *first; });
      visit(*first, last - first);
      first = last;
    }
  }

  /// The largest sum of items up to `space` that go into a row with one item. Items are tried one by one, longest first, and no
  /// more once the space can be filled; for every sum the item that first made it is kept, so that it can be followed back.
  Length best_sum(const Pool& pool, Length space) {
    std::fill(reached_.begin(), reached_.end(), 0);
    std::fill(open_.begin(), open_.end(), 0);
    reached_[0] = 1;
    open_[0] = max_segments_ > 1 ? 1 : 0;
    segments_[0] = 1;
    for (auto entry = pool.lower_bound(space); entry != pool.end() && !is_reached(space); ++entry) {
      for (std::int64_t copy = 0; copy < entry->second && !exhausted() && add(entry->first, space); ++copy) {
      }
    }
    Length sum = space;
    while (!is_reached(sum)) --sum;
    return sum;
  }

  bool is_reached(Length sum) const { return reached_[static_cast<std::size_t>(sum / 64)] >> (sum % 64) & 1; }

  /// All sums with one more item. \return is there a new one?
  bool add(Length length, Length space) {
    bool any = false;
    const auto top = static_cast<std::size_t>(space / 64), shift = static_cast<std::size_t>(length / 64);
    const int bits = length % 64;
    const std::uint64_t within = ~std::uint64_t{0} >> (63 - space % 64);  // of the top word
    steps_ += static_cast<std::int64_t>(top - shift) + 1;
    for (std::size_t at = top + 1; at-- > shift;) {  // from above, so that the item counts once
      std::uint64_t shifted = open_[at - shift] << bits;
      if (bits > 0 && at > shift) shifted |= open_[at - shift - 1] >> (64 - bits);
      std::uint64_t fresh = shifted & ~reached_[at];
      if (at == top) fresh &= within;
      if (fresh == 0) continue;
      any = true;
      reached_[at] |= fresh;
      steps_ += std::popcount(fresh);
      for (; fresh != 0; fresh &= fresh - 1) {
        const auto sum = at * 64 + static_cast<std::size_t>(std::countr_zero(fresh));
        last_[sum] = length;
        segments_[sum] = segments_[sum - static_cast<std::size_t>(length)] + 1;
        if (segments_[sum] < max_segments_) open_[at] |= fresh & -fresh;
      }
    }
    return any;
  }

  Length row_tokens_;
  std::int32_t max_segments_;
  std::int64_t steps_ = 0;
  std::vector<std::uint64_t> reached_;  // a bit a sum
  std::vector<std::uint64_t> open_;     // a bit a sum that may have one more segment
  std::vector<Length> last_;            // a sum: the item that made it
  std::vector<std::int32_t> segments_;  // a sum: how many segments a row with it has
};

/// How many rows of each strategy to take apart: the emptiest, and every so many of the full ones.
std::vector<std::int64_t> choose_rows(const PackingPlan& plan, std::uint32_t round) {
  const std::size_t strategies = plan.count.size();
  std::vector<Length> free(strategies);
  std::vector<std::size_t> emptiest;
  std::int64_t full_rows = 0;
  for (std::size_t s = 0; s < strategies; ++s) {
    const std::span<const Length> lengths = plan.strategy(static_cast<std::int64_t>(s));
    free[s] = std::accumulate(lengths.begin(), lengths.end(), plan.row_tokens, std::minus<>());
    if (free[s] > 0) {
      emptiest.push_back(s);
    } else {
      full_rows += plan.count[s];
    }
  }
  std::stable_sort(emptiest.begin(), emptiest.end(), [&](std::size_t a, std::size_t b) { return free[a] > free[b]; });
  const std::int64_t most = std::max(kOpenedSlots / plan.row_tokens, kLeastStrategies);
  if (std::ssize(emptiest) > most) emptiest.resize(static_cast<std::size_t>(most));

  std::vector<std::int64_t> chosen(strategies, 0);
  for (const std::size_t s : emptiest) chosen[s] = plan.count[s];
  const std::int64_t every = std::max<std::int64_t>(full_rows / std::min(kSampledRows, most / 2), 1);
  const RandomStream random(0, RandomPurpose::sample);
  auto row = static_cast<std::int64_t>(random.bounded(round, static_cast<std::uint64_t>(every)));
  for (std::size_t s = 0; s < strategies; ++s) {
    if (free[s] > 0) continue;
    chosen[s] = (row + plan.count[s]) / every - row / every;
    row += plan.count[s];
  }
  return chosen;
}

/// The plan with the chosen rows filled anew; nothing when that takes too many steps.
std::optional<PackingPlan> refilled(const PackingPlan& plan, const std::vector<std::int64_t>& chosen, RowFiller& filler,
                                    const std::stop_token& stop) {
  PackingPlan result;
  Pool pool;
  for (std::size_t s = 0; s < chosen.size(); ++s) {
    const std::span<const Length> lengths = plan.strategy(static_cast<std::int64_t>(s));
    if (chosen[s] < plan.count[s]) result.add(lengths, plan.count[s] - chosen[s]);
    if (chosen[s] == 0) continue;
    for (const Length length : lengths) pool[length] += chosen[s];
  }
  while (!pool.empty()) {
    if (stop.stop_requested()) throw Error(ErrorCode::cancelled, "planning was stopped");
    if (filler.exhausted()) return std::nullopt;
    const FilledRows filled = filler.fill(pool);
    result.add(filled.lengths, filled.rows);
  }
  return result;
}

}  // namespace

bool refill(PackingPlan& plan, std::int64_t enough, const std::stop_token& stop) {
  RowFiller filler(plan);
  bool saved = false;
  for (std::uint32_t round = 0; round < kRounds && plan.rows() > enough; ++round) {
    std::optional<PackingPlan> changed = refilled(plan, choose_rows(plan, round), filler, stop);
    if (!changed) break;
    if (changed->rows() >= plan.rows()) continue;
    changed->canonicalize();
    plan.lengths = std::move(changed->lengths);
    plan.begin = std::move(changed->begin);
    plan.count = std::move(changed->count);
    saved = true;
  }
  return saved;
}

}  // namespace shardpack
