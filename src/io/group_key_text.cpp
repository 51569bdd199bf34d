#include "io/group_key_text.h"

#include <charconv>

#include "io/text_line.h"

namespace shardpack {

std::string group_text(const GroupKey& key) {
  JsonWriter json;
  if (const bool* flag = std::get_if<bool>(&key)) {
    json.value(*flag);
  } else if (const std::int64_t* number = std::get_if<std::int64_t>(&key)) {
    json.value(*number);
  } else {
    json.value(std::get<std::string>(key));
  }
  return json.take();
}

GroupKey read_group(const Json& value) {
  if (value.is_string()) return value.as_string();
  const std::string text = value.dump();
  if (text == "true" || text == "false") return value.as_bool();
  return value.as_int();
}

std::string group_field(const GroupKey& key) {
  const std::string* text = std::get_if<std::string>(&key);
  if (text == nullptr) return group_text(key);
  const bool plain =
      !text->empty() && (*text)[0] != '#' && text->find_first_of(",\"\r\n") == std::string::npos && trimmed(*text) == *text;
  if (plain && group_of_field(*text, false) == key) return *text;
  std::string quoted = "\"";
  for (const char c : *text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

GroupKey group_of_field(std::string_view text, bool quoted) {
  if (!quoted) {
    if (text == "true") return true;
    if (text == "false") return false;
    std::int64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (!text.empty() && error == std::errc() && stop == end) return number;
  }
  return std::string(text);
}

}  // namespace shardpack
