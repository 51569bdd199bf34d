// What pack wrote, or would write: the summary of a few lines and the JSON.
#pragma once

#include <string>

#include "shardpack/jobs.h"

namespace shardpack {

struct PackRun {
  std::string output;
  bool dry_run = false;
  double seconds = 0;
  std::string command = "pack";  ///< or join
};

/// Lines without a final newline.
std::string pack_summary(const PackResult& result, const PackRun& run);
std::string pack_to_json(const PackResult& result, const PackRun& run);

}  // namespace shardpack
