#include "base/printable.h"

#include <fmt/format.h>

namespace shardpack {

std::string printable(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (const char c : text) {
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\r') {
      line += "\\r";
    } else if (c == '\t') {
      line += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      line += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      line += c;
    }
  }
  return line;
}

}  // namespace shardpack
