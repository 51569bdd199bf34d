// Data that tests use where it is at hand, and that is no part of this tree: the folder named by SHARDPACK_SHARED, else `shared`
// beside the source tree. A test that finds nothing says so with WARN(kNoSharedData) and returns.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "shardpack/length_histogram.h"

namespace shardpack {

inline constexpr const char* kNoSharedData = "skipped: no shared data (set SHARDPACK_SHARED to its folder)";

/// Where a published histogram lies: data/histograms/`name`, CSV "length,count" with a header. It need not be there.
inline std::filesystem::path published_histogram_path(const std::string& name) {
  const char* folder = std::getenv("SHARDPACK_SHARED");
  const std::filesystem::path shared =
      folder != nullptr ? std::filesystem::path(folder) : std::filesystem::path(SHARDPACK_SOURCE_DIR).parent_path() / "shared";
  return shared / "data" / "histograms" / name;
}

/// The same, read here so that tests of packers need no reader of ours.
inline std::optional<LengthHistogram> published_histogram(const std::string& name) {
  std::ifstream file(published_histogram_path(name));
  if (!file) return std::nullopt;

  LengthHistogram histogram;
  std::string header;
  std::getline(file, header);
  std::int64_t length = 0, count = 0;
  char comma = 0;
  while (file >> length >> comma >> count) histogram.add(length, count);
  return histogram;
}

}  // namespace shardpack
