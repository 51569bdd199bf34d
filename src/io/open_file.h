// One input file by its format, with all that is checked before its tokens are read.
#pragma once

#include "io/formats/format.h"
#include "io/scan_pass.h"

namespace shardpack {

/// Every shard keeps a descriptor open, some two, and the usual soft limit is 1,024. \throws Error{limit}
void allow_open_files(std::size_t shards);

/// \throws Error{bad_data}, Error{io}, Error{usage}. Context.first_record is the ordinal of its first record; with options.limit
/// only the records before that number are kept.
OpenedFile open_file(const InputFile& input, const ReadOptions& options, const OpenContext& context);

}  // namespace shardpack
