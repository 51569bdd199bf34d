#include "core/fingerprint_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <type_traits>
#include <utility>

#include "base/hash.h"
#include "base/rng.h"
#include "core/column_values.h"
#include "core/id_loops.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {
struct OddPair {
  std::uint64_t low, high;
};
OddPair draw(RandomPurpose purpose, std::uint64_t index) {
  const auto [low, high] = RandomStream(0, purpose).pair(index);
  return {low | 1, high | 1};
}
}  // namespace

std::string Fingerprint::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

Fingerprint Fingerprint::from_hex(const std::string& text) {
  Fingerprint result;
  const char* const middle = text.data() + 16;
  const auto parse = [&](const char* from, const char* to, std::uint64_t& value) {
    return std::from_chars(from, to, value, 16).ptr == to;
  };
  if (text.size() != 32 || !parse(text.data(), middle, result.high) || !parse(middle, middle + 16, result.low)) {
    throw Error(ErrorCode::bad_data, fmt::format("'{}' is not a fingerprint of 32 hex digits", text));
  }
  return result;
}

FingerprintKeys::FingerprintKeys(std::int64_t longest_sequence, std::string_view column) {
  const OddPair key = draw(RandomPurpose::column_key, hash64(column));
  column_ = {key.low, key.high};
  const auto positions = static_cast<std::size_t>(std::clamp<std::int64_t>(longest_sequence, 0, kMaxTablePositions));
  Table table{std::vector<std::uint64_t>(positions), std::vector<std::uint64_t>(positions)};
  for (std::size_t position = 0; position < positions; ++position) {
    const OddPair pair = draw(RandomPurpose::position_key, position);
    table.low[position] = pair.low;
    table.high[position] = pair.high;
  }
  table_ = std::make_shared<const Table>(std::move(table));
}

FingerprintKeys FingerprintKeys::of_column(std::string_view column) const {
  FingerprintKeys keys = *this;
  const OddPair key = draw(RandomPurpose::column_key, hash64(column));
  keys.column_ = {key.low, key.high};
  return keys;
}

template <class Value>
Fingerprint FingerprintKeys::sum(SequenceId record, std::int64_t first_position, std::span<const Value> values) const {
  Fingerprint total;
  const std::int64_t in_table =
      std::clamp<std::int64_t>(std::ssize(table_->low) - first_position, 0, static_cast<std::int64_t>(values.size()));
  const std::int64_t first_key = in_table > 0 ? first_position : 0;
  const std::uint64_t* const low = table_->low.data() + first_key;
  const std::uint64_t* const high = table_->high.data() + first_key;
  if constexpr (std::is_same_v<Value, std::uint16_t> || std::is_same_v<Value, std::uint32_t>) {
    const KeySums sums = key_sums(low, high, values.first(static_cast<std::size_t>(in_table)));
    total = {sums.low, sums.high};
  } else {
    for (std::int64_t i = 0; i < in_table; ++i) {
      const std::uint64_t value = fingerprint_value(values[static_cast<std::size_t>(i)]) + 1;
      total.low += low[i] * value;
      total.high += high[i] * value;
    }
  }
  for (std::int64_t i = in_table; i < static_cast<std::int64_t>(values.size()); ++i) {
    const OddPair key = draw(RandomPurpose::position_key, static_cast<std::uint64_t>(first_position + i));
    const std::uint64_t value = fingerprint_value(values[static_cast<std::size_t>(i)]) + 1;
    total.low += key.low * value;
    total.high += key.high * value;
  }
  const OddPair of_record = draw(RandomPurpose::record_key, static_cast<std::uint64_t>(record));
  total.low *= of_record.low * column_.low;
  total.high *= of_record.high * column_.high;
  return total;
}

Fingerprint FingerprintKeys::of(SequenceId record, std::int64_t first, std::span<const std::uint16_t> values) const {
  return sum(record, first, values);
}
Fingerprint FingerprintKeys::of(SequenceId record, std::int64_t first, std::span<const std::uint32_t> values) const {
  return sum(record, first, values);
}

Fingerprint FingerprintKeys::of(SequenceId record, std::int64_t first, ValueType type, const std::byte* values,
                                std::int64_t count) const {
  return visit_values(type, values, count, [&](auto typed) { return sum(record, first, typed); });
}

Fingerprint FingerprintKeys::of_placed(SequenceId record, std::span<const std::int64_t> places, ValueType type,
                                       const std::byte* values) const {
  return visit_values(type, values, static_cast<std::int64_t>(places.size()), [&](auto typed) {
    Fingerprint total;
    for (std::size_t i = 0; i < typed.size(); ++i) total += sum(record, places[i], typed.subspan(i, 1));
    return total;
  });
}

Fingerprint FingerprintKeys::of_text(SequenceId record, std::string_view text) const {
  const std::uint64_t hash = hash64(text);
  return sum(record, 0, std::span<const std::uint64_t>(&hash, 1));
}

}  // namespace shardpack
