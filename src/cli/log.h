// Messages to standard error: "shardpack: warning: ...". The one place that knows spdlog.
#pragma once

#include <memory>
#include <string_view>

#include "cli/terminal.h"
#include "shardpack/progress.h"

namespace shardpack {

class Log final : public Diagnostics {
 public:
  /// With `quiet` errors alone, with `verbose` debug lines too.
  Log(Console& console, bool quiet, bool verbose, bool color);
  ~Log() override;

  void error(std::string_view line);
  void warn(std::string_view line) override;
  void info(std::string_view line) override;
  void debug(std::string_view line) override;

 private:
  struct Logger;
  std::unique_ptr<Logger> logger_;
};

}  // namespace shardpack
