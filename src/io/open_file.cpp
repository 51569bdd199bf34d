#include "io/open_file.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/units.h"
#include "io/formats/group_column.h"
#include "io/shard_source.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

/// Only the first `records` records.
void cut_to_records(OpenedShard& shard, std::int64_t records) {
  if (static_cast<std::int64_t>(shard.record_begin.size()) - 1 <= records) return;
  ensure(!shard.facts, "formats that decode every token honour the limit themselves");
  for (ColumnTable& column : shard.columns) {
    ensure(!column.facts, "formats that decode every value honour the limit themselves");
    if (!column.begin.empty()) column.begin.resize(static_cast<std::size_t>(records) + 1);
  }
  shard.record_begin.resize(static_cast<std::size_t>(records) + 1);
  shard.record_begin.shrink_to_fit();
  if (!shard.groups.of_record.empty()) shard.groups.of_record.resize(static_cast<std::size_t>(records));
}

}  // namespace

void allow_open_files(std::size_t shards) {
  constexpr rlim_t kOthers = 64;
  const rlim_t wanted = 2 * static_cast<rlim_t>(shards) + kOthers;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (const rlim_t needed = static_cast<rlim_t>(shards) + kOthers; limit.rlim_cur < needed) {
    throw Error(ErrorCode::limit, fmt::format("{} open files are needed, one a shard and {} others, but the system grants {} "
                                              "(ulimit -Hn)",
                                              with_commas(static_cast<std::int64_t>(needed)), kOthers,
                                              with_commas(static_cast<std::int64_t>(limit.rlim_cur))));
  }
}

OpenedFile open_file(const InputFile& input, const ReadOptions& options, const OpenContext& context) {
  std::vector<FileStamp> stamps;
  if (input.path != "-") stamps.push_back(stamp_of(input.path, input.name));
  const Format& format = detect_format(input, options);
  OpenedShard shard = read_unchanged(stamps, [&] { return format.open(input, options, context); });
  OpenedFile file{input, std::string(format.summary.name), std::move(shard), std::move(stamps), context.first_record};
  if (!options.group_column.empty() && !format.named_columns) read_group_file(file.shard, input, options.group_column);
  if (options.limit > 0) cut_to_records(file.shard, options.limit - context.first_record);
  for (std::size_t i = 1; i < file.shard.files.size(); ++i) {
    const std::filesystem::path sidecar = file.shard.files[i];
    file.stamps.push_back(
        stamp_of(sidecar.string(), std::filesystem::path(input.name).replace_filename(sidecar.filename()).string()));
  }
  return file;
}

}  // namespace shardpack
