// SIGINT, SIGTERM and SIGHUP become a request to stop: the work unwinds, cleans up, and the signal is raised again. A second one
// kills at once.
#pragma once

#include <csignal>

#include <atomic>
#include <stop_token>
#include <thread>

namespace shardpack {

/// Make one in main before any other thread: threads inherit the blocked signals.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

  /// Die by the signal that asked to stop, so that the caller sees 130 or 143; returns when none did.
  void raise_again();

 private:
  void wait_for_signals();

  sigset_t signals_{};
  std::stop_source stop_;
  std::atomic<int> received_{0};
  std::atomic<bool> closing_{false};
  std::thread waiter_;
};

/// A process may be started with 0, 1 or 2 closed; the next file opened would take the number. Fill the holes so that using
/// such a stream is an error instead.
void occupy_standard_descriptors();

}  // namespace shardpack
