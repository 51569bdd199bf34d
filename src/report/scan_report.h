// What scan found, as text and as JSON.
#pragma once

#include <string>

#include "shardpack/jobs.h"

namespace shardpack {

std::string scan_to_text(const ScanResult& result);
std::string scan_to_json(const ScanResult& result, double seconds);

}  // namespace shardpack
