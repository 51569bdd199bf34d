// The one thread pool, made by the caller and passed down.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace shardpack {

/// A fixed number of workers over one queue. With `threads` 1 there are no workers: ordered_map() runs inline.
class ThreadPool {
 public:
  /// \param threads  0 = the processors that this process may use
  explicit ThreadPool(int threads);
  ~ThreadPool();  ///< finishes the queue
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }
  bool inline_only() const { return workers_.empty(); }

  /// Thread-safe. A task must not throw.
  void submit(std::function<void()> task);

 private:
  void work();

  int threads_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> queue_;
  bool closing_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace shardpack
