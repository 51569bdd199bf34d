#include "cli/memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>

#include "base/units.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

/// What one block in each stage of a pass takes, with room for long rows: less could not be kept to.
constexpr std::int64_t kLeastMemory = std::int64_t{64} << 20;

/// The limit of this process's control group in bytes; the largest number when there is none.
std::int64_t control_group_limit() {
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::int64_t bytes = 0;
    if (std::ifstream(path) >> bytes && bytes > 0) limit = std::min(limit, bytes);  // "max" is not a number
  }
  return limit;
}

std::int64_t usable_memory() {
  const std::int64_t machine = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return std::min(machine, control_group_limit());
}

std::int64_t percent_of_memory(const std::string& text) {
  double percent = 0;
  const char* const end = text.data() + text.size() - 1;
  const auto [stop, problem] = std::from_chars(text.data(), end, percent, std::chars_format::fixed);
  if (problem != std::errc{} || stop != end || !(percent > 0 && percent <= 100)) {
    throw Error(ErrorCode::usage, fmt::format("--memory: expected a size such as 512M or a share such as 25%, found '{}'", text));
  }
  return static_cast<std::int64_t>(static_cast<double>(usable_memory()) * percent / 100);
}

}  // namespace

std::int64_t parse_memory(const std::string& text) {
  const bool share = !text.empty() && text.back() == '%';
  const std::int64_t bytes = share ? percent_of_memory(text) : parse_size(text, "--memory");
  if (bytes < kLeastMemory) {
    throw Error(ErrorCode::limit, fmt::format("--memory {}{} is too little for one block in flight; the least that works is {}M",
                                              text, share ? fmt::format(" ({})", short_bytes(bytes)) : "", kLeastMemory >> 20));
  }
  return bytes;
}

}  // namespace shardpack
