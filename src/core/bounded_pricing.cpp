#include "core/bounded_pricing.h"

#include <algorithm>
#include <utility>

namespace shardpack {
namespace {

/// to[s] = max(to[s], from[s] + value), and changed[s] = did that change it?
void relax(const double* __restrict from, double* __restrict to, std::uint8_t* __restrict changed, std::size_t count,
           double value) {
  for (std::size_t s = 0; s < count; ++s) {
    const double sum = from[s] + value;
    changed[s] = to[s] < sum;
    to[s] = to[s] < sum ? sum : to[s];
  }
}

/// A row of bits for each stage and layer of the table: was an item taken there?
class Taken {
 public:
  explicit Taken(std::size_t slots) : bytes_((slots + 7) / 8) {}

  void reserve(std::size_t rows) { bits_.reserve(rows * bytes_); }
  /// \param marks  bytes 0 or 1, as many as slots and at least 7 more
  void add_row(const std::vector<std::uint8_t>& marks) {
    for (std::size_t byte = 0; byte < bytes_; ++byte) {
      unsigned bits = 0;
      for (std::size_t bit = 0; bit < 8; ++bit) bits |= unsigned{marks[byte * 8 + bit]} << bit;
      bits_.push_back(static_cast<std::uint8_t>(bits));
    }
  }
  bool at(std::size_t row, std::size_t slot) const { return (bits_[row * bytes_ + slot / 8] >> slot % 8 & 1) != 0; }

 private:
  std::size_t bytes_;  // of a row
  std::vector<std::uint8_t> bits_;
};

}  // namespace

BoundedPricing::BoundedPricing(std::span<const Length> lengths, Length row_tokens, std::int32_t max_segments)
    : lengths_(lengths.begin(), lengths.end()), row_tokens_(row_tokens) {
  const Length fitting = lengths_.empty() ? 0 : row_tokens / lengths_.front();
  depth_limited_ = max_segments > 0 && max_segments < fitting;
  layers_ = depth_limited_ ? static_cast<std::size_t>(max_segments) + 1 : 1;
}

std::int64_t BoundedPricing::copies(std::size_t i, std::int64_t items) const {
  const std::int64_t fitting = std::min<std::int64_t>(items, row_tokens_ / lengths_[i]);
  return depth_limited_ ? std::min(fitting, static_cast<std::int64_t>(layers_) - 1) : fitting;
}

std::int64_t BoundedPricing::table(std::span<const std::int64_t> items) const {
  std::int64_t stages = 0;
  for (std::size_t i = 0; i < lengths_.size(); ++i) stages += copies(i, items[i]);
  return stages * static_cast<std::int64_t>(layers_) * (std::int64_t{row_tokens_} + 1);
}

BoundedPricing::Found BoundedPricing::best(std::span<const double> value, std::span<const std::int64_t> items, double above,
                                           std::size_t limit, int max_uses) const {
  // A stage for every item that can be in a row. most[k][s]: in s slots and at most k parts (or any number).
  const std::size_t size = static_cast<std::size_t>(row_tokens_) + 1;
  std::vector<double> most(layers_ * size, 0.0), before(size);
  Found found;
  std::vector<std::int32_t> stage_length;
  Taken taken(size);
  taken.reserve(static_cast<std::size_t>(table(items)) / size);
  std::vector<std::uint8_t> marks(size + 7, 0);
  struct Candidate {
    double worth;
    std::size_t stage;  // of its longest part
  };
  std::vector<Candidate> candidates;
  const std::size_t last = layers_ - 1;
  const std::size_t fewer = depth_limited_ ? last - 1 : last;
  for (std::size_t i = 0; i < lengths_.size(); ++i) {
    if (value[i] <= 0 || items[i] <= 0) continue;
    const auto length = static_cast<std::size_t>(lengths_[i]);
    Candidate candidate{0, 0};
    for (std::int64_t copy = copies(i, items[i]); copy > 0; --copy) {
      const double worth = value[i] + most[fewer * size + size - 1 - length];
      if (worth > candidate.worth) candidate = {worth, stage_length.size()};
      stage_length.push_back(static_cast<std::int32_t>(i));
      std::fill(marks.begin(), marks.begin() + static_cast<std::ptrdiff_t>(length), std::uint8_t{0});
      if (depth_limited_) {
        for (std::size_t k = last; k > 0; --k) {
          relax(&most[(k - 1) * size], &most[k * size + length], marks.data() + length, size - length, value[i]);
          taken.add_row(marks);
        }
      } else {
        std::copy(most.begin(), most.end(), before.begin());
        relax(before.data(), &most[length], marks.data() + length, size - length, value[i]);
        taken.add_row(marks);
      }
    }
    found.most = std::max(found.most, candidate.worth);
    if (candidate.worth > above) candidates.push_back(candidate);
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.worth > b.worth; });

  std::vector<int> uses(lengths_.size(), 0);
  for (const Candidate& candidate : candidates) {
    if (found.strategies.size() == limit) break;
    Strategy strategy{candidate.worth, {stage_length[candidate.stage]}};
    std::size_t layer = fewer;
    std::size_t slots = size - 1 - static_cast<std::size_t>(lengths_[static_cast<std::size_t>(stage_length[candidate.stage])]);
    for (std::size_t stage = candidate.stage; stage-- > 0;) {
      // Layer 0, of a limit, takes nothing and has no row; the rows of a stage start with the last layer.
      if (depth_limited_ && layer == 0) break;
      const std::size_t row = depth_limited_ ? stage * last + last - layer : stage;
      if (!taken.at(row, slots)) continue;
      strategy.parts.push_back(stage_length[stage]);
      slots -= static_cast<std::size_t>(lengths_[static_cast<std::size_t>(stage_length[stage])]);
      if (depth_limited_) --layer;
    }
    const auto used_up = [&](std::int32_t part) { return uses[static_cast<std::size_t>(part)] >= max_uses; };
    if (std::any_of(strategy.parts.begin(), strategy.parts.end(), used_up)) continue;
    for (std::size_t p = 0; p < strategy.parts.size(); ++p) {
      if (p == 0 || strategy.parts[p] != strategy.parts[p - 1]) ++uses[static_cast<std::size_t>(strategy.parts[p])];
    }
    found.strategies.push_back(std::move(strategy));
  }
  return found;
}

}  // namespace shardpack
