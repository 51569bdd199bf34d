#include "core/id_loops.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/prefetch.h"
#include "base/processor.h"

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

template <class Id>
IdRange any_range(std::span<const Id> ids) {
  return plain_range(ids);
}

#if defined(__x86_64__)

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

/// Ids are summed sequence by sequence, and behind one that ends comes another in the same block or piece.
template <class Id>
[[gnu::always_inline]] inline void fetch_ahead(const Id* ids) {
  constexpr std::size_t kAheadBytes = 2048;
  const auto place = reinterpret_cast<std::uintptr_t>(ids);
  prefetch_to_read(place + kAheadBytes, 1);
}

template <class Id>
[[gnu::target("avx2")]] KeySums avx2_sums(const std::uint64_t* low, const std::uint64_t* high, std::span<const Id> ids) {
  LaneSum of_low, of_high;
  const std::size_t whole = ids.size() / 4 * 4;
  for (std::size_t i = 0; i < whole; i += 4) {
    if (i % (kCacheLineBytes / sizeof(Id)) == 0) fetch_ahead(ids.data() + i);
    const __m256i four = four_ids(ids.data() + i);
    of_low.add(low + i, four);
    of_high.add(high + i, four);
  }
  const KeySums rest = plain_sums(low + whole, high + whole, ids.subspan(whole));
  return {of_low.total() + rest.low, of_high.total() + rest.high};
}

template <class Id>
[[gnu::target("avx2")]] IdRange avx2_range(std::span<const Id> ids) {
  return plain_range(ids);
}

// With masks where none is needed: g++ 12 warns of the undefined value that the other intrinsics begin with.

[[gnu::target("avx512f")]] inline std::uint64_t sum_of_lanes(__m512i lanes) {
  return sum_of_lanes(
      _mm256_add_epi64(_mm512_maskz_extracti64x4_epi64(0xff, lanes, 0), _mm512_maskz_extracti64x4_epi64(0xff, lanes, 1)));
}

/// Eight ids, or as many of them as `mask` has bits, and zeros.
[[gnu::target("avx512f,avx512vl,avx512bw")]] inline __m512i eight_ids(__mmask8 mask, const std::uint16_t* ids) {
  return _mm512_maskz_cvtepu16_epi64(mask, _mm_maskz_loadu_epi16(mask, ids));
}
[[gnu::target("avx512f,avx512vl,avx512bw")]] inline __m512i eight_ids(__mmask8 mask, const std::uint32_t* ids) {
  return _mm512_maskz_cvtepu32_epi64(mask, _mm256_maskz_loadu_epi32(mask, ids));
}

/// Both lanes of the fingerprint, with the 64-bit multiplication that AVX-512 has.
class WideSums {
 public:
  [[gnu::target("avx512f")]] WideSums() : low_(_mm512_setzero_si512()), high_(_mm512_setzero_si512()) {}

  template <class Id>
  [[gnu::target("avx512f,avx512vl,avx512bw,avx512dq"), gnu::always_inline]] inline void add(__mmask8 mask,
                                                                                            const std::uint64_t* low,
                                                                                            const std::uint64_t* high,
                                                                                            const Id* ids) {
    const __m512i values = _mm512_add_epi64(eight_ids(mask, ids), _mm512_set1_epi64(1));
    low_ = _mm512_add_epi64(low_, _mm512_mullo_epi64(_mm512_maskz_loadu_epi64(mask, low), values));
    high_ = _mm512_add_epi64(high_, _mm512_mullo_epi64(_mm512_maskz_loadu_epi64(mask, high), values));
  }

  [[gnu::target("avx512f")]] KeySums total() const { return {sum_of_lanes(low_), sum_of_lanes(high_)}; }

 private:
  __m512i low_, high_;
};

template <class Id>
[[gnu::target("avx512f,avx512vl,avx512bw,avx512dq")]] KeySums avx512_sums(const std::uint64_t* low, const std::uint64_t* high,
                                                                          std::span<const Id> ids) {
  WideSums sums;
  const std::size_t rest = ids.size() % 8, whole = ids.size() - rest;
  for (std::size_t i = 0; i < whole; i += 8) {
    if (i % (kCacheLineBytes / sizeof(Id)) == 0) fetch_ahead(ids.data() + i);
    sums.add(0xff, low + i, high + i, ids.data() + i);
  }
  if (rest > 0) sums.add(static_cast<__mmask8>((1U << rest) - 1), low + whole, high + whole, ids.data() + whole);
  return sums.total();
}

#endif

const IdLoops kLoops = id_loops().front();

}  // namespace

std::vector<IdLoops> id_loops() {
  std::vector<IdLoops> forms;
#if defined(__x86_64__)
  // The range waits for the second cache, with AVX-512 as with AVX2.
  if (has_avx512()) forms.push_back({"avx512", avx512_sums, avx512_sums, avx2_range, avx2_range});
  if (has_avx2()) forms.push_back({"avx2", avx2_sums, avx2_sums, avx2_range, avx2_range});
#endif
  forms.push_back({"any", plain_sums, plain_sums, any_range, any_range});
  return forms;
}

KeySums key_sums(const std::uint64_t* low, const std::uint64_t* high, std::span<const std::uint16_t> ids) {
  return kLoops.sums_u16(low, high, ids);
}
KeySums key_sums(const std::uint64_t* low, const std::uint64_t* high, std::span<const std::uint32_t> ids) {
  return kLoops.sums_u32(low, high, ids);
}
IdRange id_range(std::span<const std::uint16_t> ids) { return kLoops.range_u16(ids); }
IdRange id_range(std::span<const std::uint32_t> ids) { return kLoops.range_u32(ids); }

}  // namespace shardpack
