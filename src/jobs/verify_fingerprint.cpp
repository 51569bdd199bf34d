#include "jobs/verify_fingerprint.h"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

#include "base/hash.h"
#include "base/rng.h"

namespace shardpack {

namespace {

constexpr std::int64_t kTablePositions = std::int64_t{1} << 20;  // 16 MiB for the two lanes

/// What a value counts as, by docs/formats.md: whole numbers as themselves whatever holds them, other numbers by their bits.
template <class Value>
std::uint64_t counted_as(Value value) {
  if constexpr (std::is_floating_point_v<Value>) {
    const double number = value;
    const auto bits = std::bit_cast<std::uint64_t>(number);
    constexpr double kLargest = 0x1p53;
    if (!(number >= -kLargest && number <= kLargest)) return bits;
    const auto whole = static_cast<std::int64_t>(number);
    // Converting back gives +0.0 for -0.0, whose bits differ.
    return std::bit_cast<std::uint64_t>(static_cast<double>(whole)) == bits ? static_cast<std::uint64_t>(whole) : bits;
  } else if constexpr (std::is_signed_v<Value>) {
    return static_cast<std::uint64_t>(std::int64_t{value});
  } else {
    return value;
  }
}

}  // namespace

FingerprintRecount::FingerprintRecount(std::int64_t longest_record, std::string_view column) {
  const auto count = static_cast<std::size_t>(std::clamp<std::int64_t>(longest_record, 0, kTablePositions));
  PositionKeys positions{std::vector<std::uint64_t>(count), std::vector<std::uint64_t>(count)};
  const RandomStream keys(0, RandomPurpose::position_key);
  for (std::size_t position = 0; position < count; ++position) {
    const auto key = keys.pair(position);
    positions.low[position] = key.first | 1;
    positions.high[position] = key.second | 1;
  }
  positions_ = std::make_shared<const PositionKeys>(std::move(positions));
  *this = of_column(column);
}

FingerprintRecount FingerprintRecount::of_column(std::string_view column) const {
  FingerprintRecount recount = *this;
  const auto key = RandomStream(0, RandomPurpose::column_key).pair(hash64(column));
  recount.column_low_ = key.first | 1;
  recount.column_high_ = key.second | 1;
  return recount;
}

template <class Value>
Fingerprint FingerprintRecount::of(SequenceId record, std::int64_t first_position, std::span<const Value> values) const {
  std::uint64_t low = 0, high = 0;
  const auto first = static_cast<std::size_t>(first_position);
  const std::size_t table = positions_->low.size();
  const std::size_t in_table = first < table ? std::min(values.size(), table - first) : 0;
  if (in_table > 0) {
    const std::uint64_t* const low_keys = &positions_->low[first];
    const std::uint64_t* const high_keys = &positions_->high[first];
    for (std::size_t i = 0; i < in_table; ++i) low += low_keys[i] * (counted_as(values[i]) + 1);
    for (std::size_t i = 0; i < in_table; ++i) high += high_keys[i] * (counted_as(values[i]) + 1);
  }
  const RandomStream keys(0, RandomPurpose::position_key);
  for (std::size_t i = in_table; i < values.size(); ++i) {
    const auto key = keys.pair(first + i);
    low += (key.first | 1) * (counted_as(values[i]) + 1);
    high += (key.second | 1) * (counted_as(values[i]) + 1);
  }
  const auto of_record = RandomStream(0, RandomPurpose::record_key).pair(static_cast<std::uint64_t>(record));
  return {low * column_low_ * (of_record.first | 1), high * column_high_ * (of_record.second | 1)};
}

Fingerprint FingerprintRecount::of_text(SequenceId record, std::string_view text) const {
  const std::uint64_t hash = hash64(text);
  return of(record, 0, std::span<const std::uint64_t>(&hash, 1));
}

template Fingerprint FingerprintRecount::of(SequenceId, std::int64_t, std::span<const std::uint8_t>) const;
template Fingerprint FingerprintRecount::of(SequenceId, std::int64_t, std::span<const std::uint16_t>) const;
template Fingerprint FingerprintRecount::of(SequenceId, std::int64_t, std::span<const std::uint32_t>) const;
template Fingerprint FingerprintRecount::of(SequenceId, std::int64_t, std::span<const std::int32_t>) const;
template Fingerprint FingerprintRecount::of(SequenceId, std::int64_t, std::span<const std::int64_t>) const;
template Fingerprint FingerprintRecount::of(SequenceId, std::int64_t, std::span<const float>) const;
template Fingerprint FingerprintRecount::of(SequenceId, std::int64_t, std::span<const double>) const;

}  // namespace shardpack
