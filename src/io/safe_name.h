// Names that come from a file and end up in a path: they must not lead anywhere else.
#pragma once

#include <string_view>

namespace shardpack {

/// One component of a path: not empty, no slash, no zero byte, not `.` or `..`.
inline bool is_plain_name(std::string_view name) {
  constexpr std::string_view kForbidden{"/\0", 2};
  return !name.empty() && name != "." && name != ".." && name.find_first_of(kForbidden) == std::string_view::npos;
}

/// Plain names joined by single slashes.
inline bool is_plain_relative_path(std::string_view path) {
  while (true) {
    const std::size_t slash = path.find('/');
    if (!is_plain_name(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace shardpack
