// Standard input for the length of a scope: a pipe that a thread fills with `text`, so that reads come short and nothing can
// seek.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace shardpack {

class StandardInput {
 public:
  explicit StandardInput(std::string text) : saved_(::dup(STDIN_FILENO)) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe");
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
    writer_ = std::thread([text = std::move(text), end = ends[1]] {
      for (std::size_t done = 0; done < text.size();) {
        const ssize_t n = ::write(end, text.data() + done, std::min<std::size_t>(text.size() - done, 1000));
        if (n <= 0) break;
        done += static_cast<std::size_t>(n);
      }
      ::close(end);
    });
  }
  /// What was not read is read and lost, so that the writer ends.
  ~StandardInput() {
    char rest[4096];
    while (::read(STDIN_FILENO, rest, sizeof rest) > 0) {
    }
    writer_.join();
    ::dup2(saved_, STDIN_FILENO);
    ::close(saved_);
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;

 private:
  int saved_;
  std::thread writer_;
};

}  // namespace shardpack
