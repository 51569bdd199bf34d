#include "base/rng.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/processor.h"

namespace shardpack {

namespace {
constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;  // golden ratio, sqrt(3) - 1
}  // namespace

PhiloxBlock philox(PhiloxBlock c, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kMultiplier0 * c[0];
    const std::uint64_t p1 = kMultiplier1 * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return c;
}

namespace {

/// What RandomStream::values() draws.
struct Drawing {
  std::array<std::uint32_t, 2> key;
  std::uint32_t purpose, stream;
  std::uint64_t first_index;
};

void draw_anywhere(const Drawing& drawing, std::span<std::uint64_t> out) {
  constexpr std::size_t kLanes = 8;  // the same ten rounds, side by side for the vector units
  for (std::size_t begin = 0; begin < out.size(); begin += kLanes) {
    std::array<std::uint32_t, kLanes> c0, c1, c2, c3;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t index = drawing.first_index + begin + lane;
      c0[lane] = static_cast<std::uint32_t>(index);
      c1[lane] = static_cast<std::uint32_t>(index >> 32);
      c2[lane] = drawing.purpose;
      c3[lane] = drawing.stream;
    }
    std::array<std::uint32_t, 2> key = drawing.key;
    for (int round = 0; round < 10; ++round) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const std::uint64_t p0 = kMultiplier0 * c0[lane], p1 = kMultiplier1 * c2[lane];
        c0[lane] = static_cast<std::uint32_t>(p1 >> 32) ^ c1[lane] ^ key[0];
        c1[lane] = static_cast<std::uint32_t>(p1);
        c2[lane] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[lane] ^ key[1];
        c3[lane] = static_cast<std::uint32_t>(p0);
      }
      key[0] += kWeyl0;
      key[1] += kWeyl1;
    }
    const std::size_t count = std::min(kLanes, out.size() - begin);
    for (std::size_t lane = 0; lane < count; ++lane) out[begin + lane] = std::uint64_t{c1[lane]} << 32 | c0[lane];
  }
}

#if defined(__x86_64__)

[[gnu::target("avx2")]] inline __m256i each(std::uint64_t value) { return _mm256_set1_epi64x(static_cast<long long>(value)); }

/// Four blocks, each word in the low half of 64 bits: that is what is multiplied, and what comes to lie above it does not count.
struct FourBlocks {
  __m256i c0, c1, c2, c3;

  [[gnu::target("avx2")]] void round(__m256i key0, __m256i key1) {
    const __m256i p0 = _mm256_mul_epu32(each(kMultiplier0), c0), p1 = _mm256_mul_epu32(each(kMultiplier1), c2);
    c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1), key0);
    c1 = p1;
    c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3), key1);
    c3 = p0;
  }
  [[gnu::target("avx2")]] __m256i drawn() const { return _mm256_blend_epi32(c0, _mm256_slli_epi64(c1, 32), 0b10101010); }
};

[[gnu::target("avx2")]] FourBlocks four_blocks(const Drawing& drawing, std::uint64_t index) {
  const __m256i indices = _mm256_add_epi64(each(index), _mm256_set_epi64x(3, 2, 1, 0));
  return {indices, _mm256_srli_epi64(indices, 32), each(drawing.purpose), each(drawing.stream)};
}

[[gnu::target("avx2")]] void draw_avx2(const Drawing& drawing, std::span<std::uint64_t> out) {
  constexpr std::size_t kSets = 2, kLanes = 4 * kSets;  // side by side, for a multiplication takes several cycles
  std::size_t begin = 0;
  for (; begin + kLanes <= out.size(); begin += kLanes) {
    FourBlocks sets[kSets];
    for (std::size_t set = 0; set < kSets; ++set) sets[set] = four_blocks(drawing, drawing.first_index + begin + 4 * set);
    std::array<std::uint32_t, 2> key = drawing.key;
    for (int round = 0; round < 10; ++round) {
      const __m256i key0 = each(key[0]), key1 = each(key[1]);
      for (FourBlocks& set : sets) set.round(key0, key1);
      key[0] += kWeyl0;
      key[1] += kWeyl1;
    }
    for (std::size_t set = 0; set < kSets; ++set)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.data() + begin + 4 * set), sets[set].drawn());
  }
  Drawing rest = drawing;
  rest.first_index += begin;
  draw_anywhere(rest, out.subspan(begin));
}

#endif

auto* best_draw() {
#if defined(__x86_64__)
  if (has_avx2()) return draw_avx2;
#endif
  return draw_anywhere;
}

}  // namespace

void RandomStream::values(std::uint64_t first_index, std::span<std::uint64_t> out) const {
  static auto* const draw = best_draw();
  draw({key_, purpose_, stream_, first_index}, out);
}

}  // namespace shardpack
