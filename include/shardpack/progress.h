// How long work reports: two narrow interfaces that the command line implements. The library itself never prints.
#pragma once

#include <cstdint>
#include <string_view>

namespace shardpack {

/// Stages follow one another; advance() may be called from any thread.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  /// `total` in `unit` ("tokens", "rows", "bytes"); 0 when unknown.
  virtual void begin_stage(std::string_view name, std::int64_t total, std::string_view unit) = 0;
  virtual void advance(std::int64_t amount) = 0;
  virtual void end_stage() = 0;
};

/// One line each. warn: the user should act or know; info: shown by default; debug: with -v. Thread-safe.
class Diagnostics {
 public:
  virtual ~Diagnostics() = default;
  virtual void warn(std::string_view line) = 0;
  virtual void info(std::string_view line) = 0;
  virtual void debug(std::string_view line) = 0;
};

/// For callers that want neither.
class NoProgress final : public ProgressSink {
 public:
  void begin_stage(std::string_view, std::int64_t, std::string_view) override {}
  void advance(std::int64_t) override {}
  void end_stage() override {}
};
class NoDiagnostics final : public Diagnostics {
 public:
  void warn(std::string_view) override {}
  void info(std::string_view) override {}
  void debug(std::string_view) override {}
};

}  // namespace shardpack
