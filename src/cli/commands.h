// What each command does: check what can be checked before the long part, run the job, write and print its report.
#pragma once

#include <cstdint>

#include "cli/log.h"
#include "cli/output_files.h"
#include "cli/progress_bar.h"
#include "cli/settings.h"
#include "cli/terminal.h"
#include "shardpack/jobs.h"

namespace shardpack {

struct Session {
  const Settings& settings;
  Console& console;
  ProgressBar& progress;
  Log& log;
  RunContext context;
};

/// Facts of the run, and whether its verdict is negative (exit 1).
struct Outcome {
  RunFacts facts;
  bool negative = false;
};

Outcome run_command(Session& session);

}  // namespace shardpack
