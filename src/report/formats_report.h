// What can be read, how it can be packed, and what is written.
#pragma once

#include <string>

namespace shardpack {

std::string formats_to_text();
std::string formats_to_json();

}  // namespace shardpack
