// JSON Lines: one object a line with a list of token ids, plain, gzip or zstd, in a file or from standard input.
#pragma once

#include "io/formats/format.h"

namespace shardpack {

bool matches_jsonl(const FormatProbe& probe);

/// Decodes the whole file in one parallel pass, so `facts` is set; the ids lie in a spool when context.spool is set. A path of
/// "-" is standard input. Memory: blocks in flight of a few MiB; a longer line needs about seven times its length.
OpenedShard open_jsonl(const InputFile& file, const ReadOptions& options, const OpenContext& context);

}  // namespace shardpack
