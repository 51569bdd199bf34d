// What this binary is made of.
#pragma once

#include <string>

namespace shardpack {

std::string version_line();  ///< "shardpack 0.1.0\n"
std::string versions_text();
std::string versions_json();

}  // namespace shardpack
