#include "jobs/part_run.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "io/json.h"
#include "io/manifest_parts.h"

namespace shardpack {

std::string part_run_name(const RunIdentity& identity) {
  StreamHash hash;
  for (const auto& [name, value] : identity) hash.update(fmt::format("{}={}\n", name, value));
  return fmt::format("run-{}.json", hash.hex());
}

std::string part_run_text(const PackResult& planned) {
  JsonWriter json;
  json.begin_object();
  json.member("dynamic_padding_slots", planned.dynamic_padding_slots);
  json.member("shuffle_window_tokens", planned.shuffle_window_tokens);
  json.member("partitions", planned.partitions);
  if (planned.cut_rows) json.member("cut_rows", *planned.cut_rows);
  json.member("manifest", to_json(planned.manifest));
  json.end_object();
  return with_checksum(json.take());
}

PackResult part_run_from_text(const std::string& text, const std::string& path) {
  const Json json = Json::parse(text, path);
  check_checksum(text, path);
  PackResult planned;
  planned.dynamic_padding_slots = read_count(json, "dynamic_padding_slots");
  planned.shuffle_window_tokens = read_count(json, "shuffle_window_tokens");
  planned.partitions = read_count(json, "partitions");
  if (json.has("cut_rows")) planned.cut_rows = json.at("cut_rows").as_int();
  planned.manifest = manifest_from_json(json.at("manifest").as_string(), path);
  return planned;
}

}  // namespace shardpack
