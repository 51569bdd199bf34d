// Every form of the loops over ids against numbers of 128 bits and the standard library, at every length around a vector's width.
#include "core/id_loops.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "base/wide.h"
#include "support/catch.h"

namespace shardpack {
namespace {

std::uint64_t expected_sum(std::span<const std::uint64_t> keys, std::span<const std::uint64_t> ids) {
  Uint128 sum = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) sum += static_cast<Uint128>(keys[i]) * ids[i] + keys[i];
  return static_cast<std::uint64_t>(sum);
}

KeySums sums_of(const IdLoops& form, const std::uint64_t* low, const std::uint64_t* high, std::span<const std::uint16_t> ids) {
  return form.sums_u16(low, high, ids);
}
KeySums sums_of(const IdLoops& form, const std::uint64_t* low, const std::uint64_t* high, std::span<const std::uint32_t> ids) {
  return form.sums_u32(low, high, ids);
}
IdRange range_of(const IdLoops& form, std::span<const std::uint16_t> ids) { return form.range_u16(ids); }
IdRange range_of(const IdLoops& form, std::span<const std::uint32_t> ids) { return form.range_u32(ids); }

template <class Id>
void check_all_lengths() {
  std::mt19937_64 random(7);
  constexpr std::size_t kMost = 70, kShifts = 32;  // the longest span, and where it may begin
  for (std::size_t length = 0; length <= kMost; ++length) {
    const std::size_t shift = random() % kShifts;
    // Exactly as long as they are read, so that the address sanitizer sees a load beyond the end.
    std::vector<std::uint64_t> low(shift + length), high(shift + length);
    std::vector<Id> ids(shift + length);
    for (std::uint64_t& key : low) key = random();
    for (std::uint64_t& key : high) key = random();
    for (Id& id : ids) id = static_cast<Id>(random());
    if (length > 0) ids[shift + random() % length] = std::numeric_limits<Id>::max();
    const std::span<const Id> part = std::span<const Id>(ids).subspan(shift);
    const std::span<const std::uint64_t> low_part = std::span(low).subspan(shift), high_part = std::span(high).subspan(shift);
    const std::vector<std::uint64_t> wide(part.begin(), part.end());
    for (const IdLoops& form : id_loops()) {
      INFO(form.name << ", length " << length << ", shift " << shift);
      const KeySums sums = sums_of(form, low_part.data(), high_part.data(), part);
      CHECK(sums.low == expected_sum(low_part, wide));
      CHECK(sums.high == expected_sum(high_part, wide));
      if (length == 0) continue;
      const IdRange range = range_of(form, part);
      CHECK(range.least == *std::min_element(wide.begin(), wide.end()));
      CHECK(range.greatest == *std::max_element(wide.begin(), wide.end()));
    }
  }
}

TEST_CASE("sums of keys and ids are the same for every processor", "[id_loops]") {
  check_all_lengths<std::uint16_t>();
  check_all_lengths<std::uint32_t>();
}

}  // namespace
}  // namespace shardpack
