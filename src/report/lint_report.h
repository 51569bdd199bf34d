// What lint found, as text and JSON.
#pragma once

#include <string>
#include <string_view>

#include "shardpack/lint.h"

namespace shardpack {

std::string lint_to_text(const LintResult& result, std::string_view path);
std::string lint_to_json(const LintResult& result, std::string_view path);

}  // namespace shardpack
