// Lists of whole numbers in JSON, read eight characters at a time: most of what a file of token ids holds.
#pragma once

#include <cstdint>
#include <vector>

namespace shardpack {

/// Appends the numbers of the list that begins at `text`. False, and nothing appended, for all else than a list of whole numbers
/// that the type holds, written as JSON has them: the caller then finds out what is there. At least 8 bytes behind the list may
/// be read. The text is no longer than its line, so a line's end ends it.
bool read_integer_list(const char* text, std::vector<std::uint32_t>& out);
bool read_integer_list(const char* text, std::vector<std::int64_t>& out);

}  // namespace shardpack
