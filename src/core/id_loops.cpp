#include "core/id_loops.h"

#include <algorithm>
#include <cstddef>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace shardpack {

namespace {

template <class Id>
KeySums plain_sums(const std::uint64_t* low, const std::uint64_t* high, std::span<const Id> ids) {
  KeySums total;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::uint64_t value = std::uint64_t{ids[i]} + 1;
    total.low += low[i] * value;
    total.high += high[i] * value;
  }
  return total;
}

/// Inlined, so that each form is compiled for its processor.
template <class Id>
[[gnu::always_inline]] inline IdRange plain_range(std::span<const Id> ids) {
  Id least = ids[0], greatest = ids[0];
  for (const Id id : ids) {
    least = std::min(least, id);
    greatest = std::max(greatest, id);
  }
  return {least, greatest};
}

}  // namespace

namespace portable {
KeySums key_sums(const std::uint64_t* low, const std::uint64_t* high, std::span<const std::uint16_t> ids) {
  return plain_sums(low, high, ids);
}
KeySums key_sums(const std::uint64_t* low, const std::uint64_t* high, std::span<const std::uint32_t> ids) {
  return plain_sums(low, high, ids);
}
IdRange id_range(std::span<const std::uint16_t> ids) { return plain_range(ids); }
IdRange id_range(std::span<const std::uint32_t> ids) { return plain_range(ids); }
}  // namespace portable

#if defined(__x86_64__)

namespace {

const bool kHasAvx2 = __builtin_cpu_supports("avx2") != 0;

[[gnu::target("avx2")]] inline __m256i four_ids(const std::uint16_t* ids) {
  return _mm256_cvtepu16_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(ids)));
}
[[gnu::target("avx2")]] inline __m256i four_ids(const std::uint32_t* ids) {
  return _mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(ids)));
}

[[gnu::target("avx2")]] inline std::uint64_t sum_of_lanes(__m256i lanes) {
  const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(two)) + static_cast<std::uint64_t>(_mm_extract_epi64(two, 1));
}

/// One lane of the fingerprint. There is no 64-bit multiplication, so with key = a + 2^32 b the sum of key * (id + 1) is
/// sum(a * id) + 2^32 sum(b * id) + sum(key), each product of two 32-bit numbers.
class LaneSum {
 public:
  [[gnu::target("avx2")]] LaneSum() : of_low_(_mm256_setzero_si256()), of_high_(_mm256_setzero_si256()) {}

  [[gnu::target("avx2"), gnu::always_inline]] inline void add(const std::uint64_t* keys, __m256i ids) {
    const __m256i key = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys));
    const __m256i high = _mm256_srli_epi64(key, 32);
    of_low_ = _mm256_add_epi64(of_low_, _mm256_add_epi64(key, _mm256_mul_epu32(key, ids)));
    of_high_ = _mm256_add_epi64(of_high_, _mm256_mul_epu32(high, ids));
  }

  [[gnu::target("avx2")]] std::uint64_t total() const { return sum_of_lanes(of_low_) + (sum_of_lanes(of_high_) << 32); }

 private:
  __m256i of_low_, of_high_;
};

template <class Id>
[[gnu::target("avx2")]] KeySums avx2_sums(const std::uint64_t* low, const std::uint64_t* high, std::span<const Id> ids) {
  LaneSum of_low, of_high;
  const std::size_t whole = ids.size() / 4 * 4;
  for (std::size_t i = 0; i < whole; i += 4) {
    const __m256i four = four_ids(ids.data() + i);
    of_low.add(low + i, four);
    of_high.add(high + i, four);
  }
  const KeySums rest = plain_sums(low + whole, high + whole, ids.subspan(whole));
  return {of_low.total() + rest.low, of_high.total() + rest.high};
}

[[gnu::target("avx2")]] IdRange avx2_range(std::span<const std::uint16_t> ids) { return plain_range(ids); }
[[gnu::target("avx2")]] IdRange avx2_range(std::span<const std::uint32_t> ids) { return plain_range(ids); }

}  // namespace

KeySums key_sums(const std::uint64_t* low, const std::uint64_t* high, std::span<const std::uint16_t> ids) {
  return kHasAvx2 ? avx2_sums(low, high, ids) : plain_sums(low, high, ids);
}
KeySums key_sums(const std::uint64_t* low, const std::uint64_t* high, std::span<const std::uint32_t> ids) {
  return kHasAvx2 ? avx2_sums(low, high, ids) : plain_sums(low, high, ids);
}
IdRange id_range(std::span<const std::uint16_t> ids) { return kHasAvx2 ? avx2_range(ids) : plain_range(ids); }
IdRange id_range(std::span<const std::uint32_t> ids) { return kHasAvx2 ? avx2_range(ids) : plain_range(ids); }

#endif

}  // namespace shardpack
