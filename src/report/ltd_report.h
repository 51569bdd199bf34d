// What ltd came to, as text and JSON.
#pragma once

#include <string>

#include "io/json.h"
#include "shardpack/inspect.h"
#include "shardpack/ltd.h"

namespace shardpack {

struct LtdRun {
  std::string output;
  bool dry_run = false;
  double seconds = 0;
};
std::string ltd_summary(const LtdResult& result, const LtdRun& run);  ///< without the last line's end
std::string ltd_to_json(const LtdResult& result, const LtdRun& run);

std::string kept_to_text(const KeptSlots& kept);
std::string kept_to_json(const KeptSlots& kept);

std::string ltd_view_to_text(const LtdView& view, const std::string& path);
void write_ltd_view(JsonWriter& json, const LtdView& view);

}  // namespace shardpack
