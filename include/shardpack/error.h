// The one exception type: thrown when a task cannot be done. What a check *finds* is a value (Issue), not an Error.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace shardpack {

/// Chosen by what the caller can do about it; the command line maps each to an exit code.
enum class ErrorCode {
  usage,      ///< the options do not fit together, or do not fit the place they point to (exit 2)
  bad_data,   ///< an input is damaged or breaks a rule (exit 3)
  io,         ///< the system refused a read or write (exit 4)
  limit,      ///< a budget, cap or 64-bit total would be exceeded (exit 4)
  cancelled,  ///< a stop was requested (the signal is raised again)
  internal,   ///< a bug in shardpack (exit 5)
};

/// One line: where, what was expected and found, and what helps.
/// what() reads "path: position: message", leaving out the parts that are empty.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string_view message, std::string_view path = {}, std::string_view position = {});

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& path() const { return path_; }          ///< file or folder, as the user named it; may be empty
  const std::string& position() const { return position_; }  ///< "line 41,822", "byte 1,024", "sequence 7"; may be empty

 private:
  ErrorCode code_;
  std::string message_, path_, position_;
};

/// Something that a check found: a value, because finding it is what the check is for.
struct Issue {
  std::string kind;     ///< one word: "checksum", "cover", "row", "missing", "extra", "fingerprint", "manifest", ...
  std::string file;     ///< relative to the checked folder; may be empty
  long long row = -1;   ///< row in that shard, -1 when not about a row
  std::string message;  ///< expected and found
};

}  // namespace shardpack
