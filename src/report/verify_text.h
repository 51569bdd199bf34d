// The verdict of verify as text.
#pragma once

#include <string>
#include <string_view>

#include "shardpack/jobs.h"

namespace shardpack {

/// A line for what was checked, or for each issue, and the verdict.
std::string verify_to_text(const VerifyResult& result, std::string_view path, double seconds);

}  // namespace shardpack
