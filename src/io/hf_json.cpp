#include "io/hf_json.h"

#include "base/hash.h"
#include "io/json.h"

namespace shardpack {

namespace {

std::string_view hf_type(ValueType type) {
  switch (type) {
    case ValueType::i8:
      return "int8";
    case ValueType::i64:
      return "int64";
    default:
      return "int32";
  }
}

/// "Sequence" is what every version of `datasets` reads; "List", as version 4 writes it, is unknown to those before.
void write_features(JsonWriter& json, std::span<const OutputColumn> columns) {
  json.key("features").begin_object();
  for (const OutputColumn& column : columns) {
    json.key(column.name).begin_object(true);
    json.key("feature").begin_object(true).member("dtype", hf_type(column.type)).member("_type", "Value").end_object();
    json.member("_type", "Sequence").end_object();
  }
  json.end_object();
}

}  // namespace

std::string hf_metadata(std::span<const OutputColumn> columns) {
  JsonWriter json;
  json.begin_object(true).key("info").begin_object(true);
  write_features(json, columns);
  json.end_object();
  json.end_object();
  return json.take();
}

std::string dataset_info_json(std::span<const OutputColumn> columns) {
  JsonWriter json;
  json.begin_object();
  json.member("citation", "").member("description", "");
  write_features(json, columns);
  json.member("homepage", "").member("license", "");
  json.end_object();
  return json.take() + "\n";
}

std::string hf_state_json(const std::vector<ManifestFile>& files) {
  constexpr std::size_t kFingerprintDigits = 16;
  std::string hashes;
  JsonWriter json;
  json.begin_object();
  json.key("_data_files").begin_array();
  for (const ManifestFile& file : files) {
    json.begin_object(true).member("filename", file.name).end_object();
    hashes += file.hash;
  }
  json.end_array();
  json.member("_fingerprint", hash_hex(hashes).substr(0, kFingerprintDigits));
  json.key("_format_columns").null();
  json.key("_format_kwargs").begin_object(true).end_object();
  json.key("_format_type").null();
  json.member("_output_all_columns", false);
  json.key("_split").null();
  json.end_object();
  return json.take() + "\n";
}

}  // namespace shardpack
