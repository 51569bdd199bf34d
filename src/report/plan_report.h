// How good a plan is, as text and as JSON.
#pragma once

#include <string>

#include "shardpack/jobs.h"

namespace shardpack {

/// \param seconds  that the job took
std::string plan_to_text(const PlanResult& result, double seconds);
std::string plan_to_json(const PlanResult& result, double seconds);

}  // namespace shardpack
