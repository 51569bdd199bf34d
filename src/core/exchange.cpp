// exchange_items(): a local search for rows of near-equal cost.
//
// A pass splits rows at the cost that they can have in common and lets dear ones meet cheap ones, in blocks that span all costs.
// Sets of units of the cheap rows are listed by their slots, and each dear row takes the listed set that brings the two rows
// nearest to each other. Sets are runs of units, or, of few units, up to three of them. A row lists a bounded number of them for
// each unit, and the lists of a block are as long as rows are, so that what a row tries does not grow with the dataset.
#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "shardpack/row_balance.h"

namespace shardpack {

namespace {

constexpr std::int64_t kMinPasses = 3, kMaxPasses = 16, kUnitsPasses = std::int64_t{3} << 20;  // passes x units, between the two
constexpr double kNear = 1.0 / 128;          // rows so near to the common cost are left alone
constexpr std::int64_t kListedPerTotal = 4;  // sets of a block, for each total of slots that there can be
constexpr int kTried = 2;                    // listed sets that a set is compared with
constexpr int kTurns = 4;                    // exchanges of a row in a pass
constexpr std::int32_t kFewUnits = 7;        // so many or fewer: all sets of up to three
constexpr std::int32_t kRuns = 64;           // otherwise: runs, at least so many

/// What moves as one: an item, or those that are kept together.
struct Unit {
  std::int64_t cost = 0;
  Length slots = 0;
  std::int32_t number = 0;
};

struct Row {
  std::vector<Unit> units;
  std::int64_t cost = 0, dearest_unit = 0;
  std::int32_t listed_from = 0;  // its listed sets from here on are those of its units
  std::int32_t listings = 0;     // of this pass

  void count() {
    cost = dearest_unit = 0;
    for (const Unit& unit : units) {
      cost += unit.cost;
      dearest_unit = std::max(dearest_unit, unit.cost);
    }
  }
};

/// Units of a row: a run of so many (not 0), or those at the places whose bits are in `first`.
struct UnitSet {
  std::int32_t first = 0, run = 0;

  std::int32_t size() const { return run > 0 ? run : std::popcount(static_cast<std::uint32_t>(first)); }
  bool has(std::int32_t place) const { return run > 0 ? place >= first && place < first + run : (first >> place & 1) != 0; }
};

struct Listed {
  std::int64_t cost = 0;
  UnitSet set;
  std::int32_t row = 0, next = 0;  // next: the one of equal slots that was listed before, or -1
};

std::int64_t listed_sets(std::int64_t units) {
  return units <= kFewUnits ? units + units * (units - 1) / 2 + units * (units - 1) * (units - 2) / 6
                            : units * std::max<std::int64_t>(1, kRuns / units);
}

class Exchange {
 public:
  Exchange(std::vector<Row>& rows, std::int32_t max_units) : rows_(rows), max_units_(max_units) {
    for (const Row& row : rows) longest_ = std::max(longest_, slots_of(row));
    head_.assign(static_cast<std::size_t>(longest_) + 1, -1);
  }

  /// Among these rows, in ascending order; dear ones give if they are not among the `untouched`.
  void run(const std::vector<std::int32_t>& members, const std::vector<bool>& untouched) {
    std::int64_t units = 1;
    for (const std::int32_t r : members) units += std::ssize(row(r).units);
    const std::int64_t passes = std::clamp(kUnitsPasses / units, kMinPasses, kMaxPasses);
    const double common = common_cost(members);
    low_ = common * (1 - kNear);
    high_ = common * (1 + kNear);
    for (pass_ = 0; pass_ < passes; ++pass_) {
      if (!run_pass(members, untouched)) break;
    }
  }

 private:
  Row& row(std::int32_t r) { return rows_[static_cast<std::size_t>(r)]; }
  const Row& row(std::int32_t r) const { return rows_[static_cast<std::size_t>(r)]; }

  static Length slots_of(const Row& row) {
    Length slots = 0;
    for (const Unit& unit : row.units) slots += unit.slots;
    return slots;
  }

  /// The mean of the rows that can have it: a unit over half a row makes its row dearer than that by itself, wherever it is.
  double common_cost(const std::vector<std::int32_t>& members) const {
    std::vector<double> alone;  // costs of such units
    double total = 0;
    for (const std::int32_t r : members) {
      total += static_cast<double>(row(r).cost);
      for (const Unit& unit : row(r).units) {
        if (unit.slots > longest_ - unit.slots) alone.push_back(static_cast<double>(unit.cost));
      }
    }
    std::ranges::sort(alone, std::greater<>());
    auto rows = static_cast<double>(members.size());
    for (const double cost : alone) {
      if (rows <= 1 || cost * rows <= total) break;
      total -= cost;
      rows -= 1;
    }
    return total / std::max(1.0, rows);
  }

  bool is_cheap(const Row& row) const { return static_cast<double>(row.cost) < low_; }
  bool is_dear(const Row& row) const {
    const auto cost = static_cast<double>(row.cost);
    return cost > high_ && cost > static_cast<double>(row.dearest_unit) + high_ - low_;
  }

  /// use(set, cost, slots) for the sets of a row; which runs they are differs from pass to pass.
  template <class Use>
  void each_set(const Row& row, const Use& use) {
    const auto count = static_cast<std::int32_t>(row.units.size());
    const Unit* units = row.units.data();
    if (count <= kFewUnits) {
      for (std::int32_t i = 0; i < count; ++i) {
        use(UnitSet{1 << i}, units[i].cost, units[i].slots);
        for (std::int32_t j = i + 1; j < count; ++j) {
          const std::int64_t cost = units[i].cost + units[j].cost;
          const Length slots = units[i].slots + units[j].slots;
          use(UnitSet{1 << i | 1 << j}, cost, slots);
          for (std::int32_t k = j + 1; k < count; ++k) {
            use(UnitSet{1 << i | 1 << j | 1 << k}, cost + units[k].cost, slots + units[k].slots);
          }
        }
      }
      return;
    }
    sums_.resize(row.units.size() + 1);
    for (std::size_t i = 0; i < row.units.size(); ++i) {
      sums_[i + 1] = {sums_[i].cost + units[i].cost, sums_[i].slots + units[i].slots};
    }
    const std::int32_t draws = std::max(1, kRuns / count);
    for (std::int32_t first = 0; first < count; ++first) {
      const std::int32_t left = count - first;
      for (std::int32_t draw = 0; draw < draws; ++draw) {
        // Any spread over the lengths does, if it is another one in the next pass.
        const auto run =
            static_cast<std::int32_t>(1 + (first * std::int64_t{5} + pass_ * 3 + draw * std::max(1, left / draws)) % left);
        const Unit &from = sums_[static_cast<std::size_t>(first)],
                   &to = sums_[static_cast<std::size_t>(first) + static_cast<std::size_t>(run)];
        use(UnitSet{first, run}, to.cost - from.cost, to.slots - from.slots);
      }
    }
  }

  void list(std::int32_t r) {
    Row& cheap = row(r);
    cheap.listed_from = static_cast<std::int32_t>(listed_.size());
    ++cheap.listings;
    each_set(cheap, [&](UnitSet set, std::int64_t cost, Length slots) {
      std::int32_t& head = head_[static_cast<std::size_t>(slots)];
      if (head < 0) totals_.push_back(slots);
      listed_.push_back({cost, set, r, head});
      head = static_cast<std::int32_t>(listed_.size()) - 1;
    });
  }

  /// \return was anything exchanged?
  bool run_pass(const std::vector<std::int32_t>& members, const std::vector<bool>& untouched) {
    std::vector<std::pair<std::int64_t, std::int32_t>> dear, cheap;  // cost, row
    std::int64_t sets = 0;
    for (const std::int32_t r : members) {
      row(r).listings = 0;
      if (is_cheap(row(r))) {
        cheap.emplace_back(row(r).cost, r);
        sets += listed_sets(std::ssize(row(r).units));
      } else if (is_dear(row(r)) && !untouched[static_cast<std::size_t>(r)]) {
        dear.emplace_back(row(r).cost, r);
      }
    }
    std::ranges::sort(dear, std::greater<>());
    std::ranges::sort(cheap);
    const auto blocks = static_cast<std::size_t>(std::max<std::int64_t>(1, sets / (kListedPerTotal * std::ssize(head_))));
    bool exchanged = false;
    for (std::size_t block = 0; block < blocks; ++block) {
      for (std::size_t i = block; i < cheap.size(); i += blocks) list(cheap[i].second);
      for (std::size_t i = (block + static_cast<std::size_t>(pass_)) % blocks; i < dear.size(); i += blocks) {
        for (int turn = 0; turn < kTurns && is_dear(row(dear[i].second)) && relieve(row(dear[i].second)); ++turn)
          exchanged = true;
      }
      for (const Length slots : totals_) head_[static_cast<std::size_t>(slots)] = -1;
      totals_.clear();
      listed_.clear();
    }
    return exchanged;
  }

  /// The best exchange of a dear row with a listed one. \return was there any?
  bool relieve(Row& dear) {
    double best = 0;
    UnitSet given;
    std::int32_t best_listed = -1;
    each_set(dear, [&](UnitSet set, std::int64_t cost, Length slots) {
      int tried = 0;
      for (std::int32_t l = head_[static_cast<std::size_t>(slots)]; l >= 0 && tried < kTried;) {
        const Listed& other = listed_[static_cast<std::size_t>(l)];
        const Row& cheap = row(other.row);
        const std::int32_t at = std::exchange(l, other.next);
        if (at < cheap.listed_from) continue;  // its units are others now
        ++tried;
        const std::int64_t moved = cost - other.cost, apart = dear.cost - cheap.cost;
        if (moved <= 0 || moved >= apart) continue;
        const double gain = static_cast<double>(moved) * static_cast<double>(apart - moved);  // half of what the squares lose
        if (gain <= best) continue;
        const std::int32_t more = other.set.size() - set.size();
        if (std::ssize(dear.units) + more > max_units_ || std::ssize(cheap.units) - more > max_units_) continue;
        best = gain;
        given = set;
        best_listed = at;
      }
    });
    if (best_listed < 0) return false;
    const Listed taken = listed_[static_cast<std::size_t>(best_listed)];
    Row& cheap = row(taken.row);
    exchange(dear, given, cheap, taken.set);
    cheap.listed_from = std::numeric_limits<std::int32_t>::max();
    if (cheap.listings < kTurns && is_cheap(cheap)) list(taken.row);
    return true;
  }

  void exchange(Row& a, UnitSet from_a, Row& b, UnitSet from_b) {
    take_out(a, from_a, out_of_a_);
    take_out(b, from_b, out_of_b_);
    a.units.insert(a.units.end(), out_of_b_.begin(), out_of_b_.end());
    b.units.insert(b.units.end(), out_of_a_.begin(), out_of_a_.end());
    a.count();
    b.count();
  }

  static void take_out(Row& row, UnitSet set, std::vector<Unit>& taken) {
    taken.clear();
    std::size_t kept = 0;
    for (std::size_t place = 0; place < row.units.size(); ++place) {
      if (set.has(static_cast<std::int32_t>(place))) {
        taken.push_back(row.units[place]);
      } else {
        row.units[kept++] = row.units[place];
      }
    }
    row.units.resize(kept);
  }

  std::vector<Row>& rows_;
  std::int32_t max_units_;
  Length longest_ = 0;         // slots of the fullest row
  double low_ = 0, high_ = 0;  // around the common cost
  std::int64_t pass_ = 0;
  std::vector<Unit> sums_{{}};      // over the units of a row
  std::vector<std::int32_t> head_;  // last listed set by slots, or -1
  std::vector<Length> totals_;      // slots that have one
  std::vector<Listed> listed_;
  std::vector<Unit> out_of_a_, out_of_b_;
};

}  // namespace

void exchange_items(OrderedRows& rows, const ExchangeOptions& options, std::span<const std::int32_t> groups) {
  const std::int32_t together = options.keep_together;
  std::vector<Row> all(static_cast<std::size_t>(rows.rows.rows()));
  std::int64_t deepest = 0;
  for (std::size_t r = 0; r < all.size(); ++r) {
    const std::span<const std::int32_t> items = rows.rows.row(static_cast<std::int64_t>(r));
    ensure(std::ssize(items) % together == 0, "a row holds whole units");
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Item& item = rows.items[static_cast<std::size_t>(items[i])];
      if (i % static_cast<std::size_t>(together) == 0) all[r].units.push_back({.number = items[i]});
      all[r].units.back().cost += std::int64_t{item.length()} * item.length();
      all[r].units.back().slots += item.slots;
    }
    all[r].count();
    deepest = std::max(deepest, std::ssize(all[r].units));
  }

  std::vector<std::int32_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<bool> untouched(all.size(), false);
  std::ranges::stable_sort(order, std::greater<>(), [&](std::int32_t r) { return all[static_cast<std::size_t>(r)].cost; });
  for (std::size_t i = 0; i < std::min(order.size(), static_cast<std::size_t>(options.untouched)); ++i) {
    untouched[static_cast<std::size_t>(order[i])] = true;
  }

  const auto group_of = [&](std::int32_t r) { return groups.empty() ? 0 : groups[static_cast<std::size_t>(r)]; };
  std::ranges::sort(order, {}, [&](std::int32_t r) { return std::pair(group_of(r), r); });
  Exchange exchange(all, options.max_segments > 0 ? options.max_segments / together : static_cast<std::int32_t>(deepest));
  for (auto first = order.begin(); first != order.end();) {
    const auto last = std::find_if(first, order.end(), [&](std::int32_t r) { return group_of(r) != group_of(*first); });
    exchange.run({first, last}, untouched);
    first = last;
  }

  rows.rows.begin.assign(1, 0);
  rows.rows.items.clear();
  for (Row& row : all) {
    std::ranges::sort(row.units, {}, [](const Unit& unit) { return std::pair(-unit.slots, unit.number); });
    for (const Unit& unit : row.units) {
      for (std::int32_t i = 0; i < together; ++i) rows.rows.items.push_back(unit.number + i);
    }
    rows.rows.begin.push_back(static_cast<std::int64_t>(rows.rows.items.size()));
  }
}

}  // namespace shardpack
