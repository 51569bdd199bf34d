#include "jobs/output_place.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>

#include "base/units.h"
#include "shardpack/error.h"

namespace shardpack {

std::string parent_of(const std::string& output) {
  std::filesystem::path path = std::filesystem::absolute(output).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "packed/"
  return path.parent_path().string();
}

void check_output_apart(const std::string& output, const std::vector<std::string>& inputs) {
  namespace fs = std::filesystem;
  const auto place = [](const std::string& path) {
    std::error_code error;  // /dev/fd/N of a pipe has no canonical name
    fs::path normal = fs::weakly_canonical(path, error);
    if (error) normal = fs::absolute(path).lexically_normal();
    return normal.has_filename() ? normal : normal.parent_path();
  };
  const fs::path out = place(output);
  for (const std::string& input : inputs) {
    if (input == "-") continue;
    const fs::path in = place(input);
    if (out == in) throw Error(ErrorCode::usage, fmt::format("the output {} is an input", output));
    if (fs::is_directory(in) && std::mismatch(in.begin(), in.end(), out.begin(), out.end()).first == in.end()) {
      throw Error(ErrorCode::usage,
                  fmt::format("the output {} lies inside the input folder {}; choose a place outside it", output, input));
    }
  }
}

void check_free_space(const std::string& output, std::int64_t needed, std::string_view remedies) {
  struct statvfs status {};
  if (::statvfs(parent_of(output).c_str(), &status) != 0) return;  // the writes will tell
  const auto free = static_cast<std::int64_t>(status.f_bavail) * static_cast<std::int64_t>(status.f_frsize);
  if (needed > free) {
    throw Error(ErrorCode::io,
                fmt::format("the output takes {} and {} are free; free some space, choose another place with -o, or use {}",
                            short_bytes(needed), short_bytes(free), remedies),
                output);
  }
}

}  // namespace shardpack
