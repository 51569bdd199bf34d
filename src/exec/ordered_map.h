// The one primitive for parallel work: a bounded window of blocks in flight whose results come back in block order.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "shardpack/error.h"
#include "shardpack/thread_pool.h"

namespace shardpack {

inline void throw_if_stopped(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Error(ErrorCode::cancelled, "stopped");
}

/// Blocks in flight that keep every worker busy while the caller consumes.
inline int default_in_flight(const ThreadPool& pool) { return pool.inline_only() ? 1 : 2 * pool.threads(); }

/// Blocks made in order, transformed by the workers, and pulled in order, one by one. At most `in_flight` blocks exist at once,
/// that which was pulled last not counted. For one caller at a time; tasks refer to the object, so it does not move.
template <class Produce, class Transform>
class OrderedPull {
  using In = typename std::invoke_result_t<Produce&>::value_type;
  using Out = std::invoke_result_t<Transform&, In&&>;

 public:
  /// \param produce    () -> std::optional<In>, called in order on the calling thread until it is empty
  /// \param transform  (In&&) -> Out, in the workers
  OrderedPull(ThreadPool& pool, int in_flight, std::stop_token stop, Produce produce, Transform transform)
      : pool_(pool),
        in_flight_(in_flight),
        stop_(std::move(stop)),
        produce_(std::move(produce)),
        transform_(std::move(transform)) {}
  ~OrderedPull() {
    for (std::future<Out>& pending : window_) pending.wait();
  }
  OrderedPull(const OrderedPull&) = delete;
  OrderedPull& operator=(const OrderedPull&) = delete;

  /// The next block's result; none after the last. When blocks fail, the exception of the lowest-numbered one is thrown, and
  /// there is nothing to pull then. \throws Error{cancelled} soon after `stop` is requested.
  std::optional<Out> next() {
    if (pool_.inline_only()) {
      std::optional<In> block = produce_();
      if (!block) return std::nullopt;
      throw_if_stopped(stop_);
      return transform_(std::move(*block));
    }
    fill_window();
    if (window_.empty()) {
      if (produce_failure_) std::rethrow_exception(produce_failure_);
      return std::nullopt;
    }
    std::future<Out> front = std::move(window_.front());
    window_.pop_front();
    Out result = front.get();
    throw_if_stopped(stop_);
    return result;
  }

 private:
  void fill_window() {
    while (more_ && static_cast<int>(window_.size()) < in_flight_) {
      std::optional<In> block;
      try {
        throw_if_stopped(stop_);
        block = produce_();
      } catch (...) {  // earlier blocks may still fail, and then theirs is the error to report
        produce_failure_ = std::current_exception();
      }
      if (!block) {
        more_ = false;
        break;
      }
      auto task = std::make_shared<std::packaged_task<Out()>>(
          [this, input = std::make_shared<In>(std::move(*block))] { return transform_(std::move(*input)); });
      window_.push_back(task->get_future());
      pool_.submit([task] { (*task)(); });
    }
  }

  ThreadPool& pool_;
  const int in_flight_;
  const std::stop_token stop_;
  Produce produce_;
  Transform transform_;
  std::deque<std::future<Out>> window_;
  std::exception_ptr produce_failure_;
  bool more_ = true;
};

/// consume(Out&&) is called in order on the calling thread with the result of every block; the rest as in OrderedPull. The result
/// does not depend on the number of threads.
template <class Produce, class Transform, class Consume>
void ordered_map(ThreadPool& pool, int in_flight, const std::stop_token& stop, Produce produce, Transform transform,
                 Consume consume) {
  OrderedPull<Produce, Transform> pull(pool, in_flight, stop, std::move(produce), std::move(transform));
  while (auto result = pull.next()) consume(std::move(*result));
}

}  // namespace shardpack
