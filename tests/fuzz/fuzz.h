// What a fuzz target may do with hostile bytes: succeed, or throw an Error that blames the input. All else is a finding.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "shardpack/error.h"

namespace shardpack {

template <class Task>
void only_blames_the_input(Task task) {
  try {
    task();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::internal && error.code() != ErrorCode::cancelled) return;
    std::fprintf(stderr, "an error that blames shardpack: %s\n", error.what());
    std::abort();
  }
}

}  // namespace shardpack
