// The verdict of verify as JSON.
#pragma once

#include <string>
#include <string_view>

#include "shardpack/jobs.h"

namespace shardpack {

std::string verify_to_json(const VerifyResult& result, std::string_view path, double seconds);

}  // namespace shardpack
