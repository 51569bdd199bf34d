// The reader keeps a tree of its own, filled by the library's event parser: the library's own tree either loses the order of
// keys or looks them up one by one, and it accepts repeated keys.
#include "io/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <variant>

#include "base/checked.h"
#include "base/units.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

struct Node;
struct Member;

/// A number that is not a whole one of 63 bits and a sign; its text is kept so that nothing is lost in dump().
struct Number {
  double value = 0;
  std::string text;
};

using List = std::vector<Node>;
using Object = std::vector<Member>;  // the document's order

struct Node {
  std::variant<std::nullptr_t, bool, std::int64_t, Number, std::string, List, Object> value;
};

struct Member {
  std::string key;
  Node value;
};

std::string describe(const Node& node) {
  switch (node.value.index()) {
    case 0:
      return "null";
    case 1:
      return std::get<bool>(node.value) ? "true" : "false";
    case 2:
      return std::to_string(std::get<std::int64_t>(node.value));
    case 3:
      return std::get<Number>(node.value).text.substr(0, 40);
    case 4:
      return "a string";
    case 5:
      return "a list";
    default:
      return "an object";
  }
}

/// Looks at one key after the other: what has known keys is small, and what is large is read through members().
const Node* find(const Object& object, std::string_view key) {
  const auto found = std::find_if(object.begin(), object.end(), [&](const Member& member) { return member.key == key; });
  return found == object.end() ? nullptr : &found->value;
}

std::string member_path(const std::string& parent, std::string_view key) {
  return fmt::format("{}{}{}", parent, parent.empty() ? "" : ".", key);
}
std::string element_path(const std::string& parent, std::size_t index) { return fmt::format("{}[{}]", parent, index); }

/// Bytes of the UTF-8 character at text[at]; 0 when it is not one.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned lead = byte(at), second = byte(at + 1);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return follows(at + 1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool shortest = lead != 0xE0 || second >= 0xA0;
    const bool surrogate = lead == 0xED && second >= 0xA0;
    return shortest && !surrogate && follows(at + 1) && follows(at + 2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool in_range = (lead != 0xF0 || second >= 0x90) && (lead != 0xF4 || second <= 0x8F);
    return in_range && follows(at + 1) && follows(at + 2) && follows(at + 3) ? 4 : 0;
  }
  return 0;
}

/// Quoted and escaped. A file name may hold any bytes, JSON may not: what is not UTF-8 becomes U+FFFD.
void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const std::size_t length = utf8_length(text, i);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (length == 1 && static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += length == 0 ? kReplacement : text.substr(i, length);
    }
    i += std::max<std::size_t>(length, 1);
  }
  out += '"';
}

void append_compact(std::string& out, const Node& node) {
  if (const auto* text = std::get_if<std::string>(&node.value)) {
    append_quoted(out, *text);
  } else if (const auto* items = std::get_if<List>(&node.value)) {
    out += '[';
    for (const Node& item : *items) {
      if (&item != items->data()) out += ',';
      append_compact(out, item);
    }
    out += ']';
  } else if (const auto* object = std::get_if<Object>(&node.value)) {
    out += '{';
    for (const Member& member : *object) {
      if (&member != object->data()) out += ',';
      append_quoted(out, member.key);
      out += ':';
      append_compact(out, member.value);
    }
    out += '}';
  } else if (const auto* number = std::get_if<Number>(&node.value)) {
    out += number->text;
  } else {
    out += describe(node);
  }
}

/// Receives the library's events and builds the tree.
class TreeBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(std::string_view text, const std::string& path, Node& root) : text_(text), path_(path), root_(root) {}

  bool null() override { return add({nullptr}); }
  bool boolean(bool value) override { return add({value}); }
  bool number_integer(number_integer_t value) override { return add({std::int64_t{value}}); }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (value <= kMax) return add({static_cast<std::int64_t>(value)});
    return add({Number{static_cast<double>(value), std::to_string(value)}});
  }
  bool number_float(number_float_t value, const string_t& text) override { return add({Number{value, text}}); }
  bool string(string_t& value) override { return add({std::move(value)}); }
  bool binary(binary_t&) override { return false; }  // not in JSON text

  bool start_object(std::size_t) override { return open({Object{}}); }
  bool start_array(std::size_t) override { return open({List{}}); }
  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool end_object() override {
    std::vector<std::string_view> keys;
    for (const Member& member : std::get<Object>(open_.back()->value)) keys.emplace_back(member.key);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) throw Error(ErrorCode::bad_data, fmt::format("the key '{}' appears twice", *twice), path_, where());
    open_.pop_back();
    return true;
  }

  bool parse_error(std::size_t byte, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception...] parse error at line 1, column 5: syntax error while parsing value - invalid literal; last read: '...'"
    std::string_view reason = error.what();
    if (const auto dash = reason.find("- "); dash != std::string_view::npos) reason.remove_prefix(dash + 2);
    reason = reason.substr(0, reason.find("; last read"));
    fail(byte, reason);
  }

 private:
  bool add(Node&& node) {
    place(std::move(node));
    return true;
  }
  bool open(Node&& node) {
    if (open_.size() == kMaxDepth) {
      throw Error(ErrorCode::bad_data, fmt::format("nested deeper than {} levels", kMaxDepth), path_, where());
    }
    open_.push_back(place(std::move(node)));
    return true;
  }
  Node* place(Node&& node) {
    if (open_.empty()) return &(root_ = std::move(node));
    if (auto* items = std::get_if<List>(&open_.back()->value)) return &items->emplace_back(std::move(node));
    auto& members = std::get<Object>(open_.back()->value);
    members.push_back({std::move(key_), std::move(node)});
    return &members.back().value;
  }
  /// Key path of the innermost open value: every open value is the last one of its parent.
  std::string where() const {
    std::string path;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      if (const auto* items = std::get_if<List>(&open_[i]->value)) {
        path = element_path(path, items->size() - 1);
      } else {
        path = member_path(path, std::get<Object>(open_[i]->value).back().key);
      }
    }
    return path;
  }
  [[noreturn]] void fail(std::size_t byte, std::string_view reason) const {
    const std::string_view before = text_.substr(0, byte == 0 ? 0 : byte - 1);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const auto column = before.size() - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
    throw Error(ErrorCode::bad_data, fmt::format("not JSON: {}", reason), path_,
                fmt::format("line {}, column {}", with_commas(line), with_commas(static_cast<std::int64_t>(column))));
  }

  std::string_view text_;
  const std::string& path_;
  Node& root_;
  std::vector<Node*> open_;  // outermost first; a parent's storage does not move while a child is open
  std::string key_;
};

}  // namespace

std::string as_utf8(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    result += length == 0 ? kReplacement : text.substr(i, length);
    i += std::max<std::size_t>(length, 1);
  }
  return result;
}

struct Json::Document {
  std::string path;
  Node root;

  [[noreturn]] void fail(const std::string& where, std::string_view message) const {
    throw Error(ErrorCode::bad_data, message, path, where);
  }
  /// The value as a T, or an error that says what was expected instead of what was found.
  template <class T>
  const T& get(const void* node, const std::string& where, std::string_view expected) const {
    const Node& found = *static_cast<const Node*>(node);
    if (const T* value = std::get_if<T>(&found.value)) return *value;
    fail(where, fmt::format("expected {}, found {}", expected, describe(found)));
  }
};

Json::Json(std::shared_ptr<const Document> document, const void* node, std::string where)
    : document_(std::move(document)), node_(node), where_(std::move(where)) {}

Json Json::parse(std::string_view text, const std::string& path) {
  auto document = std::make_shared<Document>();
  document->path = path;
  // Releases of the library differ in what they say of an empty text.
  if (text.empty()) document->fail("line 1, column 1", "not JSON: the text is empty");
  // The library takes a zero byte for the end of the text.
  if (const auto zero = text.find('\0'); zero != std::string_view::npos) {
    document->fail(fmt::format("byte {}", with_commas(static_cast<std::int64_t>(zero))), "not JSON: a zero byte");
  }
  TreeBuilder builder(text, document->path, document->root);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  const Node* root = &document->root;
  return Json(std::move(document), root, "");
}

bool Json::is_null() const { return static_cast<const Node*>(node_)->value.index() == 0; }
bool Json::is_object() const { return std::holds_alternative<Object>(static_cast<const Node*>(node_)->value); }
bool Json::is_array() const { return std::holds_alternative<List>(static_cast<const Node*>(node_)->value); }
bool Json::is_string() const { return std::holds_alternative<std::string>(static_cast<const Node*>(node_)->value); }

bool Json::has(std::string_view key) const { return find(document_->get<Object>(node_, where_, "an object"), key) != nullptr; }

Json Json::at(std::string_view key) const {
  const Node* found = find(document_->get<Object>(node_, where_, "an object"), key);
  if (found == nullptr) document_->fail(where_, fmt::format("the key '{}' is missing", key));
  return Json(document_, found, member_path(where_, key));
}

std::size_t Json::size() const { return document_->get<List>(node_, where_, "a list").size(); }

Json Json::at(std::size_t index) const {
  const auto& items = document_->get<List>(node_, where_, "a list");
  if (index >= items.size()) document_->fail(where_, fmt::format("expected more than {} entries, found {}", index, items.size()));
  return Json(document_, &items[index], element_path(where_, index));
}

std::vector<std::pair<std::string, Json>> Json::members() const {
  std::vector<std::pair<std::string, Json>> result;
  for (const Member& member : document_->get<Object>(node_, where_, "an object")) {
    result.emplace_back(member.key, Json(document_, &member.value, member_path(where_, member.key)));
  }
  return result;
}

std::int64_t Json::as_int() const { return document_->get<std::int64_t>(node_, where_, "a whole number below 2^63"); }

std::int64_t Json::as_int(std::int64_t lowest, std::int64_t highest) const {
  const std::int64_t number = as_int();
  if (number < lowest || number > highest) {
    fail(fmt::format("expected a whole number from {} to {}, found {}", lowest, highest, number));
  }
  return number;
}

double Json::as_double() const {
  const Node& node = *static_cast<const Node*>(node_);
  if (const auto* whole = std::get_if<std::int64_t>(&node.value)) return static_cast<double>(*whole);
  return document_->get<Number>(node_, where_, "a number").value;
}

bool Json::as_bool() const { return document_->get<bool>(node_, where_, "true or false"); }
std::string Json::as_string() const { return document_->get<std::string>(node_, where_, "a string"); }

std::string Json::dump() const {
  std::string text;
  append_compact(text, *static_cast<const Node*>(node_));
  return text;
}

void Json::fail(std::string_view message) const { document_->fail(where_, message); }

void JsonWriter::separate() {
  Level& level = levels_.back();
  if (!level.empty) text_ += ',';
  if (!level.inline_layout) {
    text_ += '\n';
    text_.append(2 * levels_.size(), ' ');
  } else if (!level.empty || !level.array) {
    text_ += ' ';
  }
  level.empty = false;
}

void JsonWriter::before_value() {
  if (levels_.empty()) {
    ensure(text_.empty(), "a JSON document holds one value");
  } else if (levels_.back().array) {
    separate();
  } else {
    ensure(after_key_, "a value in a JSON object follows its key");
    after_key_ = false;
  }
}

JsonWriter& JsonWriter::key(std::string_view name) {
  ensure(!levels_.empty() && !levels_.back().array && !after_key_, "a JSON key stands in an object");
  separate();
  append_quoted(text_, name);
  text_ += ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::begin_object(bool inline_layout) {
  before_value();
  text_ += '{';
  levels_.push_back({inline_layout || (!levels_.empty() && levels_.back().inline_layout), false, true});
  return *this;
}

JsonWriter& JsonWriter::begin_array(bool inline_layout) {
  before_value();
  text_ += '[';
  levels_.push_back({inline_layout || (!levels_.empty() && levels_.back().inline_layout), true, true});
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  ensure(!levels_.empty() && !levels_.back().array && !after_key_, "a JSON object ends after its values");
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.empty && level.inline_layout) text_ += ' ';
  if (!level.empty && !level.inline_layout) text_.append("\n").append(2 * levels_.size(), ' ');
  text_ += '}';
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  ensure(!levels_.empty() && levels_.back().array, "a JSON list ends after its values");
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.empty && !level.inline_layout) text_.append("\n").append(2 * levels_.size(), ' ');
  text_ += ']';
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  append_quoted(text_, text);
  return *this;
}

JsonWriter& JsonWriter::value(std::int64_t number) { return raw(std::to_string(number)); }

JsonWriter& JsonWriter::value(double number, int decimals) {
  ensure(std::isfinite(number), "a JSON number is finite");
  std::string digits = fmt::format("{:.{}f}", number, decimals);
  if (digits.find_first_not_of("-0.") == std::string::npos && digits[0] == '-') digits.erase(0, 1);  // -0 equals 0
  return raw(digits);
}

JsonWriter& JsonWriter::value(bool flag) { return raw(flag ? "true" : "false"); }
JsonWriter& JsonWriter::null() { return raw("null"); }

JsonWriter& JsonWriter::raw(std::string_view json) {
  before_value();
  text_ += json;
  return *this;
}

}  // namespace shardpack
