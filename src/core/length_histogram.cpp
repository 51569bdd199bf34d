#include "shardpack/length_histogram.h"

#include <cmath>
#include <iterator>
#include <string>

#include "base/checked.h"
#include "base/wide.h"
#include "shardpack/error.h"

namespace shardpack {

LengthHistogram::LengthHistogram(std::span<const LengthCount> counts) {
  for (const LengthCount& entry : counts) add(entry.length, entry.count);
}

void LengthHistogram::add(std::int64_t length, std::int64_t count) {
  if (length < 0) throw Error(ErrorCode::bad_data, "a length is negative: " + std::to_string(length));
  if (count < 0) {
    throw Error(ErrorCode::bad_data, "the count of length " + std::to_string(length) + " is negative: " + std::to_string(count));
  }
  if (count == 0) return;
  // Both totals before either is kept: a refused addition changes nothing. A single count is below its total.
  const std::int64_t sequences = checked_add(sequences_, count, "the number of sequences");
  const std::int64_t tokens = checked_add(tokens_, checked_mul(length, count, "the number of tokens"), "the number of tokens");
  if (const auto at = static_cast<std::size_t>(length); at < dense_.size()) {
    dense_[at] += count;
  } else {
    sparse_[length] += count;
    move_to_dense();
  }
  sequences_ = sequences;
  tokens_ = tokens;
}

void LengthHistogram::move_to_dense() {
  const auto end = sparse_.lower_bound(kDenseLengths);
  if (end == sparse_.begin()) return;
  const auto wanted = static_cast<std::size_t>(std::prev(end)->first) + 1;
  if (wanted > dense_.size() + kSlotsPerNode * sparse_.size()) return;
  dense_.resize(wanted);
  for (auto entry = sparse_.begin(); entry != end; ++entry) dense_[static_cast<std::size_t>(entry->first)] = entry->second;
  sparse_.erase(sparse_.begin(), end);
}

void LengthHistogram::merge(const LengthHistogram& other) {
  for (const LengthCount& entry : other.counts()) add(entry.length, entry.count);
}

std::vector<LengthCount> LengthHistogram::counts() const {
  std::vector<LengthCount> result;
  for (std::size_t length = 0; length < dense_.size(); ++length) {
    if (dense_[length] != 0) result.push_back({static_cast<std::int64_t>(length), dense_[length]});
  }
  for (const auto& [length, count] : sparse_) result.push_back({length, count});
  return result;
}

std::int64_t LengthHistogram::count(std::int64_t length) const {
  if (length >= 0 && static_cast<std::size_t>(length) < dense_.size()) return dense_[static_cast<std::size_t>(length)];
  const auto found = sparse_.find(length);
  return found == sparse_.end() ? 0 : found->second;
}

std::int64_t LengthHistogram::min_length() const {
  for (std::size_t length = 1; length < dense_.size(); ++length) {
    if (dense_[length] != 0) return static_cast<std::int64_t>(length);
  }
  const auto first = sparse_.upper_bound(0);
  return first == sparse_.end() ? 0 : first->first;
}

std::int64_t LengthHistogram::max_length() const {
  // The last dense entry was made for a length that occurs, so it is never 0.
  if (!sparse_.empty()) return sparse_.rbegin()->first;
  return dense_.empty() ? 0 : static_cast<std::int64_t>(dense_.size()) - 1;
}

double LengthHistogram::mean_length() const {
  const std::int64_t filled = sequences_ - empty();
  return filled == 0 ? 0 : static_cast<double>(tokens_) / static_cast<double>(filled);
}

std::int64_t LengthHistogram::quantile(double q) const {
  // In millionths, so that 0.07 of 100 sequences is 7 of them although the double nearest to 0.07 is a little more.
  constexpr std::int64_t kScale = 1'000'000;
  ensure(q >= 0 && q <= 1, "a quantile lies between 0 and 1");
  const Int128 product = static_cast<Int128>(std::llround(q * kScale)) * (sequences_ - empty());
  const auto rank = static_cast<std::int64_t>((product + kScale - 1) / kScale);

  std::int64_t seen = 0;
  for (const LengthCount& entry : counts()) {
    if (entry.length == 0) continue;
    seen += entry.count;
    if (seen >= rank) return entry.length;
  }
  return 0;
}

}  // namespace shardpack
