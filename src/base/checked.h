// Arithmetic that refuses to wrap, and the always-on precondition check.
#pragma once

#include <cstdint>
#include <string_view>

namespace shardpack {

/// \throws Error{limit} naming `what` when the result leaves 63 bits.
std::int64_t checked_add(std::int64_t a, std::int64_t b, std::string_view what);
std::int64_t checked_mul(std::int64_t a, std::int64_t b, std::string_view what);

/// \throws Error{internal} when `holds` is false: a bug of ours, never a fault of the input. Active in release builds too.
void ensure(bool holds, std::string_view what);

/// ceil(a / b) for a >= 0, b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0); }

}  // namespace shardpack
