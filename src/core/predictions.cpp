#include "core/predictions.h"

#include <cmath>

namespace shardpack {

std::int64_t expected_dynamic_slots(const LengthHistogram& lengths, std::int64_t batch) {
  const auto sequences = static_cast<double>(lengths.sequences() - lengths.empty());
  double expected_longest = 0, below = 0;  // below: sequences shorter than the current length
  std::int64_t previous = 0;
  for (const LengthCount& entry : lengths.counts()) {
    if (entry.length == 0) continue;
    const double share = below / sequences;
    expected_longest += static_cast<double>(entry.length - previous) * (1 - std::pow(share, static_cast<double>(batch)));
    below += static_cast<double>(entry.count);
    previous = entry.length;
  }
  return std::llround(sequences * expected_longest);
}

}  // namespace shardpack
