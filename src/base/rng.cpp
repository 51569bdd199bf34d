#include "base/rng.h"

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

void RandomStream::values(std::uint64_t first_index, std::span<std::uint64_t> out) const {
  constexpr std::size_t kLanes = 8;  // the same ten rounds, side by side for the vector units
  for (std::size_t begin = 0; begin < out.size(); begin += kLanes) {
    std::array<std::uint32_t, kLanes> c0, c1, c2, c3;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t index = first_index + begin + lane;
      c0[lane] = static_cast<std::uint32_t>(index);
      c1[lane] = static_cast<std::uint32_t>(index >> 32);
      c2[lane] = purpose_;
      c3[lane] = stream_;
    }
    std::array<std::uint32_t, 2> key = key_;
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

}  // namespace shardpack
