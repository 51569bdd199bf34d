// What an action is refused with.
#pragma once

#include <string>

#include "shardpack/error.h"
#include "support/catch.h"

namespace shardpack {

/// what() of the Error with that code that `action` throws, or "no error".
template <class Action>
std::string refusal(Action action, ErrorCode code = ErrorCode::usage) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "no error";
}

}  // namespace shardpack
