// From argv and a config file to settings. The one place that knows CLI11.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/option_table.h"
#include "cli/settings.h"

namespace shardpack {

/// What the command line and the config file say, each option by the texts given for it.
using GivenOptions = std::map<const Option*, std::vector<std::string>>;

struct Request {
  Settings settings;
  bool has_command = false;
  GivenOptions given;  ///< flags over config file; defaults are not in it
};

/// Parse and understand everything, defaults < config file < flags, inputs of --files-from included. check_settings() is left to
/// the caller, since help and --print-config do without.
/// \throws Error{usage} for what is not understood, with the nearest name and the page that helps; Error{io} for a file that
/// cannot be read
Request parse_arguments(int argc, const char* const* argv);

/// The effective options of a command as a config file that gives the same settings again; what has no value is a comment.
std::string config_text(Command command, const GivenOptions& given);

}  // namespace shardpack
