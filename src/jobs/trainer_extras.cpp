#include "jobs/trainer_extras.h"

#include <algorithm>
#include <numeric>

#include "base/hash.h"
#include "io/hf_json.h"
#include "io/json.h"
#include "io/trainer_files.h"
#include "jobs/pack_manifest.h"

namespace shardpack {

namespace {

/// What Megatron-Bridge asks before it reads a row. All lengths are in slots, which are pairs of input and target.
std::string packed_metadata_json(const Manifest& manifest, const std::vector<Partition>& partitions) {
  std::int64_t longest = 0, shortest_row = manifest.rows > 0 ? manifest.row_tokens : 0;
  for (const PackingPlan* plan : plans_of(partitions)) {
    for (const Length length : plan->lengths) longest = std::max<std::int64_t>(longest, length);
    for (std::int64_t strategy = 0; strategy < plan->strategies(); ++strategy) {
      const std::span<const Length> lengths = plan->strategy(strategy);
      shortest_row = std::min(shortest_row, std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}));
    }
  }
  JsonWriter json;
  json.begin_array(true).begin_object(true);
  json.member("dataset_max_seqlen", longest).member("max_samples_per_bin", manifest.max_segments_in_row);
  json.member("min_packed_seqlen", shortest_row).member("pack_size", manifest.row_tokens);
  json.end_object().end_array();
  return json.take() + "\n";
}

}  // namespace

void write_trainer_extras(const StagedOutput& staged, const OutputRules& rules, const std::vector<Partition>& partitions,
                          Manifest& manifest) {
  if (rules.native()) return;
  if (manifest.shards.empty()) {
    manifest.trainer_files = make_trainer_files(rules, staged.trainer_folder(), trainer_file_name(rules, 0, 1), 0)->finish();
  }
  std::vector<ManifestFile> files = manifest.trainer_files;
  for (const ManifestShard& shard : manifest.shards)
    files.insert(files.end(), shard.trainer_files.begin(), shard.trainer_files.end());
  const auto write = [&](std::string name, const std::string& text) {
    staged.write_trainer_file(name, text);
    manifest.trainer_files.push_back({std::move(name), static_cast<std::int64_t>(text.size()), hash_hex(text)});
  };
  if (rules.container == Container::arrow) {
    write("dataset_info.json", dataset_info_json(rules.columns));
    write("state.json", hf_state_json(files));
  }
  if (has_source(*rules.preset, OutputSource::seq_starts))
    write("packed_metadata.jsonl", packed_metadata_json(manifest, partitions));
}

}  // namespace shardpack
