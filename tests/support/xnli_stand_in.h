// Stand-in for the lengths of MNLI's French training set, of which no histogram was published: a log-normal distribution clipped
// to [10, 493], with the published count, shortest, longest and share over 128 tokens.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "shardpack/types.h"

namespace shardpack {

inline constexpr std::int64_t kStandInSequences = 392'702;

/// Lengths in ascending order, cut at `cap` tokens: the (i + 1/2) / n quantiles, so that no number has to be drawn.
inline std::vector<Length> xnli_stand_in(Length cap, std::int64_t sequences = kStandInSequences) {
  constexpr double kMu = 3.736, kSigma = 0.593;
  std::vector<Length> lengths;
  lengths.reserve(static_cast<std::size_t>(sequences));
  for (Length length = 10; length <= 493; ++length) {
    // How many of the quantiles round to this length: those up to length + 1/2.
    const double below = 0.5 * std::erfc(-(std::log(length + 0.5) - kMu) / (kSigma * std::sqrt(2.0)));
    const auto until = length == 493 ? sequences : std::llround(below * static_cast<double>(sequences));
    lengths.resize(static_cast<std::size_t>(until), std::min(length, cap));
  }
  return lengths;
}

}  // namespace shardpack
