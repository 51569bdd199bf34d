#include "jobs/partition_record.h"

#include <limits>
#include <set>
#include <utility>

#include "io/json.h"
#include "io/manifest_parts.h"
#include "jobs/pack_manifest.h"

namespace shardpack {

namespace {

constexpr bool kOnOneLine = true;

void write_file(JsonWriter& json, std::string_view key, const ManifestFile& file) {
  json.key(key).begin_object(kOnOneLine);
  json.member("name", file.name).member("bytes", file.bytes).member("xxh3_128", file.hash).end_object();
}

ManifestFile read_file(const Json& json) {
  std::set<std::string> alone;
  return {unique_name(json.at("name"), alone), read_count(json, "bytes"), read_hash(json.at("xxh3_128"))};
}

}  // namespace

std::string to_json(const PartitionRecord& record) {
  JsonWriter json;
  json.begin_object(kOnOneLine);
  json.member("part", record.part).member("planned_shards", record.planned_shards);
  json.key("partition");
  write_partition(json, record.entry);
  write_file(json, "plan", record.plan);
  json.key("dropped").begin_object(kOnOneLine);
  json.member("sequences", record.dropped.sequences).member("segments", record.dropped.segments);
  json.member("tokens", record.dropped.source_tokens);
  json.member("eos", record.dropped.added_eos).member("bos", record.dropped.added_bos).end_object();
  json.key("repeated").begin_object(kOnOneLine);
  json.member("sequences", record.repeated.sequences).member("tokens", record.repeated.tokens).end_object();
  if (record.removed.file) write_file(json, "removed", *record.removed.file);
  json.member("removed_fingerprint", record.removed.fingerprint.hex());
  json.key("removed_loss_tokens").begin_array(kOnOneLine);
  for (const std::int64_t tokens : record.removed.loss_tokens) json.value(tokens);
  json.end_array().end_object();
  return json.take();
}

PartitionRecord partition_record_from_json(const std::string& text, const std::string& path) {
  const Json json = Json::parse(text, path);
  PartitionRecord record;
  record.part = json.at("part").as_string();
  record.entry = read_partition(json.at("partition"));
  record.planned_shards = json.at("planned_shards").as_int(0, std::ssize(record.entry.shards));
  record.plan = read_file(json.at("plan"));
  const Json dropped = json.at("dropped"), repeated = json.at("repeated"), loss = json.at("removed_loss_tokens");
  record.dropped.sequences = read_count(dropped, "sequences");
  record.dropped.segments = read_count(dropped, "segments");
  record.dropped.source_tokens = read_count(dropped, "tokens");
  record.dropped.added_eos = read_count(dropped, "eos");
  record.dropped.added_bos = read_count(dropped, "bos");
  record.repeated = {read_count(repeated, "sequences"), read_count(repeated, "tokens")};
  if (json.has("removed")) record.removed.file = read_file(json.at("removed"));
  record.removed.fingerprint = Fingerprint::from_hex(read_hash(json.at("removed_fingerprint")));
  for (std::size_t cause = 0; cause < record.removed.loss_tokens.size(); ++cause)
    record.removed.loss_tokens[cause] = loss.at(cause).as_int(0, std::numeric_limits<std::int64_t>::max());
  return record;
}

void add_partitions(Manifest& manifest, const std::vector<PartitionRecord>& records, std::vector<ManifestShard> shards,
                    const TailRows& tail, Tail tail_kind, const RemovedTotals& removed) {
  manifest.shards = std::move(shards);
  std::size_t next = 0;
  for (const PartitionRecord& record : records) {
    count_dropped(record.dropped, manifest);
    for (std::size_t s = 0; s < record.entry.shards.size(); ++s, ++next) {
      if (static_cast<std::int64_t>(s) >= record.planned_shards) continue;
      const ManifestShard& shard = manifest.shards[next];
      if (shard.fingerprint) *manifest.packed_fingerprint += *shard.fingerprint;
      manifest.loss_tokens += shard.loss_tokens;
      manifest.hidden_labels += shard.hidden_labels;
    }
    manifest.repeated_sequences += record.repeated.sequences;
    manifest.repeated_tokens += record.repeated.tokens;
    manifest.files.push_back(record.plan);
    manifest.partitions.push_back(record.entry);
  }
  (tail_kind == Tail::repeat ? manifest.repeated_rows : manifest.fill_rows) = tail.extra;
  if (removed.file) manifest.files.push_back(*removed.file);
  if (manifest.holds_tokens()) manifest.removed_fingerprint = removed.fingerprint;
  for (std::size_t cause = 0; cause < manifest.removed.size(); ++cause)
    manifest.removed[cause].loss_tokens += removed.loss_tokens[cause];
}

}  // namespace shardpack
