// What a job runs in: threads, the wish to stop, where to report, and budgets. None of it changes a byte of the output.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "shardpack/progress.h"

namespace shardpack {

class ThreadPool;  // shardpack/thread_pool.h

/// One for each run, made by the caller; everything it refers to outlives the job.
struct RunContext {
  ThreadPool& pool;
  std::stop_token stop;
  ProgressSink& progress;
  Diagnostics& diagnostics;
  std::int64_t memory_bytes = 0;  ///< budget for blocks in flight
  std::int64_t memory_limit = 0;  ///< budget for all that the job holds, lengths and plans included; 0 = none
  std::string temp_dir;           ///< where decoded tokens are spooled; empty = the output's own, else the working folder
};

}  // namespace shardpack
