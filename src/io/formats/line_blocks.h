// A text stream in blocks of whole lines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/byte_stream.h"

namespace shardpack {

inline constexpr std::size_t kLineBlockBytes = std::size_t{4} << 20;
inline constexpr std::int64_t kMaxLineBytes = std::int64_t{1} << 30;
inline constexpr std::size_t kLineBlockPadding = 64;  ///< bytes behind a block's text that a parser may read

/// Calls visit(line) for every line of `text`, without its newline, until it returns false.
template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (!visit(text.substr(0, end))) return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// Whole lines, followed by the padding that the parser may read.
struct LineBlock {
  std::string text;
  std::size_t bytes = 0;  // without the padding
  bool begins_file = false;
  bool ends_file = false;
  std::int64_t line_limit = 0;  // bytes; above 0: the block is the beginning of a line that is longer than this

  std::string_view lines() const { return std::string_view(text).substr(0, bytes); }
};

/// Cuts a stream into blocks of whole lines.
class LineBlockReader {
 public:
  /// \param max_line_bytes  a longer line ends the blocks with one whose `line_limit` says so
  /// \param max_records  lines that are not blank after which to end; -1 = all
  LineBlockReader(ByteStream& stream, std::int64_t max_line_bytes, std::int64_t max_records)
      : stream_(stream), max_line_bytes_(max_line_bytes), records_left_(max_records) {}

  /// Nothing at the end. \throws Error{io}, Error{bad_data} as the stream does
  std::optional<LineBlock> next();

 private:
  void cut_to_records(LineBlock& block);

  ByteStream& stream_;
  const std::int64_t max_line_bytes_;
  std::int64_t records_left_;
  std::string carried_;  // the beginning of the next block's first line
  bool at_begin_ = true, ended_ = false;
};

}  // namespace shardpack
