#include "jobs/verify_fingerprint.h"

#include <algorithm>

#include "base/hash.h"
#include "base/rng.h"

namespace shardpack {

namespace {
constexpr std::int64_t kTablePositions = std::int64_t{1} << 20;  // 16 MiB for the two lanes
}

FingerprintRecount::FingerprintRecount(std::int64_t longest_record, std::string_view column) {
  const auto of_column = RandomStream(0, RandomPurpose::column_key).pair(hash64(column));
  column_low_ = of_column.first | 1;
  column_high_ = of_column.second | 1;
  const auto positions = static_cast<std::size_t>(std::clamp<std::int64_t>(longest_record, 0, kTablePositions));
  low_.resize(positions);
  high_.resize(positions);
  const RandomStream keys(0, RandomPurpose::position_key);
  for (std::size_t position = 0; position < positions; ++position) {
    const auto key = keys.pair(position);
    low_[position] = key.first | 1;
    high_[position] = key.second | 1;
  }
}

template <class Id>
Fingerprint FingerprintRecount::of(SequenceId record, std::int64_t first_position, std::span<const Id> ids) const {
  std::uint64_t low = 0, high = 0;
  const auto first = static_cast<std::size_t>(first_position);
  const std::size_t in_table = first < low_.size() ? std::min(ids.size(), low_.size() - first) : 0;
  if (in_table > 0) {
    const std::uint64_t* const low_keys = &low_[first];
    const std::uint64_t* const high_keys = &high_[first];
    for (std::size_t i = 0; i < in_table; ++i) low += low_keys[i] * (std::uint64_t{ids[i]} + 1);
    for (std::size_t i = 0; i < in_table; ++i) high += high_keys[i] * (std::uint64_t{ids[i]} + 1);
  }
  const RandomStream keys(0, RandomPurpose::position_key);
  for (std::size_t i = in_table; i < ids.size(); ++i) {
    const auto key = keys.pair(first + i);
    low += (key.first | 1) * (std::uint64_t{ids[i]} + 1);
    high += (key.second | 1) * (std::uint64_t{ids[i]} + 1);
  }
  const auto of_record = RandomStream(0, RandomPurpose::record_key).pair(static_cast<std::uint64_t>(record));
  return {low * column_low_ * (of_record.first | 1), high * column_high_ * (of_record.second | 1)};
}

template Fingerprint FingerprintRecount::of(SequenceId, std::int64_t, std::span<const std::uint16_t>) const;
template Fingerprint FingerprintRecount::of(SequenceId, std::int64_t, std::span<const std::uint32_t>) const;

}  // namespace shardpack
