// The readers behind the format table: one pair of functions a format, each in a file of its own.
#pragma once

#include "io/formats/format.h"

namespace shardpack {

bool matches_megatron(const FormatProbe& probe);
OpenedShard open_megatron(const InputFile& file, const ReadOptions& options, const OpenContext& context);

bool matches_npy(const FormatProbe& probe);
OpenedShard open_npy(const InputFile& file, const ReadOptions& options, const OpenContext& context);

bool matches_raw(const FormatProbe& probe);
OpenedShard open_raw(const InputFile& file, const ReadOptions& options, const OpenContext& context);
OpenedShard open_nanogpt(const InputFile& file, const ReadOptions& options, const OpenContext& context);

bool matches_olmo(const FormatProbe& probe);
OpenedShard open_olmo(const InputFile& file, const ReadOptions& options, const OpenContext& context);

bool matches_datatrove(const FormatProbe& probe);
OpenedShard open_datatrove(const InputFile& file, const ReadOptions& options, const OpenContext& context);

/// The files of `save_to_disk`; Arrow IPC streams and files; Parquet: recognised by arrow_content.h. Without Apache Arrow in the
/// build they throw Error{limit} with what to install.
OpenedShard open_hf(const InputFile& file, const ReadOptions& options, const OpenContext& context);
OpenedShard open_arrow(const InputFile& file, const ReadOptions& options, const OpenContext& context);
OpenedShard open_parquet(const InputFile& file, const ReadOptions& options, const OpenContext& context);

bool matches_llmc(const FormatProbe& probe);
OpenedShard open_llmc(const InputFile& file, const ReadOptions& options, const OpenContext& context);

}  // namespace shardpack
