#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "shardpack/error.h"

namespace shardpack {

std::string with_commas(std::int64_t value) {
  const std::string digits = std::to_string(value);
  const std::size_t sign = value < 0 ? 1 : 0;
  std::string text = digits.substr(0, sign);
  for (std::size_t at = sign; at < digits.size(); ++at) {
    if (at > sign && (digits.size() - at) % 3 == 0) text += ',';
    text += digits[at];
  }
  return text;
}

std::string short_count(std::int64_t value) {
  if (value < 10'000'000) return with_commas(value);
  if (value < 10'000'000'000) return fmt::format("{:.1f} M", static_cast<double>(value) / 1e6);
  return fmt::format("{:.1f} G", static_cast<double>(value) / 1e9);
}

std::string short_bytes(std::int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::int64_t parse_size(std::string_view text, std::string_view option) {
  const auto fail = [&](std::string_view why) -> std::int64_t {
    throw Error(ErrorCode::usage, fmt::format("{} {}: {}; expected a size such as 512M, 1.5G or 4096", option, text, why));
  };
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (problem != std::errc{} || value < 0) return fail("not a size");
  std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  double scale = 1;
  if (!unit.empty()) {
    const std::size_t power = std::string_view("KMGT").find(static_cast<char>(unit[0] & ~0x20));
    if (power == std::string_view::npos) return fail("unknown unit");
    unit.remove_prefix(1);
    if (!unit.empty() && unit != "i" && unit != "iB" && unit != "B") return fail("unknown unit");
    scale = std::pow(1024.0, static_cast<double>(power + 1));
  }
  const double bytes = value * scale;
  if (bytes >= 9.2e18) return fail("too large");
  return static_cast<std::int64_t>(bytes);
}

}  // namespace shardpack
