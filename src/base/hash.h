// XXH3-128 (xxHash library): fast and stable. Detects damage; it is not a defence against an attacker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace shardpack {

struct HashForm;

/// Streaming hash; 32 hex digits, high half first, as `xxhsum -H2` prints.
class StreamHash {
 public:
  StreamHash();  ///< in the fastest form that the processor runs
  explicit StreamHash(const HashForm& form);
  ~StreamHash();
  StreamHash(StreamHash&&) noexcept;
  StreamHash& operator=(StreamHash&&) noexcept;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view bytes) { update(std::as_bytes(std::span(bytes))); }
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string hash_hex(std::string_view bytes);
std::uint64_t hash64(std::string_view bytes);  ///< XXH3-64

}  // namespace shardpack
