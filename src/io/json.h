// JSON, narrowly: a reader for untrusted text and a writer whose bytes are ours to decide. The library behind the reader is
// included in json.cpp alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardpack {

/// A parsed value; cheap to copy, keeps its document alive. Every accessor throws Error{bad_data} naming the document and the
/// key path ("plan.json: entries[3].count: expected a whole number, found a string").
class Json {
 public:
  /// \throws Error{bad_data} for anything that is not one JSON value, a repeated key, or nesting deeper than 64.
  static Json parse(std::string_view text, const std::string& path);

  bool is_null() const;
  bool is_object() const;
  bool is_array() const;
  bool is_string() const;
  bool has(std::string_view key) const;
  Json at(std::string_view key) const;                        ///< of an object; missing is an error; a linear search
  std::size_t size() const;                                   ///< of an array
  Json at(std::size_t index) const;                           ///< of an array
  std::vector<std::pair<std::string, Json>> members() const;  ///< of an object, in the document's order

  std::int64_t as_int() const;                                           ///< a whole number in 63 bits and a sign; 1.0 is not one
  std::int64_t as_int(std::int64_t lowest, std::int64_t highest) const;  ///< the same, within these bounds
  double as_double() const;
  bool as_bool() const;
  std::string as_string() const;
  std::string dump() const;  ///< compact JSON text of this value

  /// For what only the caller can judge: the accessors' Error with its place and `message`.
  [[noreturn]] void fail(std::string_view message) const;

 private:
  struct Document;
  Json(std::shared_ptr<const Document> document, const void* node, std::string where);
  std::shared_ptr<const Document> document_;
  const void* node_ = nullptr;
  std::string where_;
};

/// `text` as JsonWriter writes it and Json reads it back: U+FFFD for every byte that is not UTF-8. File names may hold such
/// bytes.
std::string as_utf8(std::string_view text);

/// Writes one value after the other; commas and indentation are the writer's. Objects and arrays opened with `inline_layout` stay
/// on one line: { "a": 1, "b": [1, 2] }.
class JsonWriter {
 public:
  JsonWriter& begin_object(bool inline_layout = false);
  JsonWriter& end_object();
  JsonWriter& begin_array(bool inline_layout = false);
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(std::int64_t number);
  JsonWriter& value(std::int32_t number) { return value(static_cast<std::int64_t>(number)); }
  JsonWriter& value(double number, int decimals = 6);  ///< fixed decimals, so that equal numbers give equal bytes
  JsonWriter& value(bool flag);
  JsonWriter& null();
  JsonWriter& raw(std::string_view json);  ///< a value that is JSON text already
  template <class T>
  JsonWriter& member(std::string_view name, const T& v) {
    key(name);
    return value(v);
  }

  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  void before_value();
  void separate();
  struct Level {
    bool inline_layout, array, empty;
  };
  std::string text_;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

}  // namespace shardpack
