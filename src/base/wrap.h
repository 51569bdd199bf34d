// Text in lines of a width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardpack {

/// Reports and help pages are at most so many columns wide.
inline constexpr std::size_t kPageWidth = 100;

/// Append the words of `text` to the last line of `page`; lines that follow begin at column `indent`. A word is never broken.
void append_words(std::string& page, std::string_view text, std::size_t indent);

}  // namespace shardpack
