// What a terminal needs: is it one, how wide, in colour or not; and one owner of standard error, so that a progress line and a
// message never share a line.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace shardpack {

enum class When : std::uint8_t { automatic, always, never };

/// A terminal that understands more than plain lines (TERM is not "dumb").
bool is_terminal(int descriptor);

/// Columns of the terminal, 80 when unknown.
int terminal_width(int descriptor);

/// In this order: the flag, FORCE_COLOR, NO_COLOR (each when not empty), CLICOLOR_FORCE (not "0"), a terminal.
bool wants_color(When flag, int descriptor);

/// Standard error. Thread-safe; a write that fails is let go, there is nobody left to tell.
class Console {
 public:
  explicit Console(int descriptor) : descriptor_(descriptor) {}
  ~Console() { clear_status(); }
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  int descriptor() const { return descriptor_; }
  void line(std::string_view text);    ///< a whole line; a status line makes room first
  void status(std::string_view text);  ///< replaces the status line, the last one on the screen
  void clear_status();

 private:
  void write(std::string_view text) const;

  int descriptor_;
  std::mutex mutex_;
  bool status_shown_ = false;
};

/// Everything that goes to standard output goes through here, a report at a time.
/// A closed pipe is the reader's choice: the rest is dropped without a word. \throws Error{io} for any other failure.
void write_standard_output(std::string_view text);

/// A write error that a file system reports only when a descriptor is closed is an error too. \throws Error{io}
void check_standard_output();

}  // namespace shardpack
