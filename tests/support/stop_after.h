// A run that is stopped on the way, as a signal would stop it.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string_view>

#include "shardpack/progress.h"

namespace shardpack {

/// Asks to stop after so many rows.
class StopAfter final : public ProgressSink {
 public:
  StopAfter(std::int64_t rows, std::stop_source& stop) : rows_(rows), stop_(stop) {}
  void begin_stage(std::string_view name, std::int64_t, std::string_view) override { counts_ = name == "packing"; }
  void advance(std::int64_t amount) override {
    if (counts_ && (rows_ -= amount) <= 0) stop_.request_stop();
  }
  void end_stage() override { counts_ = false; }

 private:
  bool counts_ = false;
  std::int64_t rows_;
  std::stop_source& stop_;
};

inline constexpr std::int64_t kUndisturbed = std::int64_t{1} << 40;

}  // namespace shardpack
