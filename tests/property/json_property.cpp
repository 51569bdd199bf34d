// Whatever the writer writes, the reader reads back, and the reader's dump is stable.
#include "io/json.h"

#include <rapidcheck.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/catch.h"

using namespace shardpack;

namespace {

struct Tree {
  std::variant<std::nullptr_t, bool, std::int64_t, std::string, std::vector<Tree>, std::vector<std::pair<std::string, Tree>>>
      value;
};

/// Any characters, those that need escaping and those of several bytes among them.
std::string any_text() {
  static const std::vector<std::string> kPieces{"a",
                                                "Z",
                                                " ",
                                                "\"",
                                                "\\",
                                                "/",
                                                "\n",
                                                "\r",
                                                "\t",
                                                "\x01",
                                                "\x1f",
                                                "\x7f",
                                                std::string(1, '\0'),
                                                "\xC2\x80",
                                                "\xE2\x80\xA8",
                                                "\xEF\xBF\xBF",
                                                "\xF4\x8F\xBF\xBF"};
  std::string text;
  for (const std::string& piece : *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kPieces))) text += piece;
  return text;
}

Tree any_tree(int depth) {
  switch (*rc::gen::inRange(0, depth == 0 ? 4 : 6)) {
    case 0:
      return {nullptr};
    case 1:
      return {*rc::gen::arbitrary<bool>()};
    case 2:
      return {*rc::gen::arbitrary<std::int64_t>()};
    case 3:
      return {any_text()};
    case 4: {
      std::vector<Tree> items(static_cast<std::size_t>(*rc::gen::inRange(0, 4)));
      for (Tree& item : items) item = any_tree(depth - 1);
      return {std::move(items)};
    }
    default: {
      std::vector<std::pair<std::string, Tree>> members(static_cast<std::size_t>(*rc::gen::inRange(0, 4)));
      for (std::size_t i = 0; i < members.size(); ++i) members[i] = {any_text() + std::to_string(i), any_tree(depth - 1)};
      return {std::move(members)};
    }
  }
}

void write(JsonWriter& writer, const Tree& tree) {
  if (const auto* flag = std::get_if<bool>(&tree.value)) {
    writer.value(*flag);
  } else if (const auto* number = std::get_if<std::int64_t>(&tree.value)) {
    writer.value(*number);
  } else if (const auto* text = std::get_if<std::string>(&tree.value)) {
    writer.value(*text);
  } else if (const auto* items = std::get_if<std::vector<Tree>>(&tree.value)) {
    writer.begin_array(items->size() % 2 == 0);
    for (const Tree& item : *items) write(writer, item);
    writer.end_array();
  } else if (const auto* members = std::get_if<std::vector<std::pair<std::string, Tree>>>(&tree.value)) {
    writer.begin_object(members->size() % 2 == 0);
    for (const auto& member : *members) write(writer.key(member.first), member.second);
    writer.end_object();
  } else {
    writer.null();
  }
}

void check_equal(const Json& json, const Tree& tree) {
  if (const auto* flag = std::get_if<bool>(&tree.value)) {
    RC_ASSERT(json.as_bool() == *flag);
  } else if (const auto* number = std::get_if<std::int64_t>(&tree.value)) {
    RC_ASSERT(json.as_int() == *number);
  } else if (const auto* text = std::get_if<std::string>(&tree.value)) {
    RC_ASSERT(json.as_string() == *text);
  } else if (const auto* items = std::get_if<std::vector<Tree>>(&tree.value)) {
    RC_ASSERT(json.size() == items->size());
    for (std::size_t i = 0; i < items->size(); ++i) check_equal(json.at(i), (*items)[i]);
  } else if (const auto* members = std::get_if<std::vector<std::pair<std::string, Tree>>>(&tree.value)) {
    const auto found = json.members();
    RC_ASSERT(found.size() == members->size());
    for (std::size_t i = 0; i < members->size(); ++i) {
      RC_ASSERT(found[i].first == (*members)[i].first);
      check_equal(json.at((*members)[i].first), (*members)[i].second);
    }
  } else {
    RC_ASSERT(json.is_null());
  }
}

}  // namespace

TEST_CASE("any json that is written is read back equal") {
  CHECK(rc::check("writer -> reader -> dump -> reader", [] {
    const Tree tree = any_tree(4);
    JsonWriter writer;
    write(writer, tree);
    const Json json = Json::parse(writer.text(), "p");
    check_equal(json, tree);
    const std::string dumped = json.dump();
    check_equal(Json::parse(dumped, "p"), tree);
    RC_ASSERT(Json::parse(dumped, "p").dump() == dumped);
  }));
}
