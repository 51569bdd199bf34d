#include "jobs/ltd_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/hash.h"
#include "base/units.h"
#include "base/wide.h"
#include "exec/ordered_map.h"
#include "io/batch_folder.h"
#include "io/file.h"
#include "io/manifest_parts.h"
#include "io/packed_dataset.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

/// Shards are what people have at hand: say how they become rows.
void check_has_rows(const std::string& path) {
  const std::filesystem::path given(path);
  std::error_code none;  // what cannot be looked at is refused by who opens it
  const bool folder = std::filesystem::is_directory(given, none);
  const bool named = folder ? std::filesystem::exists(given / kManifestName, none) : given.filename() == kManifestName;
  if (named || find_manifest(path) || !std::filesystem::exists(given, none)) return;
  throw Error(ErrorCode::bad_data,
              fmt::format("neither a packed dataset nor a batch plan; make one: shardpack pack {0} -L N -o packed, or shardpack "
                          "batch {0} --batch-size N -o batches",
                          path),
              path);
}

LtdRows read_packed(const std::string& path, const RunContext& context) {
  const PackedDataset dataset(path);
  const Manifest& manifest = dataset.manifest();
  LtdRows rows;
  rows.dataset.hash = hash_hex(read_small_file(dataset.folder() + "/" + std::string(kManifestName)));
  std::vector<RowPart> parts;
  for (const ManifestShard& shard : dataset.shards()) {
    throw_if_stopped(context.stop);
    const std::vector<std::int64_t> offsets = read_offsets(dataset.open_array(shard, "row_offsets"), shard.rows, shard.segments);
    const std::vector<std::int32_t> lengths = dataset.open_array(shard, "seq_lengths").read_all<std::int32_t>();
    const std::vector<std::int32_t> slots =
        dataset.has_array(shard, "seq_slots") ? dataset.open_array(shard, "seq_slots").read_all<std::int32_t>() : lengths;
    const auto fail = [&](std::size_t row) {
      throw Error(ErrorCode::bad_data, "its segments do not fit the row; shardpack verify tells more", shard.folder,
                  fmt::format("row {}", with_commas(static_cast<std::int64_t>(row))));
    };
    for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
      parts.clear();
      std::int64_t begin = 0;
      if (static_cast<std::int64_t>(lengths.size()) != shard.segments || slots.size() != lengths.size()) fail(row);
      for (auto s = static_cast<std::size_t>(offsets[row]); s < static_cast<std::size_t>(offsets[row + 1]); ++s) {
        if (lengths[s] < 0 || slots[s] < lengths[s] || slots[s] > manifest.row_tokens - begin) fail(row);
        parts.push_back({static_cast<Length>(begin), lengths[s]});
        begin += slots[s];
      }
      rows.table.add(parts);
    }
  }
  rows.table.read_in_turn(manifest.row_tokens);
  return rows;
}

/// One row for each sequence of the plan's sources: what its batches take of it.
LtdRowTable sequences_of(const BatchFolder& folder) {
  const BatchManifest& manifest = folder.manifest();
  const std::int64_t longest =
      manifest.policy.row_tokens > 0 ? manifest.policy.row_tokens : std::int64_t{std::numeric_limits<Length>::max()};
  LtdRowTable table;
  for (const std::int64_t length : folder.read_lengths()) {
    const RowPart whole{0, static_cast<Length>(std::min(length, longest))};
    table.add({&whole, 1});
  }
  return table;
}

LtdBatches batches_of(const BatchFolder& folder) {
  const BatchManifest& manifest = folder.manifest();
  LtdBatches batches;
  batches.rows = folder.open_array("members").read_all<std::uint32_t>();
  batches.width = folder.open_array("pad_length").read_all<Length>();
  batches.world = manifest.plan.world;
  batches.accumulation = manifest.plan.accumulation;
  batches.batch_size = manifest.plan.batch_size;
  const auto fail = [&](std::string_view what) {
    throw Error(ErrorCode::bad_data, fmt::format("{}; shardpack verify tells more", what), folder.folder());
  };
  if (static_cast<Int128>(manifest.epochs) * manifest.batches_per_epoch != batches.batches())
    fail("pad_length.npy has not one number for each batch of the manifest");
  batches.begin =
      read_offsets(folder.open_array("batch_offsets"), batches.batches(), static_cast<std::int64_t>(batches.rows.size()));
  if (folder.lists("weights.npy")) {
    for (const float weight : folder.read_weights(0, batches.begin.back())) batches.counts.push_back(weight > 0);
  }
  return batches;
}

/// \param packed  the dataset whose rows are batched; empty = none was given
LtdRows read_batches(const std::string& path, const std::string& packed, const RunContext& context) {
  const BatchFolder folder(path);
  const BatchManifest& manifest = folder.manifest();
  if (manifest.batches_per_epoch == 0) throw Error(ErrorCode::usage, "the batch plan has no batches to schedule", path);
  if (manifest.rows == packed.empty()) {
    throw Error(ErrorCode::usage,
                manifest.rows ? "the plan batches rows of a packed dataset, and only that knows their segments; give "
                                "its folder as well: shardpack ltd BATCHES DATASET"
                              : "the plan batches sequences, not rows of a packed dataset; leave the dataset out",
                path);
  }
  LtdRows rows;
  if (manifest.rows) {
    rows = read_packed(packed, context);
    if (rows.dataset.hash != manifest.source_manifest_hash) {
      throw Error(ErrorCode::bad_data, fmt::format("the plan was made for another packed dataset than {}", packed), path);
    }
    rows.dataset.rows_hash = rows.dataset.hash;
  } else {
    rows.table = sequences_of(folder);
  }
  try {
    rows.table.read_batches(batches_of(folder));
  } catch (const Error& error) {  // the table knows no files
    throw Error(error.code(), error.message(), error.path().empty() ? path : error.path(), error.position());
  }
  rows.dataset.kind = LtdRowSource::batches;
  rows.dataset.hash = hash_hex(read_small_file(folder.folder() + std::string(kManifestName)));
  rows.dataset.batches = rows.table.batches().batches();
  rows.dataset.steps = rows.table.batches().steps();
  return rows;
}

}  // namespace

LtdRows read_ltd_rows(const std::vector<std::string>& paths, const RunContext& context) {
  std::string packed, batches;
  for (const std::string& path : paths) {
    check_has_rows(path);
    std::string& place = has_manifest_of(path, kBatchesFormat) ? batches : packed;
    if (!place.empty()) {
      throw Error(ErrorCode::usage,
                  fmt::format("{} and {}: one packed dataset, or one batch plan (with the dataset whose rows it "
                              "batches)",
                              place, path));
    }
    place = path;
  }
  LtdRows rows = batches.empty() ? read_packed(packed, context) : read_batches(batches, packed, context);
  rows.dataset.rows = rows.table.cycle();
  rows.dataset.row_tokens = rows.table.widest();
  for (std::int64_t read = 0; read < rows.table.cycle(); ++read) {
    const LtdRow row = rows.table.at(read);
    if (!row.counts) continue;
    rows.dataset.segments += static_cast<std::int64_t>(row.parts.size());
    rows.dataset.tokens += row.tokens;
  }
  return rows;
}

}  // namespace shardpack
