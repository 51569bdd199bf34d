// XXH3-128 in each form that this processor runs: digests that `xxhsum -H2` printed, and the form of every processor at all
// lengths around the loop's blocks, whichever way the bytes are cut.
#include "base/hash.h"

#include <cstddef>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash_forms.h"
#include "support/catch.h"

namespace shardpack {
namespace {

/// Bytes of no period that matters: the i-th is i * i + i / 256, mod 256.
std::string sample(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(static_cast<unsigned char>(i * i + i / 256));
  return bytes;
}

TEST_CASE("hashes are those of xxhsum", "[hash]") {
  const std::vector<std::pair<std::size_t, std::string_view>> cases = {
      {0, "99aa06d3014798d86001c324468d497f"},      {1, "a6cd5e9392000f6ac44bdff4074eecdb"},
      {16, "1f875b82c9128a626f3d2a156f5a39dc"},     {128, "f93fa335257613ae4962f24beaaf8aad"},
      {200, "50729fe53e4aedc25926da51860b3443"},    {240, "6166e43a373c76ba47c4871bcda58f49"},
      {241, "76217135944bb7585f2350ac407e387b"},    {256, "63506f085e5c9504a8c4c8ba609f2c53"},
      {257, "a1a149c5a5f1c6a376d4c0ca11640cf3"},    {1'024, "b9bbd62b6b18de0c4d7058d29ad3b4da"},
      {1'025, "255375e72464b38db9bb8fe3c724bb04"},  {4'096, "f0991fc1d5a63547bfae74a9996e966d"},
      {10'000, "8dad580586908e17a879cfee8a5979fd"}, {100'000, "d35421d235e5d1714aebf23d41301cd1"},
  };
  for (const auto& [count, expected] : cases) {
    INFO(count << " bytes");
    const std::string bytes = sample(count);
    CHECK(hash_hex(bytes) == expected);
    StreamHash hash;
    hash.update(bytes);
    CHECK(hash.hex() == expected);
  }
}

TEST_CASE("every form gives the same hash, however the bytes are cut", "[hash]") {
  const std::string bytes = sample(40'000);
  std::mt19937_64 random(11);
  for (const HashForm& form : hash_forms()) {
    INFO(form.name);
    // Around the ends of what is held back (256 bytes), of a block (1,024) and of several; each start aligned in another way.
    for (const std::size_t middle : {0, 256, 512, 1'024, 2'048, 4'096, 39'800}) {
      for (std::size_t count = middle < 70 ? 0 : middle - 70; count <= middle + 70; ++count) {
        const std::string_view part = std::string_view(bytes).substr(count % 64, count);
        StreamHash whole(form), cut(form);
        whole.update(part);
        for (std::size_t at = 0; at < part.size();) {
          const std::size_t step = random() % 3 == 0 ? random() % 70 : random() % 2'000;
          cut.update(part.substr(at, step));
          at += step;
        }
        INFO(count << " bytes");
        REQUIRE(whole.hex() == hash_hex(part));
        REQUIRE(cut.hex() == hash_hex(part));
      }
    }
  }
}

}  // namespace
}  // namespace shardpack
