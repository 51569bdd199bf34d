// Lengths as datasets of web text have them: log-normal. Normal numbers by Box and Muller from our own random numbers, so that a
// seed says nearly all; the last bits of exp and log are the mathematical library's.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "shardpack/length_histogram.h"

namespace shardpack {

struct LogNormal {
  double mu = 5.3, sigma = 0.9;  // of the logarithm; a median of 200 tokens
  std::int64_t least = 8, most = 2048;
};

inline std::vector<std::int64_t> log_normal_lengths(std::uint32_t stream, std::int64_t sequences, const LogNormal& shape) {
  const RandomStream random(2024, RandomPurpose::sample, stream);
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(sequences));
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto [first, second] = random.pair(i);
    const double radius = std::sqrt(-2 * std::log((static_cast<double>(first >> 11) + 1) / 0x1p53));
    const double normal = radius * std::cos(2 * 3.141592653589793 * static_cast<double>(second >> 11) / 0x1p53);
    const double length =
        std::clamp(std::exp(shape.mu + shape.sigma * normal), static_cast<double>(shape.least), static_cast<double>(shape.most));
    lengths[i] = static_cast<std::int64_t>(length);
  }
  return lengths;
}

inline LengthHistogram web_text(std::uint32_t stream, std::int64_t sequences, const LogNormal& shape = {}) {
  LengthHistogram histogram;
  for (const std::int64_t length : log_normal_lengths(stream, sequences, shape)) histogram.add(length);
  return histogram;
}

}  // namespace shardpack
