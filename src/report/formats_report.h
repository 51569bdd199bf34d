// What can be read, how it can be packed, and what is written.
#pragma once

#include <string>

#include "shardpack/presets.h"

namespace shardpack {

std::string formats_to_text();
std::string formats_to_json();

/// One preset: what its files hold, and how to train with them.
std::string preset_to_text(const Preset& preset);
std::string preset_to_json(const Preset& preset);

}  // namespace shardpack
