// verify on a batch plan: told from the files alone, and from the sources where they are given. Shares no planning logic.
#pragma once

#include <string>

#include "shardpack/jobs.h"

namespace shardpack {

VerifyResult verify_batches(const std::string& path, const VerifyOptions& options, const RunContext& context);

}  // namespace shardpack
