// Headerless token arrays: the options say how ids are stored, a sidecar or the EOS id where sequences end.
#include <fmt/format.h>

#include "io/formats/flat_tokens.h"
#include "io/formats/readers.h"
#include "io/formats/side_columns.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {
OpenedShard open_flat(const InputFile& file, IdType type, const ReadOptions& options, const OpenContext& context) {
  OpenedShard shard;
  shard.ids = open_ids(file, 0, type);
  shard.files = {file.path};
  cut_flat(shard, file, options, context);
  take_side_columns(shard, file, options, context);
  return shard;
}
}  // namespace

bool matches_raw(const FormatProbe& probe) { return boundary_sidecar(probe.file).has_value(); }

OpenedShard open_raw(const InputFile& file, const ReadOptions& options, const OpenContext& context) {
  if (!options.dtype) {
    throw Error(ErrorCode::usage,
                "a headerless file does not say how its ids are stored; give --dtype u16 (or u8, u32, i32, i64)", file.name);
  }
  return open_flat(file, *options.dtype, options, context);
}

/// What nanoGPT's prepare scripts write: 16 bits, an end-of-text id after each document where there are documents.
OpenedShard open_nanogpt(const InputFile& file, const ReadOptions& options, const OpenContext& context) {
  return open_flat(file, options.dtype.value_or(IdType::u16), options, context);
}

}  // namespace shardpack
