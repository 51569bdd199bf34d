#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

/// 0, or the errno of the write that failed.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

[[noreturn]] void throw_standard_output(int error) {
  throw Error(ErrorCode::io, std::string("cannot write: ") + std::strerror(error), "standard output");
}

}  // namespace

bool is_terminal(int descriptor) { return isatty(descriptor) == 1 && environment("TERM") != "dumb"; }

int terminal_width(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

bool wants_color(When flag, int descriptor) {
  if (flag != When::automatic) return flag == When::always;
  if (!environment("FORCE_COLOR").empty()) return true;
  if (!environment("NO_COLOR").empty()) return false;
  if (const std::string_view force = environment("CLICOLOR_FORCE"); !force.empty() && force != "0") return true;
  return is_terminal(descriptor);
}

void Console::line(std::string_view text) {
  std::string whole;
  const std::lock_guard lock(mutex_);
  if (status_shown_) whole += kEraseLine;
  status_shown_ = false;
  whole.append(text).append("\n");
  write(whole);  // in one call, so that lines of two processes do not mix
}

void Console::status(std::string_view text) {
  const std::lock_guard lock(mutex_);
  status_shown_ = true;
  write(std::string(kEraseLine).append(text));
}

void Console::clear_status() {
  const std::lock_guard lock(mutex_);
  if (status_shown_) write(kEraseLine);
  status_shown_ = false;
}

void Console::write(std::string_view text) const { write_all(descriptor_, text); }

void write_standard_output(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error != 0 && error != EPIPE) throw_standard_output(error);
}

void check_standard_output() {
  const int copy = ::dup(STDOUT_FILENO);
  if (copy >= 0 && ::close(copy) != 0) throw_standard_output(errno);
}

}  // namespace shardpack
