#include "io/json.h"

#include <string>

#include "shardpack/error.h"
#include "support/catch.h"

using namespace shardpack;

namespace {
/// what() of the Error{bad_data} that `action` throws.
template <class Action>
std::string refusal(Action action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_data);
    return error.what();
  }
  return "no error";
}
std::string parse_refusal(std::string_view text) {
  return refusal([&] { Json::parse(text, "plan.json"); });
}
}  // namespace

TEST_CASE("json values are read with their own types") {
  const Json json =
      Json::parse(R"({"z": [1, -2, 9223372036854775807], "a": {"b": "x\u00e9\n"}, "f": 1.5, "t": true, "n": null})", "p");
  CHECK(json.is_object());
  CHECK(json.at("z").is_array());
  CHECK(json.at("z").size() == 3);
  CHECK(json.at("z").at(1).as_int() == -2);
  CHECK(json.at("z").at(2).as_int() == 9223372036854775807);
  CHECK(json.at("a").at("b").is_string());
  CHECK(json.at("a").at("b").as_string() == "x\xC3\xA9\n");
  CHECK(json.at("f").as_double() == 1.5);
  CHECK(json.at("z").at(0).as_double() == 1.0);
  CHECK(json.at("t").as_bool());
  CHECK(json.at("n").is_null());
  CHECK(json.has("n"));
  CHECK_FALSE(json.has("m"));
}

TEST_CASE("json members keep the document's order and dump gives the text back") {
  const std::string text =
      R"({"z":1,"a":[1.50,1e3,18446744073709551615,-0.0],"m":{"k":"\"\\\u0001\t"},"e":{},"l":[],"b":[true,false,null]})";
  const Json json = Json::parse(text, "p");
  CHECK(json.dump() == text);
  const auto members = json.members();
  REQUIRE(members.size() == 6);
  CHECK(members[0].first == "z");
  CHECK(members[1].first == "a");
  CHECK(members[1].second.at(0).as_double() == 1.5);
}

TEST_CASE("a json value outlives the one it was taken from") {
  Json inner = Json::parse(R"({"a": {"b": [7]}})", "p").at("a").at("b");
  CHECK(inner.at(0).as_int() == 7);
}

TEST_CASE("json errors name the document, the key path, what was expected and found") {
  const Json json =
      Json::parse(R"({"entries": [{}, {"count": "3", "x": 1.0, "big": 9223372036854775808, "list": [1]}]})", "plan.json");
  const Json entry = json.at("entries").at(1);
  CHECK(refusal([&] { entry.at("count").as_int(); }) ==
        "plan.json: entries[1].count: expected a whole number below 2^63, found a string");
  CHECK(refusal([&] { entry.at("x").as_int(); }) == "plan.json: entries[1].x: expected a whole number below 2^63, found 1.0");
  CHECK(refusal([&] { entry.at("big").as_int(); }) ==
        "plan.json: entries[1].big: expected a whole number below 2^63, found 9223372036854775808");
  CHECK(refusal([&] { entry.at("count").as_double(); }) == "plan.json: entries[1].count: expected a number, found a string");
  CHECK(refusal([&] { entry.at("rows"); }) == "plan.json: entries[1]: the key 'rows' is missing");
  CHECK(refusal([&] { entry.at("list").at(1); }) == "plan.json: entries[1].list: expected more than 1 entries, found 1");
  CHECK(refusal([&] { entry.at("list").at("k"); }) == "plan.json: entries[1].list: expected an object, found a list");
  CHECK(refusal([&] { entry.at(0); }) == "plan.json: entries[1]: expected a list, found an object");
  CHECK(refusal([&] { json.as_bool(); }) == "plan.json: expected true or false, found an object");
  CHECK(refusal([&] { entry.at("x").as_string(); }) == "plan.json: entries[1].x: expected a string, found 1.0");
}

TEST_CASE("text that is not one json value is refused with its place") {
  CHECK(parse_refusal("") == "plan.json: line 1, column 1: not JSON: the text is empty");
  CHECK(parse_refusal("{\n \"a\": 1,\n}").find("plan.json: line 3, column 1: not JSON: ") == 0);
  CHECK(parse_refusal("[1, 2").find("not JSON: unexpected end of input") != std::string::npos);
  CHECK(parse_refusal("1 2").find("not JSON: ") != std::string::npos);
  CHECK(parse_refusal("{} x").find("not JSON: ") != std::string::npos);
  CHECK(parse_refusal("nul").find("not JSON: invalid literal") != std::string::npos);
  CHECK(parse_refusal("NaN").find("not JSON: ") != std::string::npos);
  CHECK(parse_refusal("[1e999]").find("plan.json: line 1, column ") == 0);
  CHECK(parse_refusal("\"\xff\"").find("ill-formed UTF-8") != std::string::npos);
  CHECK(parse_refusal("// c\n1").find("not JSON: ") != std::string::npos);
  CHECK(parse_refusal("01").find("not JSON: ") != std::string::npos);
  CHECK(parse_refusal(std::string("1\0002", 3)) == "plan.json: byte 1: not JSON: a zero byte");
}

TEST_CASE("repeated keys and bottomless nesting are refused") {
  CHECK(parse_refusal(R"({"a": [0, {"k": 1, "j": 2, "k": 3}]})") == "plan.json: a[1]: the key 'k' appears twice");
  CHECK(parse_refusal(R"({"k": 1, "\u006b": 3})") == "plan.json: the key 'k' appears twice");
  CHECK(Json::parse(std::string(64, '[') + std::string(64, ']'), "p").size() == 1);
  CHECK(parse_refusal(std::string(65, '[') + std::string(65, ']')).find(": nested deeper than 64 levels") != std::string::npos);
  CHECK(parse_refusal(std::string(10'000'000, '[')).find(": nested deeper than 64 levels") != std::string::npos);
}

TEST_CASE("the json writer lays out blocks and lines") {
  JsonWriter writer;
  writer.begin_object();
  writer.member("format", "shardpack-plan").member("rows", std::int64_t{12});
  writer.key("entries").begin_array();
  writer.begin_object(true).member("count", 17);
  writer.key("lengths").begin_array().value(500).value(12).end_array();
  writer.end_object();
  writer.begin_object(true).end_object();
  writer.end_array();
  writer.key("prices").begin_array(true).begin_array().value(1).value(2).end_array().begin_array().end_array().end_array();
  writer.key("none").begin_array().end_array();
  writer.key("nothing").begin_object().end_object();
  writer.member("efficiency", 0.5).member("sure", true).key("id").null().key("raw").raw("[0]");
  writer.end_object();
  CHECK(writer.text() == R"({
  "format": "shardpack-plan",
  "rows": 12,
  "entries": [
    { "count": 17, "lengths": [500, 12] },
    {}
  ],
  "prices": [[1, 2], []],
  "none": [],
  "nothing": {},
  "efficiency": 0.500000,
  "sure": true,
  "id": null,
  "raw": [0]
})");
}

TEST_CASE("json numbers of equal value have equal bytes and infinities are a bug") {
  const auto written = [](double number, int decimals) { return JsonWriter().value(number, decimals).text(); };
  CHECK(written(-0.0, 2) == "0.00");
  CHECK(written(-1e-9, 3) == "0.000");
  CHECK(written(-0.5, 1) == "-0.5");
  CHECK(written(1.0 / 3, 6) == "0.333333");
  CHECK(written(1e15, 0) == "1000000000000000");
  CHECK_THROWS_AS(written(1.0 / 0.0, 1), Error);
}

TEST_CASE("json strings are escaped, and bytes that are not UTF-8 become U+FFFD") {
  const auto written = [](std::string_view text) { return JsonWriter().value(text).text(); };
  CHECK(written("a\"\\\n\t\x01\x7f") == "\"a\\\"\\\\\\n\\t\\u0001\x7f\"");
  CHECK(written("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80") == "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"");
  CHECK(written(std::string_view("\0", 1)) == "\"\\u0000\"");
  for (const char* bad : {"\x80", "\xC1", "\xF5"}) CHECK(written(bad) == "\"\xEF\xBF\xBD\"");
  // Overlong, surrogate, cut short: every byte on its own.
  CHECK(written("\xC3") == "\"\xEF\xBF\xBD\"");
  CHECK(written("\xE0\x80\x80") == "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
  CHECK(written("\xED\xA0\x80") == "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
  CHECK(written("\xC3\"") == "\"\xEF\xBF\xBD\\\"\"");
}

TEST_CASE("a json document that is put together wrongly is a bug") {
  CHECK_THROWS_AS(JsonWriter().begin_object().value(1), Error);
  CHECK_THROWS_AS(JsonWriter().begin_array().key("a"), Error);
  CHECK_THROWS_AS(JsonWriter().value(1).value(2), Error);
  CHECK_THROWS_AS(JsonWriter().begin_object().key("a").end_object(), Error);
  CHECK_THROWS_AS(JsonWriter().begin_object().end_array(), Error);
}
