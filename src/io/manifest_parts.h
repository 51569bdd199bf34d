// What the manifests of all outputs have in common: sources, what was removed, files with sizes and hashes, and a checksum at the
// end.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "shardpack/manifest.h"

namespace shardpack {

inline constexpr std::string_view kManifestName = "manifest.json";
/// Where the manifest and all but the trainer's files lie, in outputs whose folder is a trainer's.
inline constexpr std::string_view kHiddenFolder = ".shardpack";

/// What the key "format" says of each kind of output.
inline constexpr std::string_view kPackedFormat = "shardpack-packed", kBatchesFormat = "shardpack-batches",
                                  kLtdFormat = "shardpack-ltd", kUnpackedFormat = "shardpack-unpacked";

/// Where an output keeps its manifest.
struct FoundManifest {
  std::string path, folder;  ///< of the manifest; its folder also holds plans and the folders of shards
  std::string output;        ///< the output's folder: the same, or the one above a hidden folder
  std::string format;        ///< what its key "format" says
};

/// The manifest of ours at `path`, an output's folder or its manifest.json: in it, or in its hidden folder. Judged by its
/// beginning alone, so that a damaged output is known as one. \throws Error{io}
std::optional<FoundManifest> find_manifest(const std::string& path);

/// Is there one of that format?
bool has_manifest_of(const std::string& path, std::string_view format);

/// The key `key` ("files") with one file a line.
void write_files(JsonWriter& json, std::string_view key, const std::vector<ManifestFile>& files);

void write_columns(JsonWriter& json, std::span<const Column> columns);  ///< the key "columns"
std::vector<Column> read_columns(const Json& list);

void write_partition(JsonWriter& json, const ManifestPartition& partition);  ///< an entry of "partitions", on one line
ManifestPartition read_partition(const Json& json);

void write_shard(JsonWriter& json, const ManifestShard& shard);  ///< an entry of a packed dataset's "shards"
/// The names that were read so far: no two entries of one folder have the same.
struct ManifestNames {
  std::set<std::string> beside, trainer;  ///< beside the manifest; in the trainer's folder
};
ManifestShard read_shard(const Json& json, ManifestNames& seen);

/// The key "ids_dtype" (SourceFile::ids_dtype): null where it is empty.
void write_ids_dtype(JsonWriter& json, const std::string& dtype);
std::string read_ids_dtype(const Json& value);

void write_sources(JsonWriter& json, const std::vector<ManifestSource>& sources);  ///< the key "sources"
/// The key "removed". `with_loss`: a column tells which tokens take part in the loss.
void write_removed_counts(JsonWriter& json, const RemovedCounts& removed, bool with_loss = false);

/// A manifest's text with the checksum as its last key. The hash is of all bytes before that line.
std::string with_checksum(std::string text);

/// The text must end in exactly the lines that with_checksum() ends it with. \throws Error{bad_data} naming `path`
void check_checksum(std::string_view text, const std::string& path);

/// The keys "format" and "format_version". \throws Error{bad_data}
void check_format(const Json& json, std::string_view format, std::int64_t version);

std::int64_t read_count(const Json& object, std::string_view key);  ///< a whole number from 0
std::string read_hash(const Json& value);                           ///< 32 hex digits

/// A name in an output's folder or a shard's; `seen` holds those before it.
std::string unique_name(const Json& value, std::set<std::string>& seen);

Fingerprint read_fingerprint(const Json& value);
void write_fingerprint(JsonWriter& json, std::string_view key, const std::optional<Fingerprint>& fingerprint);  ///< or null

std::vector<ManifestSource> read_sources(const Json& list);
RemovedCounts read_removed_counts(const Json& json);
std::vector<ManifestFile> read_files(const Json& list, std::set<std::string>& seen);

}  // namespace shardpack
