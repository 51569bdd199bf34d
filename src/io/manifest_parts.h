// What the manifests of all outputs have in common: a list of files with sizes and hashes, and a checksum at the end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "shardpack/manifest.h"

namespace shardpack {

/// The key "files" with one file a line.
void write_files(JsonWriter& json, const std::vector<ManifestFile>& files);

/// A manifest's text with the checksum as its last key. The hash is of all bytes before that line.
std::string with_checksum(std::string text);

/// The text must end in exactly the lines that with_checksum() ends it with. \throws Error{bad_data} naming `path`
void check_checksum(std::string_view text, const std::string& path);

/// The keys "format" and "format_version". \throws Error{bad_data}
void check_format(const Json& json, std::string_view format, std::int64_t version);

std::int64_t read_count(const Json& object, std::string_view key);  ///< a whole number from 0
std::string read_hash(const Json& value);                           ///< 32 hex digits

}  // namespace shardpack
