// NPY arrays of token ids: [N, S], a row a sequence, or one dimension with a sidecar or an EOS id.
#include "io/npy.h"

#include <fmt/format.h>

#include <memory>

#include "base/units.h"
#include "io/formats/flat_tokens.h"
#include "io/formats/readers.h"
#include "io/formats/side_columns.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {
void cut_rows(OpenedShard& shard, const NpyHeader& header, const std::string& shown) {
  const std::int64_t rows = header.shape[0], row_tokens = header.shape[1];
  if (rows > 0 && row_tokens == 0) {  // no byte of the file would vouch for that many sequences
    throw Error(ErrorCode::bad_data, fmt::format("{} rows of no tokens", with_commas(rows)), shown);
  }
  shard.record_begin.reserve(static_cast<std::size_t>(rows) + 1);
  for (std::int64_t row = 0; row <= rows; ++row) shard.record_begin.push_back(row * row_tokens);
}
}  // namespace

bool matches_npy(const FormatProbe& probe) {
  if (probe.head.starts_with(kNpyMagic)) return true;
  // A file that was cut inside its magic is still a damaged NPY file, not one of another format.
  const bool cut_short = probe.head.size() < kNpyMagic.size() && kNpyMagic.starts_with(probe.head);
  return cut_short && probe.file.path.ends_with(".npy") && !probe.replaced(".npy", ".csv.gz");
}

OpenedShard open_npy(const InputFile& file, const ReadOptions& options, const OpenContext& context) {
  OpenedShard shard;
  shard.files = {file.path};
  const auto opened = std::make_shared<const File>(file.path, File::Mode::read, file.name);
  const NpyHeader header = read_npy_header(*opened);
  shard.ids.file = opened;
  shard.ids.type = integer_type(header, file.name, shard.ids.big_endian);
  shard.ids.append(header.elements(), header.data_begin);

  const std::size_t dimensions = header.shape.size();
  if (dimensions != 1 && dimensions != 2) {
    throw Error(ErrorCode::bad_data,
                fmt::format("expected shape (sequences, tokens) or (tokens,), found ({})", fmt::join(header.shape, ", ")),
                file.name);
  }
  if (header.fortran_order && dimensions == 2 && header.shape[0] > 1 && header.shape[1] > 1) {
    throw Error(ErrorCode::bad_data, "the array is in Fortran order, column by column; save numpy.ascontiguousarray() of it",
                file.name);
  }
  if (dimensions == 2) {
    cut_rows(shard, header, file.name);
  } else {
    cut_flat(shard, file, options, context);
  }
  take_side_columns(shard, file, options, context, header.shape);
  return shard;
}

}  // namespace shardpack
