#include "io/manifest_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <span>
#include <system_error>

#include "base/hash.h"
#include "io/file.h"
#include "io/safe_name.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr bool kOnOneLine = true;

/// The last two lines.
std::string checksum_lines(std::string_view bytes_before) {
  return fmt::format("  \"checksum\": \"{}\"\n}}\n", hash_hex(bytes_before));
}

}  // namespace

std::optional<FoundManifest> find_manifest(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path given(path);
  std::error_code ignored;
  const auto look = [&](const fs::path& manifest) -> std::optional<FoundManifest> {
    if (fs::symlink_status(manifest, ignored).type() != fs::file_type::regular) return std::nullopt;
    std::string head(256, '\0');  // "format" is the first key
    head.resize(File(manifest.string(), File::Mode::read).read_some_at(0, std::as_writable_bytes(std::span(head))));
    constexpr std::string_view kKey = "\"format\": \"";
    const std::size_t key = head.find(std::string(kKey) + "shardpack-");
    if (key == std::string::npos) return std::nullopt;
    const std::size_t begin = key + kKey.size();
    const fs::path folder = manifest.has_parent_path() ? manifest.parent_path() : fs::path(".");
    const bool hidden = folder.filename() == kHiddenFolder;
    const fs::path above = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
    return FoundManifest{.path = manifest.string(),
                         .folder = folder.string(),
                         .output = (hidden ? above : folder).string(),
                         .format = head.substr(begin, head.find('"', begin) - begin)};
  };
  if (given.filename() == kManifestName) {
    if (auto found = look(given)) return found;
  }
  if (auto found = look(given / kManifestName)) return found;
  return look(given / kHiddenFolder / kManifestName);
}

bool has_manifest_of(const std::string& path, std::string_view format) {
  const std::optional<FoundManifest> found = find_manifest(path);
  return found && found->format == format;
}

void write_files(JsonWriter& json, std::string_view key, const std::vector<ManifestFile>& files) {
  json.key(key).begin_array();
  for (const ManifestFile& file : files) {
    json.begin_object(kOnOneLine);
    json.member("name", file.name).member("bytes", file.bytes).member("xxh3_128", file.hash);
    json.end_object();
  }
  json.end_array();
}

void write_ids_dtype(JsonWriter& json, const std::string& dtype) {
  json.key("ids_dtype");
  if (dtype.empty()) {
    json.null();
  } else {
    json.value(dtype);
  }
}

std::string read_ids_dtype(const Json& value) {
  if (value.is_null()) return {};
  const std::string name = value.as_string();
  const bool known = std::any_of(kIdTypes.begin(), kIdTypes.end(), [&](const IdTypeInfo& type) {
    return name == type.numpy || (name.starts_with('>') && type.bytes > 1 && name.substr(1) == type.numpy.substr(1));
  });
  if (!known) value.fail(fmt::format("expected the name of an integer type, as \"<u2\", found '{}'", name));
  return name;
}

void write_sources(JsonWriter& json, const std::vector<ManifestSource>& sources) {
  json.key("sources").begin_array();
  for (const ManifestSource& source : sources) {
    json.begin_object(kOnOneLine);
    json.member("name", source.name).member("format", source.format).member("bytes", source.bytes);
    json.member("sequences", source.sequences).member("tokens", source.tokens).member("xxh3_128", source.hash);
    if (source.ids_dtype) write_ids_dtype(json, *source.ids_dtype);
    json.end_object();
  }
  json.end_array();
}

void write_removed_counts(JsonWriter& json, const RemovedCounts& removed, bool with_loss) {
  json.key("removed").begin_object();
  for (std::size_t cause = 0; cause < removed.size(); ++cause) {
    json.key(kRemovalCauses[cause]).begin_object(kOnOneLine);
    json.member("sequences", removed[cause].sequences).member("tokens", removed[cause].tokens);
    if (with_loss) json.member("loss_tokens", removed[cause].loss_tokens);
    json.end_object();
  }
  json.end_object();
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

void write_fingerprint(JsonWriter& json, std::string_view key, const std::optional<Fingerprint>& fingerprint) {
  json.key(key);
  if (fingerprint) {
    json.value(fingerprint->hex());
  } else {
    json.null();
  }
}

Fingerprint read_fingerprint(const Json& value) { return Fingerprint::from_hex(read_hash(value)); }

std::string unique_name(const Json& value, std::set<std::string>& seen) {
  std::string name = value.as_string();
  if (!is_plain_name(name)) value.fail(fmt::format("expected the name of a file or folder, found '{}'", name));
  if (!seen.insert(name).second) value.fail(fmt::format("'{}' is listed twice", name));
  return name;
}

std::vector<ManifestSource> read_sources(const Json& list) {
  std::vector<ManifestSource> sources(list.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Json json = list.at(i);
    ManifestSource& source = sources[i];
    source.name = json.at("name").as_string();
    if (!is_plain_relative_path(source.name)) {
      json.at("name").fail(fmt::format("expected a relative path without '..', found '{}'", source.name));
    }
    source.format = json.at("format").as_string();
    source.bytes = read_count(json, "bytes");
    source.sequences = read_count(json, "sequences");
    source.tokens = read_count(json, "tokens");
    source.hash = read_hash(json.at("xxh3_128"));
    if (json.has("ids_dtype")) source.ids_dtype = read_ids_dtype(json.at("ids_dtype"));
  }
  return sources;
}

RemovedCounts read_removed_counts(const Json& json) {
  RemovedCounts removed{};
  for (std::size_t cause = 0; cause < removed.size(); ++cause) {
    const Json counts = json.at(kRemovalCauses[cause]);
    removed[cause] = {read_count(counts, "sequences"), read_count(counts, "tokens")};
    if (counts.has("loss_tokens")) removed[cause].loss_tokens = read_count(counts, "loss_tokens");
  }
  return removed;
}

std::vector<ManifestFile> read_files(const Json& list, std::set<std::string>& seen) {
  std::vector<ManifestFile> files(list.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Json json = list.at(i);
    files[i].name = unique_name(json.at("name"), seen);
    files[i].bytes = read_count(json, "bytes");
    files[i].hash = read_hash(json.at("xxh3_128"));
  }
  return files;
}

}  // namespace shardpack
