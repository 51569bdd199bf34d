// Small files that a run writes beside or instead of a dataset: whole or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/progress_bar.h"
#include "cli/settings.h"

namespace shardpack {

/// An output of the user's: refused when it exists, or with `force` when what is there does not begin with `signature`, as
/// every file that we write in its place does. Devices and pipes are taken as they are.
/// \throws Error{usage}; Error{io} for a folder that is not there
void check_output_file(const std::string& path, bool force, std::string_view signature);

/// Can --stats, --depfile and --stamp be written? They replace what is there, but have no place inside a packed dataset. And is
/// nothing written over what the command reads, whatever --force says?
void check_side_files(const Settings& settings);

/// Write `bytes` beside `path`, then rename. A file that holds exactly these bytes already keeps its modification time; a device
/// or pipe is written through. \throws Error{io}
void write_output_file(const std::string& path, std::string_view bytes);

/// What --stats tells.
struct RunFacts {
  std::int64_t tokens = 0;  ///< read or checked
  std::int64_t input_bytes = 0, output_bytes = 0;
  double seconds = 0;
};
std::string stats_json(const Settings& settings, const RunFacts& facts, const ProgressBar& progress, int threads);

/// A rule from every input to the target, and an empty rule for each input, so that make survives its deletion.
std::string depfile_text(const std::string& target, const std::vector<std::string>& inputs);

/// What the run depends on, named as the user named it where that can be told.
std::vector<std::string> dependencies(const Settings& settings);

/// --stats, --depfile and, with `success`, --stamp: in this order, so that the stamp is last.
void write_side_files(const Settings& settings, const RunFacts& facts, const ProgressBar& progress, int threads, bool success);

}  // namespace shardpack
