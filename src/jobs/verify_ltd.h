// verify, for a random-LTD schedule folder: is everything in it, and does every figure follow from the options beside it?
#pragma once

#include <string>

#include "shardpack/jobs.h"

namespace shardpack {

VerifyResult verify_ltd(const std::string& path, const VerifyOptions& options, const RunContext& context);

}  // namespace shardpack
