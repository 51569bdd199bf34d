// Progress of the stages of a run: painted on a terminal, told in lines elsewhere, and kept for --stats.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/terminal.h"
#include "shardpack/progress.h"

namespace shardpack {

struct StageRecord {
  std::string name, unit;
  std::int64_t total = 0;  ///< 0 when unknown
  std::int64_t done = 0;
  double seconds = 0;
};

enum class ProgressStyle : std::uint8_t { none, lines, bar };

/// A bar on a terminal; lines elsewhere when asked for with -v or --progress always; nothing with -q.
ProgressStyle progress_style(When progress, bool quiet, bool verbose, int descriptor);

/// "scan  [######......]  50 %  148.5 M of 297.0 M tokens  245.1 M/s  0:04 left", in at most `width` columns.
std::string progress_text(const StageRecord& stage, int width);

/// "scan: 297.0 M tokens in 1.2 s (247.5 M/s)"
std::string finished_text(const StageRecord& stage);

class ProgressBar final : public ProgressSink {
 public:
  /// With `sample_memory` the peak of anonymous memory is watched, six times a second, while stages run.
  ProgressBar(Console& console, ProgressStyle style, bool sample_memory);
  ~ProgressBar() override;

  void begin_stage(std::string_view name, std::int64_t total, std::string_view unit) override;
  void advance(std::int64_t amount) override { done_.fetch_add(amount, std::memory_order_relaxed); }
  void end_stage() override;

  /// Stop painting; the line is gone when this returns.
  void close();

  std::vector<StageRecord> stages() const;
  std::int64_t peak_anonymous_bytes() const { return peak_anonymous_; }

 private:
  using Clock = std::chrono::steady_clock;

  void watch(const std::stop_token& stop);
  StageRecord running_stage() const;  // mutex_ held, as for the next
  void sample_memory();

  Console& console_;
  const ProgressStyle style_;
  const bool sample_memory_;
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::vector<StageRecord> stages_;
  bool running_ = false;
  Clock::time_point began_;
  std::atomic<std::int64_t> done_{0}, peak_anonymous_{0};
  std::jthread watcher_;  // last: it uses all the others
};

}  // namespace shardpack
