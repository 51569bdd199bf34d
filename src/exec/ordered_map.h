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

/// produce() -> std::optional<In>, called in order on the calling thread until it is empty; transform(In&&) -> Out in the
/// workers; consume(Out&&) in order on the calling thread. At most `in_flight` blocks exist at once. The result does not depend
/// on the number of threads. When blocks fail, the exception of the lowest-numbered one is thrown, after the others have ended.
/// \throws Error{cancelled} soon after `stop` is requested.
template <class Produce, class Transform, class Consume>
void ordered_map(ThreadPool& pool, int in_flight, const std::stop_token& stop, Produce produce, Transform transform,
                 Consume consume) {
  using In = typename std::invoke_result_t<Produce&>::value_type;
  using Out = std::invoke_result_t<Transform&, In&&>;

  if (pool.inline_only()) {
    while (std::optional<In> block = produce()) {
      throw_if_stopped(stop);
      consume(transform(std::move(*block)));
    }
    return;
  }

  std::deque<std::future<Out>> window;
  struct WaitForAll {  // tasks refer to our locals: none may outlive this call
    std::deque<std::future<Out>>& window;
    ~WaitForAll() {
      for (std::future<Out>& pending : window) {
        if (pending.valid()) pending.wait();
      }
    }
  } wait_for_all{window};

  std::exception_ptr produce_failure;
  bool more = true;
  while (true) {
    while (more && static_cast<int>(window.size()) < in_flight) {
      std::optional<In> block;
      try {
        throw_if_stopped(stop);
        block = produce();
      } catch (...) {  // earlier blocks may still fail, and then theirs is the error to report
        produce_failure = std::current_exception();
      }
      if (!block) {
        more = false;
        break;
      }
      auto task = std::make_shared<std::packaged_task<Out()>>(
          [&transform, input = std::make_shared<In>(std::move(*block))] { return transform(std::move(*input)); });
      window.push_back(task->get_future());
      pool.submit([task] { (*task)(); });
    }
    if (window.empty()) break;
    std::future<Out> next = std::move(window.front());
    window.pop_front();
    Out result = next.get();
    throw_if_stopped(stop);
    consume(std::move(result));
  }
  if (produce_failure) std::rethrow_exception(produce_failure);
}

}  // namespace shardpack
