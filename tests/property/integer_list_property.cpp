// Lists of whole numbers, read eight characters at a time, against a reader that goes character by character.
#include <rapidcheck.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "io/formats/integer_list.h"
#include "support/catch.h"

using namespace shardpack;

namespace {

/// The list's numbers, or nothing where the text does not begin with such a list as JSON has them.
template <class Value>
std::optional<std::vector<Value>> read_slowly(const std::string& text) {
  std::size_t at = 0;
  const auto skip = [&] {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r')) ++at;
  };
  const auto take = [&](char wanted) { return at < text.size() && text[at] == wanted && ++at > 0; };
  std::vector<Value> values;
  if (!take('[')) return std::nullopt;
  skip();
  if (take(']')) return values;
  do {
    skip();
    Value value{};
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (error != std::errc()) return std::nullopt;
    const std::size_t sign = text[at] == '-' ? 1 : 0;
    if (text[at + sign] == '0' && end != text.data() + at + sign + 1) return std::nullopt;  // a zero too many
    at = static_cast<std::size_t>(end - text.data());
    values.push_back(value);
    skip();
  } while (take(','));
  if (!take(']')) return std::nullopt;
  return values;
}

/// Appended behind what is there, or nothing is touched.
template <class Value>
void check_same(const std::string& text) {
  const std::optional<std::vector<Value>> expected = read_slowly<Value>(text);
  const std::string padded = text + std::string("\n7, 8]") + std::string(8, '\0');  // the next line, and what may be read
  std::vector<Value> values{5};
  RC_ASSERT(read_integer_list(padded.c_str(), values) == expected.has_value());
  RC_ASSERT(values.front() == Value{5});
  if (expected) {
    values.erase(values.begin());
    RC_ASSERT(values == *expected);
  } else {
    RC_ASSERT(values.size() == 1u);
  }
}

template <class Number>
std::string any_list() {
  std::string text = "[";
  const int count = *rc::gen::inRange(0, *rc::gen::element(3, 3, 3, 1200));
  for (int i = 0; i < count; ++i) {
    const int bits = *rc::gen::inRange(1, static_cast<int>(sizeof(Number)) * 8 + 1);
    auto number = *rc::gen::arbitrary<Number>();
    number = static_cast<Number>(number >> (sizeof(Number) * 8 - static_cast<std::size_t>(bits)));
    text += *rc::gen::element<std::string>("", "", " ", " \t") + std::to_string(number);
    if (i + 1 < count) text += *rc::gen::element<std::string>(",", ", ", ", ", " ,", ",  ");
  }
  return text + *rc::gen::element<std::string>("]", "]", "]", " ]", "", "]}", ",]", ".5]", "e1]", "x]", " 3]", "\"]");
}

}  // namespace

TEST_CASE("lists of whole numbers are read as character by character") {
  CHECK(rc::check("ids", [] { check_same<std::uint32_t>(any_list<std::uint32_t>()); }));
  CHECK(rc::check("whole numbers", [] { check_same<std::int64_t>(any_list<std::int64_t>()); }));
  CHECK(rc::check("ids with a sign or too large", [] { check_same<std::uint32_t>(any_list<std::int64_t>()); }));
  CHECK(rc::check("one character changed", [] {
    std::string text = any_list<std::int64_t>();
    text[*rc::gen::inRange<std::size_t>(0, text.size())] =
        *rc::gen::element('0', '-', ' ', ',', '9', '/', ':', '[', '\xfa', '\xff');
    check_same<std::int64_t>(text);
  }));
}

TEST_CASE("lists of whole numbers at the ends of their types") {
  for (const std::string text : {"[4294967295]", "[4294967296]", "[9223372036854775807]", "[-9223372036854775807, 0]",
                                 "[9223372036854775808]", "[18446744073709551616]", "[99999999]", "[12345678,123456789]", "[00]",
                                 "[0]", "[-0]", "[-]", "[]", "[ ]", "[", "[1", "[1 2]"}) {
    CAPTURE(text);
    CHECK(rc::check("ids", [&] { check_same<std::uint32_t>(text); }));
    CHECK(rc::check("whole numbers", [&] { check_same<std::int64_t>(text); }));
  }
}
