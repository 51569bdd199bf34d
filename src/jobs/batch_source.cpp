#include "jobs/batch_source.h"

#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <numeric>

#include "base/checked.h"
#include "base/hash.h"
#include "base/units.h"
#include "exec/ordered_map.h"
#include "io/batch_folder.h"
#include "io/file.h"
#include "io/histogram_file.h"
#include "io/packed_dataset.h"
#include "shardpack/error.h"
#include "shardpack/jobs.h"

namespace shardpack {

namespace {

namespace fs = std::filesystem;

bool is_packed_dataset(const std::string& path) {
  std::error_code ignored;
  return find_manifest(path) || fs::path(path).filename() == kManifestName ||
         fs::is_regular_file(fs::path(path) / kManifestName, ignored);
}

/// The planned rows, shard by shard; rows that only repeat others or hold padding alone are left out.
BatchSource read_rows(const std::string& path, const RunContext& context) {
  const PackedDataset dataset(path);
  const Manifest& manifest = dataset.manifest();
  BatchSource source;
  source.row_tokens = manifest.row_tokens;
  source.sources = manifest.sources;
  source.manifest_hash = hash_hex(read_small_file(dataset.file_path("", kManifestName)));
  std::int64_t left = manifest.planned_rows();
  for (const ManifestShard& shard : dataset.shards()) {
    throw_if_stopped(context.stop);
    const std::vector<std::int64_t> offsets = dataset.open_array(shard, "row_offsets").read_all<std::int64_t>();
    const std::vector<std::int32_t> lengths = dataset.open_array(shard, "seq_lengths").read_all<std::int32_t>();
    for (std::size_t r = 0; r + 1 < offsets.size() && left > 0; ++r, --left) {
      std::int64_t tokens = 0, cost = 0;
      for (std::int64_t s = offsets[r]; s < offsets[r + 1]; ++s) {
        if (s < 0 || s >= static_cast<std::int64_t>(lengths.size())) {
          throw Error(ErrorCode::bad_data, "row_offsets do not fit seq_lengths; shardpack verify tells more", shard.folder);
        }
        const std::int64_t length = lengths[static_cast<std::size_t>(s)];
        tokens += length;
        cost += length * length;
      }
      if (tokens < 1 || tokens > manifest.row_tokens) {
        throw Error(ErrorCode::bad_data, fmt::format("a row of {} tokens; shardpack verify tells more", with_commas(tokens)),
                    shard.folder, fmt::format("row {}", with_commas(static_cast<std::int64_t>(r))));
      }
      source.lengths.push_back(tokens);
      source.costs.push_back(cost);
    }
  }
  return source;
}

BatchSource read_list(const std::string& path, std::vector<std::int64_t> lengths) {
  BatchSource source;
  std::int64_t tokens = 0;
  for (const std::int64_t length : lengths) tokens = checked_add(tokens, length, "tokens");
  const bool piped = path == "-";
  source.sources.push_back({.name = piped ? "standard input" : fs::path(path).filename().string(),
                            .format = "lengths",
                            .bytes = piped ? 0 : File(path, File::Mode::read).size(),
                            .sequences = static_cast<std::int64_t>(lengths.size()),
                            .tokens = tokens,
                            .hash = piped ? lengths_hash(lengths) : hash_file(File(path, File::Mode::read))});
  source.lengths = std::move(lengths);
  return source;
}

}  // namespace

BatchSource read_batch_source(const std::vector<std::string>& inputs, const ReadOptions& read, const RunContext& context) {
  if (inputs.size() == 1 && read.format.empty() && !read.eos_id) {
    if (is_packed_dataset(inputs[0])) return read_rows(inputs[0], context);
    if (std::optional<std::vector<std::int64_t>> lengths = read_lengths(inputs[0])) {
      if (read.limit > 0 && static_cast<std::int64_t>(lengths->size()) > read.limit) {
        lengths->resize(static_cast<std::size_t>(read.limit));
      }
      return read_list(inputs[0], *std::move(lengths));
    }
  }
  ScanResult scanned = scan(inputs, read, context, true);
  BatchSource source;
  source.lengths = std::move(scanned.record_lengths);
  source.null_records = scanned.null_records;
  source.sources = std::move(scanned.files);
  return source;
}

}  // namespace shardpack
