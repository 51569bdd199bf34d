// A sum over tokens that does not depend on the order of work: equal sums before and after a rewrite prove that it lost,
// repeated and changed nothing.
#pragma once

#include <cstdint>
#include <string>

namespace shardpack {

/// Two independent 64-bit lanes, each a sum mod 2^64 of key(record ordinal, position, column) * (value + 1).
/// The keys are pseudo-random and odd (core/fingerprint_keys.h). Adds up over any cut of the data.
struct Fingerprint {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  Fingerprint& operator+=(const Fingerprint& other) {
    low += other.low;
    high += other.high;
    return *this;
  }
  friend Fingerprint operator+(Fingerprint a, const Fingerprint& b) { return a += b; }
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;

  /// 32 hex digits, high lane first.
  std::string hex() const;
  /// Inverse of hex(); Error{bad_data} on anything else.
  static Fingerprint from_hex(const std::string& text);
};

}  // namespace shardpack
