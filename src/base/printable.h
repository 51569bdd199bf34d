// Names and messages as one line of text: a file name may hold any byte but '/' and NUL.
#pragma once

#include <string>
#include <string_view>

namespace shardpack {

/// Control characters as escapes (\n, \t, \x1b), so that a line stays a line and no name speaks to the terminal.
std::string printable(std::string_view text);

}  // namespace shardpack
