// What unpack wrote, and what is missing from it: the summary of a few lines and the JSON.
#pragma once

#include <string>

#include "shardpack/jobs.h"

namespace shardpack {

struct UnpackRun {
  std::string output;
  bool dry_run = false;
  double seconds = 0;
};

/// Lines without a final newline.
std::string unpack_summary(const UnpackResult& result, const UnpackRun& run);
std::string unpack_to_json(const UnpackResult& result, const UnpackRun& run);

}  // namespace shardpack
