#include "jobs/ltd_rows.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/hash.h"
#include "base/units.h"
#include "exec/ordered_map.h"
#include "io/file.h"
#include "io/packed_dataset.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

/// Shards are what people have at hand: say how they become rows.
void check_is_packed(const std::string& path) {
  const std::filesystem::path given(path);
  std::error_code none;  // what cannot be looked at is refused by who opens it
  const bool folder = std::filesystem::is_directory(given, none);
  const bool packed = folder ? std::filesystem::exists(given / kManifestName, none) : given.filename() == kManifestName;
  if (packed || !std::filesystem::exists(given, none)) return;
  throw Error(ErrorCode::bad_data, fmt::format("not a packed dataset; make one: shardpack pack {} -L N -o packed", path), path);
}

}  // namespace

LtdRows read_ltd_rows(const std::string& path, const RunContext& context) {
  check_is_packed(path);
  const PackedDataset dataset(path);
  const Manifest& manifest = dataset.manifest();
  LtdRows rows;
  rows.dataset.hash = hash_hex(read_small_file(dataset.folder() + "/" + std::string(kManifestName)));
  rows.dataset.row_tokens = manifest.row_tokens;
  std::vector<RowPart> parts;
  for (const ManifestShard& shard : dataset.shards()) {
    throw_if_stopped(context.stop);
    const std::vector<std::int64_t> offsets = dataset.open_array(shard, "row_offsets").read_all<std::int64_t>();
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
      if (offsets[row] < 0 || offsets[row + 1] < offsets[row] || offsets[row + 1] > static_cast<std::int64_t>(lengths.size()) ||
          slots.size() != lengths.size()) {
        fail(row);
      }
      for (auto s = static_cast<std::size_t>(offsets[row]); s < static_cast<std::size_t>(offsets[row + 1]); ++s) {
        if (lengths[s] < 0 || slots[s] < lengths[s] || slots[s] > manifest.row_tokens - begin) fail(row);
        parts.push_back({static_cast<Length>(begin), lengths[s]});
        begin += slots[s];
      }
      rows.table.add(manifest.row_tokens, parts);
      rows.dataset.segments += static_cast<std::int64_t>(parts.size());
      rows.dataset.tokens += rows.table.tokens.back();
    }
  }
  rows.dataset.rows = rows.table.rows();
  return rows;
}

}  // namespace shardpack
