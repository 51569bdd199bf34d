#include "io/formats/integer_list.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

namespace shardpack {

namespace {

static_assert(std::endian::native == std::endian::little, "the first character is the lowest byte of a word");

const char* skip_blanks(const char* text) {
  while (*text == ' ' || *text == '\t' || *text == '\r') ++text;
  return text;
}

/// How many of the word's characters, from the first on, are digits.
int leading_digits(std::uint64_t word) {
  // A byte of 0x30 to 0x39 keeps its high half as it is, also after 6 is added; no sum carries into the next byte, as bytes from
  // 0xfa on are none of a number and end it in the byte below or at themselves.
  const std::uint64_t high = word & 0xf0f0f0f0f0f0f0f0, raised = (word + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0;
  const std::uint64_t others = (high ^ 0x3030303030303030) | (raised ^ 0x3030303030303030);
  return others == 0 ? 8 : std::countr_zero(others) / 8;
}

/// The number that eight digits write, the first of them in the lowest byte.
std::uint64_t value_of_digits(std::uint64_t digits) {
  digits = (digits & 0x0f0f0f0f0f0f0f0f) * 2561 >> 8;
  digits = (digits & 0x00ff00ff00ff00ff) * 6553601 >> 16;
  return (digits & 0x0000ffff0000ffff) * 42949672960001 >> 32;
}

/// Steps over the digits at `text` and gives their value; false when there are none, one 0 too many in front, or too many for
/// Value.
[[gnu::always_inline]] inline bool read_digits(const char*& text, std::uint64_t most, std::uint64_t& value) {
  std::uint64_t word;
  std::memcpy(&word, text, sizeof word);
  const int digits = leading_digits(word);
  if (digits == 0 || (*text == '0' && digits > 1)) return false;
  if (digits < 8) {
    // Moved up so that zeros fill in from below, which stand in front of the number.
    value = value_of_digits(word << (64 - 8 * digits));
    text += digits;
    return true;
  }
  value = value_of_digits(word);
  for (text += 8; *text >= '0' && *text <= '9'; ++text) {
    const auto digit = static_cast<std::uint64_t>(*text - '0');
    if (value > (most - digit) / 10) return false;
    value = value * 10 + digit;
  }
  return value <= most;
}

template <class Value>
bool read_list(const char* text, std::vector<Value>& out) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<Value>::max());
  const std::size_t before = out.size();
  std::array<Value, 512> values;  // on their way to `out`
  std::size_t count = 0;
  if (*text != '[') return false;
  text = skip_blanks(text + 1);
  bool ended = *text == ']';
  while (!ended) {
    const bool negative = std::is_signed_v<Value> && *text == '-';
    std::uint64_t value = 0;
    if (!read_digits(text += negative ? 1 : 0, kMost, value)) break;
    if (count == values.size()) {
      out.insert(out.end(), values.begin(), values.end());
      count = 0;
    }
    values[count++] = static_cast<Value>(negative ? 0 - value : value);
    if (*text != ',') text = skip_blanks(text);
    ended = *text == ']';
    if (!ended) {
      if (*text != ',') break;
      ++text;
      if (*text == ' ') ++text;  // as Python writes lists
      text = skip_blanks(text);
    }
  }
  if (!ended) {
    out.resize(before);
    return false;
  }
  out.insert(out.end(), values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count));
  return true;
}

}  // namespace

bool read_integer_list(const char* text, std::vector<std::uint32_t>& out) { return read_list(text, out); }
bool read_integer_list(const char* text, std::vector<std::int64_t>& out) { return read_list(text, out); }

}  // namespace shardpack
