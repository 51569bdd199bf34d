// Everything is drawn with Philox and computed in integers: no distribution of the standard library and no function of the
// mathematical one, neither of which gives the same bits everywhere.
#include "quality/histograms.h"

#include <algorithm>
#include <array>

#include "base/rng.h"
#include "base/wide.h"

namespace shardpack {

namespace {
/// Draws in a row from one stream, a stream for each histogram.
class Draws {
 public:
  explicit Draws(std::uint32_t stream) : random_(2021, RandomPurpose::sample, stream) {}

  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random_.bounded(next_++, static_cast<std::uint64_t>(most - least + 1)));
  }
  /// Nearly normal, in units of 2^-16 of the standard deviation: the sum of twelve uniform numbers has variance 12 / 12.
  std::int64_t normal() {
    std::int64_t sum = -6 * 65'536;
    for (int word = 0; word < 3; ++word) {
      const std::uint64_t bits = random_.value(next_++);
      for (int part = 0; part < 4; ++part) sum += static_cast<std::int64_t>(bits >> 16 * part & 0xffff);
    }
    return sum;
  }

 private:
  RandomStream random_;
  std::uint64_t next_ = 0;
};

std::uint64_t square_root(Uint128 square) {
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 63; bit != 0; bit >>= 1) {
    if (static_cast<Uint128>(root | bit) * (root | bit) <= square) root |= bit;
  }
  return root;
}

/// value * 2^(exponent / 65,536), rounded down. The fractional part is made of 2^(1/2), 2^(1/4), ..., in units of 2^-62.
std::int64_t scale_by_power(std::int64_t value, std::int64_t exponent) {
  static const std::array<std::uint64_t, 16> kRoots = [] {
    std::array<std::uint64_t, 16> roots{};
    std::uint64_t power = std::uint64_t{1} << 63;  // 2
    for (std::uint64_t& root : roots) root = power = square_root(static_cast<Uint128>(power) << 62);
    return roots;
  }();
  Uint128 fraction = Uint128{1} << 62;
  for (int bit = 0; bit < 16; ++bit) {
    if (exponent >> (15 - bit) & 1) fraction = fraction * kRoots[static_cast<std::size_t>(bit)] >> 62;
  }
  const std::int64_t whole = exponent >> 16;  // rounded down, so that the fraction is never negative; far below 62 here
  return static_cast<std::int64_t>(static_cast<Uint128>(value) * fraction >> (62 - whole));
}

/// Log-normal lengths: `spread` thousandths of a binary order of magnitude to a standard deviation.
void add_log_normal(LengthHistogram& items, Draws& draws, std::int64_t sequences, std::int64_t median, std::int64_t spread,
                    std::int64_t least, std::int64_t most) {
  for (std::int64_t i = 0; i < sequences; ++i) {
    items.add(std::clamp(scale_by_power(median, draws.normal() * spread / 1000), least, most));
  }
}

LengthHistogram log_normal(std::uint32_t stream, std::int64_t sequences, std::int64_t median, std::int64_t spread,
                           std::int64_t least, std::int64_t most) {
  LengthHistogram items;
  Draws draws(stream);
  add_log_normal(items, draws, sequences, median, spread, least, most);
  return items;
}

/// Short turns of dialogue and long documents in one dataset.
LengthHistogram bimodal(std::uint32_t stream) {
  LengthHistogram items;
  Draws draws(stream);
  add_log_normal(items, draws, 200'000, 90, 900, 4, 2048);
  add_log_normal(items, draws, 100'000, 1'400, 500, 4, 2048);
  return items;
}

LengthHistogram uniform(std::uint32_t stream, std::int64_t items_wanted, std::int64_t least, std::int64_t most) {
  LengthHistogram items;
  Draws draws(stream);
  for (std::int64_t i = 0; i < items_wanted; ++i) items.add(draws.between(least, most));
  return items;
}

/// Falkenauer's triplets for rows of 1,000: three items that fill a row exactly, one over a third and two over a quarter of it.
/// The optimum is one row a triplet.
LengthHistogram triplets(std::uint32_t stream, std::int64_t rows) {
  LengthHistogram items;
  Draws draws(stream);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = draws.between(380, 490);
    const std::int64_t second = draws.between(250, (1000 - first) / 2);
    for (const std::int64_t length : {first, second, 1000 - first - second}) items.add(length);
  }
  return items;
}

/// Waescher and Gau's hard cutting problems, by their generator's rule: few kinds of items, up to a given part of a long row, and
/// uneven demands.
LengthHistogram few_kinds(std::uint32_t stream, int kinds, std::int64_t most, std::int64_t items_wanted) {
  LengthHistogram items;
  Draws draws(stream);
  std::vector<std::int64_t> weights;
  std::int64_t weight_sum = 0;
  for (int kind = 0; kind < kinds; ++kind) weight_sum += weights.emplace_back(draws.between(1, 1000));
  for (const std::int64_t weight : weights)
    items.add(draws.between(1, most), std::max<std::int64_t>(1, items_wanted * weight / weight_sum));
  return items;
}

LengthHistogram powers_of_two() {
  LengthHistogram items;
  for (int power = 0; power <= 10; ++power) items.add(std::int64_t{1} << power, 1000 + 77 * power);
  return items;
}

LengthHistogram of(const std::vector<LengthCount>& counts) { return LengthHistogram(counts); }
}  // namespace

std::vector<QualityCase> generated_cases() {
  const std::vector<std::int32_t> depths{0, 2, 3, 4, 8, 16};
  const std::int64_t trillion = 1'000'000'000'000;
  return {
      // exp(5.3) = 200 and 0.9 / ln 2 = 1.298
      {"lognormal", log_normal(1, 1'000'000, 200, 1298, 8, 2048), {2048, 4096, 8192}, depths},
      {"lognormal-long", log_normal(2, 100'000, 8'000, 2164, 8, 131'072), {131'072}, depths},
      {"bimodal", bimodal(3), {2048, 8192}, depths},
      {"uniform", uniform(4, 50'000, 1, 512), {512, 1024}, depths},
      {"uniform-u1000", uniform(5, 1'000, 20, 100), {150}, {0, 2, 3, 4}},  // Falkenauer's class u
      {"triplet-t501", triplets(6, 167), {1000}, {0, 2, 3}},               // Falkenauer's class t
      {"triplet-60000", triplets(7, 20'000), {1000}, {0, 2, 3}},
      {"schwerin-1", uniform(8, 100, 150, 200), {1000}, {0, 4, 5}},
      {"schwerin-2", uniform(9, 120, 150, 200), {1000}, {0, 4, 5}},
      {"waescher-quarter", few_kinds(10, 40, 2'500, 200), {10'000}, depths},
      {"waescher-half", few_kinds(11, 40, 5'000, 200), {10'000}, depths},
      {"waescher-most", few_kinds(12, 40, 7'500, 200), {10'000}, depths},
      {"just-over", of({{251, 3'000}, {334, 3'000}, {501, 3'000}}), {1000}, {0, 2, 3}},
      {"powers-of-two", powers_of_two(), {1024}, depths},
      {"full-and-half", of({{513, 1'000}, {1024, 1'000}}), {1024}, {0, 2}},
      {"twenty", uniform(13, 20, 8, 150), {256}, {0, 2, 3}},
      {"trillions", of({{1, trillion}, {37, trillion}, {170, trillion}, {255, trillion}, {400, trillion}}), {512}, depths},
  };
}

}  // namespace shardpack
