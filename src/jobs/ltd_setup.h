// From what is given - flags, a DeepSpeed config, a dataset - to the setup of a random-LTD run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/json.h"
#include "jobs/ltd_rows.h"
#include "shardpack/ltd.h"

namespace shardpack {

struct SettledLtd {
  LtdSetup setup;
  std::optional<Json> base;  ///< the DeepSpeed config
};

/// Flags win over the config, the config over the dataset. \throws Error{usage} naming the option that is missing or does not fit
SettledLtd settle_ltd(const LtdOptions& options, const std::optional<LtdRows>& rows);

/// ds_config.json, and what lint says of it as lines for the manifest. \throws Error{bad_data} when it has errors and was asked
/// for (a config was given); else they are warnings
std::string settle_deepspeed(const SettledLtd& settled, bool packed, const std::string& path, std::vector<std::string>& warnings);

}  // namespace shardpack
