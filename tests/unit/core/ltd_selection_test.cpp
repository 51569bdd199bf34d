#include "shardpack/ltd_selection.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/rng.h"
#include "shardpack/error.h"
#include "shardpack/ltd_schedule.h"
#include "support/catch.h"

using namespace shardpack;

namespace {

std::vector<std::uint32_t> kept(KeptMode mode, std::uint64_t seed, const KeptPlace& place, Length width,
                                const std::vector<RowPart>& parts, std::int64_t count) {
  std::vector<std::uint32_t> slots;
  select_kept(mode, seed, place, width, parts, count, slots);
  return slots;
}

/// Parts of these lengths, one after the other with `gap` slots between.
std::vector<RowPart> parts_of(const std::vector<Length>& lengths, Length gap = 0) {
  std::vector<RowPart> parts;
  Length begin = 0;
  for (const Length tokens : lengths) {
    parts.push_back({begin, tokens});
    begin += tokens + gap;
  }
  return parts;
}

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed, RandomPurpose::sample) {}
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_.bounded(next_++, static_cast<std::uint64_t>(high - low + 1)));
  }

 private:
  RandomStream random_;
  std::uint64_t next_ = 0;
};

/// Upper 0.001 quantile of chi-square with `df` degrees of freedom (Wilson and Hilferty).
double chi_square_limit(double df) {
  const double z = 3.09;
  return df * std::pow(1 - 2 / (9 * df) + z * std::sqrt(2 / (9 * df)), 3);
}

constexpr KeptMode kModes[] = {KeptMode::uniform, KeptMode::quota, KeptMode::quota_min1};

}  // namespace

TEST_CASE("the smallest keys are kept: Philox by its definition") {
  const std::uint64_t seed = 0x0123456789abcdef;
  const KeptPlace place{7, 3, 1};
  std::vector<std::pair<std::uint64_t, std::uint32_t>> keyed;
  for (std::uint32_t token = 0; token < 101; ++token) {
    const PhiloxBlock w = philox({token / 2, 1, 3, 7}, {0x89abcdef, 0x01234567});
    keyed.emplace_back(token % 2 == 0 ? std::uint64_t{w[1]} << 32 | w[0] : std::uint64_t{w[3]} << 32 | w[2], token);
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<std::uint32_t> expected;
  for (std::size_t i = 0; i < 40; ++i) expected.push_back(keyed[i].second);
  std::sort(expected.begin(), expected.end());
  CHECK(kept(KeptMode::uniform, seed, place, 101, {{0, 101}}, 40) == expected);
  CHECK(kept(KeptMode::quota, seed, place, 101, {{0, 101}}, 40) == expected);  // one segment: the same
}

TEST_CASE("kept sets are sorted, distinct, of the right size, and nested in the number kept") {
  Draws draw(1);
  for (int round = 0; round < 300; ++round) {
    const KeptPlace place{draw(0, 1 << 20), draw(0, 100), draw(0, 5000)};
    const auto width = static_cast<Length>(draw(1, 300));
    const std::vector<RowPart> whole{{0, width}};
    std::vector<std::uint32_t> before;
    for (std::int64_t count = draw(0, 20); count <= width + 5; count += draw(1, 40)) {
      const std::vector<std::uint32_t> now = kept(KeptMode::uniform, 5, place, width, whole, count);
      REQUIRE(static_cast<std::int64_t>(now.size()) == std::min<std::int64_t>(count, width));
      REQUIRE(std::adjacent_find(now.begin(), now.end(), std::greater_equal<>()) == now.end());
      REQUIRE(std::includes(now.begin(), now.end(), before.begin(), before.end()));
      before = now;
    }
  }
}

TEST_CASE("quotas share the kept tokens in proportion") {
  Draws draw(2);
  for (int round = 0; round < 3000; ++round) {
    std::vector<Length> lengths(static_cast<std::size_t>(draw(1, 12)));
    for (Length& length : lengths) length = static_cast<Length>(draw(1, draw(1, 200)));
    const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    const auto count = static_cast<std::int64_t>(lengths.size());
    const std::int64_t r = draw(0, tokens);
    const KeptPlace place{draw(0, 1000), draw(0, 24), draw(0, 500)};
    std::vector<Length> quotas;
    part_quotas(KeptMode::quota, 9, place, parts_of(lengths), r, quotas);
    REQUIRE(std::accumulate(quotas.begin(), quotas.end(), std::int64_t{0}) == r);
    for (std::size_t j = 0; j < lengths.size(); ++j) {
      REQUIRE(std::abs(quotas[j] * tokens - r * lengths[j]) < tokens);
      REQUIRE(quotas[j] <= lengths[j]);
    }
    if (r < count) continue;
    part_quotas(KeptMode::quota_min1, 9, place, parts_of(lengths), r, quotas);
    REQUIRE(std::accumulate(quotas.begin(), quotas.end(), std::int64_t{0}) == r);
    for (std::size_t j = 0; j < lengths.size(); ++j) {
      REQUIRE(quotas[j] >= 1);
      REQUIRE(quotas[j] <= lengths[j]);
    }
  }
  std::vector<Length> quotas;
  CHECK_THROWS_AS(part_quotas(KeptMode::quota_min1, 0, {}, parts_of({3, 3, 3}), 2, quotas), Error);
}

TEST_CASE("over all offsets every segment keeps its exact share") {
  // The formula of the header, over every J; part_quotas draws one of them.
  Draws draw(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<Length> lengths(static_cast<std::size_t>(draw(1, 6)));
    for (Length& length : lengths) length = static_cast<Length>(draw(1, 30));
    const std::int64_t m = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}), r = draw(1, m);
    std::vector<std::int64_t> sum(lengths.size());
    std::vector<std::vector<Length>> seen;
    for (std::int64_t offset = 0; offset < m; ++offset) {
      std::int64_t prefix = 0, before = 0;
      seen.emplace_back();
      for (std::size_t j = 0; j < lengths.size(); ++j) {
        prefix += lengths[j];
        const std::int64_t end = (r * prefix + offset) / m;
        sum[j] += end - before;
        seen.back().push_back(static_cast<Length>(end - before));
        before = end;
      }
    }
    for (std::size_t j = 0; j < lengths.size(); ++j) CHECK(sum[j] == r * lengths[j]);  // mean r l / m, so r / m a token
    if (r == m) continue;
    std::vector<Length> quotas;
    part_quotas(KeptMode::quota, 4, {round, 0, round}, parts_of(lengths), r, quotas);
    CHECK(std::find(seen.begin(), seen.end(), quotas) != seen.end());
  }
}

TEST_CASE("every token is kept equally often") {
  constexpr std::int64_t kDraws = 20'000, kKept = 16;
  constexpr Length kTokens = 64;
  for (const KeptMode mode : {KeptMode::uniform, KeptMode::quota}) {
    const std::vector<RowPart> parts = mode == KeptMode::uniform ? parts_of({kTokens}) : parts_of({3, 20, 1, 30, 10});
    std::vector<double> counts(kTokens);
    std::vector<std::uint32_t> slots;
    for (std::int64_t step = 0; step < kDraws; ++step) {
      select_kept(mode, 42, {step, 5, 11}, kTokens, parts, kKept, slots);
      for (const std::uint32_t slot : slots) counts[slot] += 1;
    }
    const double share = static_cast<double>(kKept) / kTokens, expected = kDraws * share;
    double statistic = 0;
    // Tokens of one draw exclude one another: sum of (count - expected)^2 / (expected (1 - share)) is chi-square with 63 degrees
    // of freedom, times 63 / 64 (simple random sampling). Quotas only make it smaller.
    for (const double count : counts) statistic += (count - expected) * (count - expected) / (expected * (1 - share));
    CHECK(statistic * 63 / 64 < chi_square_limit(63));
  }
}

TEST_CASE("steps, layers and rows draw without regard to one another") {
  // Overlap of two kept sets of 16 of 64 is hypergeometric: mean 4, variance 16/64 * 48/64 * 48 * 16 / 63 = 2.2857.
  constexpr std::int64_t kPairs = 5000;
  const std::vector<RowPart> whole{{0, 64}};
  for (const KeptPlace& other : {KeptPlace{1, 0, 0}, KeptPlace{0, 1, 0}, KeptPlace{0, 0, 1}}) {
    double sum = 0, square = 0;
    for (std::int64_t i = 0; i < kPairs; ++i) {
      const KeptPlace a{2 * i, 2, 7}, b{a.step + other.step, a.layer + other.layer, a.row + other.row};
      const auto kept_a = kept(KeptMode::uniform, 1, a, 64, whole, 16), kept_b = kept(KeptMode::uniform, 1, b, 64, whole, 16);
      std::vector<std::uint32_t> both;
      std::set_intersection(kept_a.begin(), kept_a.end(), kept_b.begin(), kept_b.end(), std::back_inserter(both));
      sum += static_cast<double>(both.size());
      square += static_cast<double>(both.size() * both.size());
    }
    const double mean = sum / kPairs, variance = square / kPairs - mean * mean;
    CHECK(mean == Approx(4).margin(3.3 * std::sqrt(2.2857 / kPairs)));
    CHECK(variance == Approx(2.2857).margin(0.2));
  }
}

TEST_CASE("padding is kept only where tokens run out, from the row's end") {
  const std::vector<RowPart> parts = parts_of({3, 4}, 2);  // slots 0-2, 5-8; padding 3 4 9 10 11
  for (const KeptMode mode : kModes) {
    const auto slots = kept(mode, 1, {}, 12, parts, 10);
    CHECK(slots == std::vector<std::uint32_t>{0, 1, 2, 5, 6, 7, 8, 9, 10, 11});
    CHECK(kept(mode, 1, {}, 12, parts, 11) == std::vector<std::uint32_t>{0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11});
    CHECK(kept(mode, 1, {}, 12, parts, 100).size() == 12);
    for (const std::uint32_t slot : kept(mode, 1, {}, 12, parts, 5)) CHECK((slot < 3 || (slot > 4 && slot < 9)));
    CHECK(kept(mode, 1, {}, 4, {}, 3) == std::vector<std::uint32_t>{1, 2, 3});  // a row of padding
  }
  std::vector<std::uint32_t> boundaries;
  kept_boundaries(KeptMode::quota, 1, {}, 12, parts, 11, boundaries);
  CHECK(boundaries == std::vector<std::uint32_t>{0, 3, 4, 8, 11});
  kept_boundaries(KeptMode::quota, 1, {}, 12, parts, 9, boundaries);
  CHECK(boundaries == std::vector<std::uint32_t>{0, 3, 7, 9});
}

TEST_CASE("boundaries are those of the kept slots, for every layer") {
  Draws draw(5);
  for (int round = 0; round < 500; ++round) {
    std::vector<Length> lengths(static_cast<std::size_t>(draw(0, 8)));
    for (Length& length : lengths) length = static_cast<Length>(draw(1, 40));
    const std::vector<RowPart> parts = parts_of(lengths, static_cast<Length>(draw(0, 2)));
    const Length used = parts.empty() ? 0 : parts.back().begin + parts.back().tokens;
    const auto width = static_cast<Length>(used + draw(1, 30));
    std::vector<int> segment(static_cast<std::size_t>(width));
    for (std::size_t p = 0; p < parts.size(); ++p) {
      for (Length t = 0; t < parts[p].tokens; ++t)
        segment[static_cast<std::size_t>(parts[p].begin + t)] = static_cast<int>(p) + 1;
    }
    const KeptMode mode = kModes[1 + round % 2];
    const std::int64_t count = draw(static_cast<std::int64_t>(parts.size()), width + 3);
    std::vector<std::uint32_t> boundaries;
    kept_boundaries(mode, 3, {round, 0, 2}, width, parts, count, boundaries);
    for (std::int64_t layer = 0; layer < 3; ++layer) {
      const auto slots = kept(mode, 3, {round, layer, 2}, width, parts, count);
      std::vector<std::uint32_t> expected{0};
      for (std::uint32_t i = 1; i <= slots.size(); ++i) {
        // A new run where the segment changes; padding with a segment between is two runs.
        const bool ends = i == slots.size() || segment[slots[i]] != segment[slots[i - 1]] ||
                          (segment[slots[i]] == 0 && slots[i] != slots[i - 1] + 1);
        if (ends) expected.push_back(i);
      }
      REQUIRE(boundaries == expected);
    }
  }
}

TEST_CASE("whole segments are lost as often as the closed forms say") {
  LtdSchedule schedule;
  schedule.growth = {128, 2048, 16, 1'000'000};
  schedule.layers = 3;
  schedule.ltd_layers = 1;
  schedule.micro_batch = 1;
  schedule.seq_length = 2048;
  const auto chance = [&](Length short_one, std::int64_t kept_tokens, KeptMode mode) {
    LtdRowTable rows;
    rows.add(parts_of({short_one, static_cast<Length>(2048 - short_one)}));
    rows.read_in_turn(2048);
    schedule.growth.start = kept_tokens;
    const LtdTable table = make_ltd_table(schedule, {BudgetKind::steps, 1}, {}, &rows);
    return ltd_attention(schedule, table, mode, &rows);
  };
  CHECK(chance(20, 128, KeptMode::uniform).empty_segments == Approx(0.273).margin(5e-4));
  CHECK(chance(50, 128, KeptMode::uniform).empty_segments == Approx(0.038).margin(5e-4));
  CHECK(chance(20, 512, KeptMode::uniform).empty_segments == Approx(0.003).margin(5e-4));
  CHECK(chance(20, 128, KeptMode::quota).empty_segments == 0);
  CHECK(chance(8, 128, KeptMode::quota).empty_segments == Approx(0.5));
  CHECK(chance(8, 128, KeptMode::quota_min1).empty_segments == 0);
  CHECK(chance(1, 128, KeptMode::quota_min1).max_inclusion == Approx(16));
}

TEST_CASE("expected pairs and empty segments are the means over the draws") {
  const std::vector<RowPart> parts = parts_of({2, 5, 30, 11, 7});
  LtdSchedule schedule;
  schedule.growth = {12, 64, 12, 1'000'000};
  schedule.layers = 1;
  schedule.ltd_layers = 1;
  schedule.micro_batch = 1;
  schedule.seq_length = 64;
  LtdRowTable rows;
  rows.add(parts);
  rows.read_in_turn(64);
  const LtdTable table = make_ltd_table(schedule, {BudgetKind::steps, 1}, {}, &rows);
  for (const KeptMode mode : kModes) {
    constexpr int kDraws = 20'000;
    double squares = 0, empty = 0;
    for (int step = 0; step < kDraws; ++step) {
      std::map<std::size_t, double> of_part;
      for (const std::uint32_t slot : kept(mode, 8, {step, 0, 0}, 64, parts, 12)) {
        std::size_t p = 0;
        while (static_cast<Length>(slot) >= parts[p].begin + parts[p].tokens) ++p;
        of_part[p] += 1;
      }
      for (const auto& [part, count] : of_part) squares += count * count;
      empty += static_cast<double>(parts.size() - of_part.size());
    }
    const LtdAttention attention = ltd_attention(schedule, table, mode, &rows);
    CHECK(attention.pairs == Approx(squares / kDraws).epsilon(0.01));
    CHECK(attention.empty_segments == Approx(empty / kDraws).margin(0.02));
    CHECK(attention.dense_pairs == 4 + 25 + 900 + 121 + 49);
    CHECK(attention.full_row_pairs == 64 * 64);
  }
}
