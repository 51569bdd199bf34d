// What Arrow and Parquet files look like from outside: needs none of Arrow's headers, so that they are recognised without it.
#pragma once

#include <string_view>

#include "io/formats/format.h"

namespace shardpack {

inline constexpr std::string_view kArrowFileMagic = "ARROW1";
inline constexpr std::string_view kParquetMagic = "PAR1";

/// `head` begins with the schema message of an Arrow stream: after a continuation word and a size, or as before Arrow 0.15 after
/// a size alone.
bool begins_arrow_stream(std::string_view head);

/// A stream beside the state.json of `datasets`, or that file itself where it names an indices table.
bool matches_hf(const FormatProbe& probe);
/// A stream or a file (Feather version 2 is one), wherever it lies.
bool matches_arrow(const FormatProbe& probe);
bool matches_parquet(const FormatProbe& probe);

}  // namespace shardpack
