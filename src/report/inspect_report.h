// What inspect found, on one screen of at most 100 columns, and as JSON.
#pragma once

#include <string>

#include "shardpack/inspect.h"

namespace shardpack {

std::string inspect_to_text(const InspectResult& result);
/// \param seconds  that the job took
std::string inspect_to_json(const InspectResult& result, double seconds);

}  // namespace shardpack
