// What a planned epoch costs: padding, shapes, and how long ranks wait for each other.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rng.h"
#include "shardpack/batch_plan.h"

namespace shardpack {

namespace {

/// Critical path / mean: batches in the order of training, `order[i]` is the i-th.
double imbalance_of(const std::vector<double>& costs, const std::vector<std::uint32_t>& order, const BatchOptions& options) {
  const auto world = static_cast<std::size_t>(options.world), group = static_cast<std::size_t>(options.group_size());
  std::vector<double> rank(world);
  double longest = 0, mean = 0;
  for (std::size_t first = 0; first + group <= order.size(); first += group) {
    std::fill(rank.begin(), rank.end(), 0.0);
    for (std::size_t i = 0; i < group; ++i) rank[i % world] += costs[order[first + i]];
    longest += *std::max_element(rank.begin(), rank.end());
    mean += std::accumulate(rank.begin(), rank.end(), 0.0) / static_cast<double>(world);
  }
  return mean > 0 ? longest / mean : 1;
}

double correlation_of_neighbours(const std::vector<double>& values) {
  if (values.size() < 3) return 0;
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  double variance = 0, covariance = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    variance += (values[i] - mean) * (values[i] - mean);
    if (i + 1 < values.size()) covariance += (values[i] - mean) * (values[i + 1] - mean);
  }
  return variance > 0 ? covariance / variance : 0;
}

}  // namespace

double BatchStats::padding() const {
  return padded_tokens > 0 ? 1 - static_cast<double>(real_tokens) / static_cast<double>(padded_tokens) : 0;
}

BatchStats batch_stats(const BatchItems& items, const BatchOptions& options, const BatchEpoch& epoch) {
  BatchStats stats{.batches = epoch.batches(), .items = static_cast<std::int64_t>(epoch.items.size())};
  std::vector<double> costs;
  std::vector<std::uint64_t> shapes;
  std::vector<double> step_lengths;  // mean padded length of each step
  for (std::int64_t b = 0; b < epoch.batches(); ++b) {
    const std::int64_t size = epoch.size(b), pad = epoch.pad_length[static_cast<std::size_t>(b)];
    double attention = 0;
    for (std::int64_t i = epoch.begin[static_cast<std::size_t>(b)]; i < epoch.begin[static_cast<std::size_t>(b) + 1]; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const std::uint32_t item = epoch.items[at];
      const double length = items.lengths[item];
      const double squares = items.costs.empty() ? length * length : static_cast<double>(items.costs[item]);
      attention += squares;
      if (!epoch.weights.empty() && epoch.weights[at] == 0) continue;
      stats.real_tokens += items.real_tokens(item);
      stats.real_squares += squares;
    }
    stats.padded_tokens += size * pad;
    stats.padded_squares += static_cast<double>(size) * static_cast<double>(pad) * static_cast<double>(pad);
    stats.largest_batch = std::max(stats.largest_batch, size * pad);
    costs.push_back(items.costs.empty() ? static_cast<double>(size * pad) : attention);
    shapes.push_back(static_cast<std::uint64_t>(pad) << 32 | static_cast<std::uint64_t>(size));
    if (b % options.group_size() == 0) step_lengths.push_back(0);
    step_lengths.back() += static_cast<double>(pad) / static_cast<double>(options.group_size());
  }
  std::sort(shapes.begin(), shapes.end());
  stats.shapes = std::unique(shapes.begin(), shapes.end()) - shapes.begin();

  std::vector<std::uint32_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0U);
  stats.imbalance = imbalance_of(costs, order, options);
  RandomStream(options.seed, RandomPurpose::batch_figures).shuffle(std::span(order));
  stats.free_imbalance = imbalance_of(costs, order, options);
  stats.length_correlation = correlation_of_neighbours(step_lengths);
  return stats;
}

double repeat_share(const BatchEpoch& first, const BatchEpoch& second, std::size_t items) {
  std::vector<std::uint32_t> batch_of(items, 0xffffffff);
  for (std::int64_t b = 0; b < second.batches(); ++b) {
    for (std::int64_t i = second.begin[static_cast<std::size_t>(b)]; i < second.begin[static_cast<std::size_t>(b) + 1]; ++i) {
      batch_of[second.items[static_cast<std::size_t>(i)]] = static_cast<std::uint32_t>(b);
    }
  }
  const RandomStream stream(0, RandomPurpose::batch_figures, 1);
  std::int64_t pairs = 0, met = 0;
  for (std::int64_t b = 0; b < first.batches(); ++b) {
    const std::int64_t size = first.size(b);
    if (size < 2) continue;
    const auto draw = static_cast<std::uint64_t>(b);
    const auto a = static_cast<std::int64_t>(stream.bounded(2 * draw, static_cast<std::uint64_t>(size)));
    auto other = static_cast<std::int64_t>(stream.bounded(2 * draw + 1, static_cast<std::uint64_t>(size - 1)));
    if (other >= a) ++other;
    const auto begin = first.begin[static_cast<std::size_t>(b)];
    const std::uint32_t met_in = batch_of[first.items[static_cast<std::size_t>(begin + a)]];
    ++pairs;
    met += met_in != 0xffffffff && met_in == batch_of[first.items[static_cast<std::size_t>(begin + other)]];
  }
  return pairs > 0 ? static_cast<double>(met) / static_cast<double>(pairs) : 0;
}

}  // namespace shardpack
