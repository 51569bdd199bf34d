#include "io/manifest_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/hash.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

/// The last two lines.
std::string checksum_lines(std::string_view bytes_before) {
  return fmt::format("  \"checksum\": \"{}\"\n}}\n", hash_hex(bytes_before));
}

}  // namespace

void write_files(JsonWriter& json, const std::vector<ManifestFile>& files) {
  json.key("files").begin_array();
  for (const ManifestFile& file : files) {
    json.begin_object(true);
    json.member("name", file.name).member("bytes", file.bytes).member("xxh3_128", file.hash);
    json.end_object();
  }
  json.end_array();
}

std::string with_checksum(std::string text) {
  text.replace(text.size() - 2, 2, ",\n");  // the closing "\n}" makes way for one more key
  return text + checksum_lines(text);
}

void check_checksum(std::string_view text, const std::string& path) {
  const std::size_t ending = checksum_lines({}).size();
  const std::string_view before = text.substr(0, text.size() - std::min(text.size(), ending));
  const std::string expected = checksum_lines(before);
  if (text.substr(before.size()) != expected) {
    throw Error(ErrorCode::bad_data, "the checksum does not match: the file was damaged or edited", path);
  }
}

void check_format(const Json& json, std::string_view format, std::int64_t version) {
  if (json.at("format").as_string() != format) json.at("format").fail(fmt::format("expected \"{}\"", format));
  if (json.at("format_version").as_int() != version) {
    json.at("format_version").fail(fmt::format("this version of shardpack reads format version {} only", version));
  }
}

std::int64_t read_count(const Json& object, std::string_view key) {
  return object.at(key).as_int(0, std::numeric_limits<std::int64_t>::max());
}

std::string read_hash(const Json& value) {
  std::string text = value.as_string();
  if (text.size() != 32 || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    value.fail(fmt::format("expected 32 lower-case hex digits, found '{}'", text));
  }
  return text;
}

}  // namespace shardpack
