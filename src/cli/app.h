// The command line tool as a function.
#pragma once

#include <stop_token>

namespace shardpack {

/// Exit codes, as docs/cli.md lists them.
inline constexpr int kExitDone = 0, kExitNegative = 1, kExitUsage = 2, kExitBadData = 3, kExitIo = 4, kExitInternal = 5;
/// Not an exit code: the run was stopped, and the signal that asked for it is to be raised again.
inline constexpr int kStopped = -1;

/// Parse, run, report; every failure becomes one line on standard error and the exit code that is returned.
int run_application(int argc, const char* const* argv, const std::stop_token& stop);

}  // namespace shardpack
