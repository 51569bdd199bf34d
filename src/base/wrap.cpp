#include "base/wrap.h"

#include <algorithm>

namespace shardpack {

void append_words(std::string& page, std::string_view text, std::size_t indent) {
  std::size_t column = page.size() - (page.rfind('\n') + 1);  // npos + 1 is 0
  for (bool first_of_line = true; !text.empty();) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (!first_of_line && column + 1 + end > kPageWidth) {
      page.append("\n").append(indent, ' ');
      column = indent;
      first_of_line = true;
    }
    if (!first_of_line) {
      page += ' ';
      ++column;
    }
    page.append(text.substr(0, end));
    column += end;
    first_of_line = false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace shardpack
