// Formats that are recognised and not read: each refused by name, with what to do instead.
#pragma once

#include <string>
#include <string_view>

#include "io/formats/format.h"

namespace shardpack {

/// "an Apache Parquet file, not read by this version; ..." or "" when the content is not known.
std::string refusal(const FormatProbe& probe);

/// No control characters but the usual white space: true of all JSON, and of hardly any ids.
bool is_textual(std::string_view head);

}  // namespace shardpack
