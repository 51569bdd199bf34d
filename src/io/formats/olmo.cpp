// OLMo and dolma: X.npy without any NPY header, documents in X.csv.gz.
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "io/formats/flat_tokens.h"
#include "io/formats/readers.h"
#include "io/formats/side_columns.h"
#include "io/npy.h"

namespace shardpack {

namespace {
/// The supervised layout keeps a mask of one byte a token beside token_ids_part_0000.npy, in labels_mask_part_0000.npy.
std::optional<InputFile> labels_mask_of(const InputFile& file) {
  constexpr std::string_view kIds = "token_ids_part";
  const std::filesystem::path path = file.path;
  const std::string base = path.filename().string();
  if (!base.starts_with(kIds)) return std::nullopt;
  const std::string mask = "labels_mask_part" + base.substr(kIds.size());
  InputFile found{path.parent_path() / mask, std::filesystem::path(file.name).replace_filename(mask).string()};
  return exists(found) ? std::optional(std::move(found)) : std::nullopt;
}
}  // namespace

bool matches_olmo(const FormatProbe& probe) { return !probe.head.starts_with(kNpyMagic) && probe.replaced(".npy", ".csv.gz"); }

OpenedShard open_olmo(const InputFile& file, const ReadOptions& options, const OpenContext& context) {
  OpenedShard shard;
  shard.ids = open_ids(file, 0, options.dtype.value_or(IdType::u16));  // dolma's own default
  shard.files = {file.path};
  cut_flat(shard, file, options, context);
  take_side_columns(shard, file, options, context, {}, labels_mask_of(file));
  return shard;
}

}  // namespace shardpack
