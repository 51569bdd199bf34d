#include "report/verify_json.h"

#include "io/json.h"

namespace shardpack {

std::string verify_to_json(const VerifyResult& result, std::string_view path, double seconds) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", 1).member("command", "verify").member("path", path).member("ok", result.ok());
  json.key("issues").begin_array();
  for (const Issue& issue : result.issues) {
    json.begin_object(true);
    json.member("kind", issue.kind).member("file", issue.file);
    json.key("row");
    if (issue.row < 0) {
      json.null();
    } else {
      json.value(std::int64_t{issue.row});
    }
    json.member("message", issue.message);
    json.end_object();
  }
  json.end_array();
  json.key("checked").begin_array();
  for (const std::string& line : result.checked) json.value(line);
  json.end_array();
  json.member("rows", result.rows).member("segments", result.segments).member("tokens", result.tokens);
  json.member("bytes", result.bytes).member("seconds", seconds);
  json.end_object();
  return json.take() + "\n";
}

}  // namespace shardpack
