// What batch did, for people and for programs.
#pragma once

#include <string>

#include "io/json.h"
#include "shardpack/jobs.h"

namespace shardpack {

struct BatchRun {
  std::string output;
  bool dry_run = false;
  double seconds = 0;
};

/// Several lines without a newline at the end.
std::string batch_summary(const BatchResult& result, const BatchRun& run);
std::string batch_to_json(const BatchResult& result, const BatchRun& run);

/// What inspect shows of a batch plan's folder.
std::string batch_manifest_to_text(const BatchManifest& manifest);
void write_batch_manifest(JsonWriter& json, const BatchManifest& manifest);

}  // namespace shardpack
