// OLMo and dolma: X.npy without any NPY header, documents in X.csv.gz.
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "io/formats/flat_tokens.h"
#include "io/formats/readers.h"
#include "io/npy.h"

namespace shardpack {

namespace {
/// The supervised layout keeps a mask of one byte a token beside token_ids_part_0000.npy, in labels_mask_part_0000.npy.
bool has_labels_mask(const std::filesystem::path& path) {
  constexpr std::string_view kIds = "token_ids_part";
  const std::string base = path.filename().string();
  std::error_code ignored;
  return base.starts_with(kIds) &&
         std::filesystem::exists(path.parent_path() / ("labels_mask_part" + base.substr(kIds.size())), ignored);
}
}  // namespace

bool matches_olmo(const FormatProbe& probe) { return !probe.head.starts_with(kNpyMagic) && probe.replaced(".npy", ".csv.gz"); }

OpenedShard open_olmo(const InputFile& file, const ReadOptions& options, const OpenContext& context) {
  OpenedShard shard;
  shard.ids = open_ids(file, 0, options.dtype.value_or(IdType::u16));  // dolma's own default
  shard.files = {file.path};
  cut_flat(shard, file, options, context);

  if (has_labels_mask(file.path)) shard.not_carried.push_back("labels_mask");
  return shard;
}

}  // namespace shardpack
