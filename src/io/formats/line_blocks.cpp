#include "io/formats/line_blocks.h"

#include <span>
#include <utility>

#include "io/text_line.h"

namespace shardpack {

std::optional<LineBlock> LineBlockReader::next() {
  if (ended_ || records_left_ == 0) return std::nullopt;
  LineBlock block;
  block.begins_file = std::exchange(at_begin_, false);
  block.text = std::exchange(carried_, {});
  while (true) {
    const std::size_t before = block.text.size();
    block.text.resize(before + kLineBlockBytes);
    const std::size_t got = stream_.read(std::as_writable_bytes(std::span(block.text)).subspan(before));
    block.text.resize(before + got);
    if (got < kLineBlockBytes) {
      ended_ = block.ends_file = true;
      break;
    }
    // What was carried over has no newline.
    if (const std::size_t newline = std::string_view(block.text).substr(before).rfind('\n'); newline != std::string::npos) {
      carried_ = block.text.substr(before + newline + 1);
      block.text.resize(before + newline + 1);
      break;
    }
    if (static_cast<std::int64_t>(block.text.size()) >= max_line_bytes_) {
      block.line_limit = max_line_bytes_;
      ended_ = true;
      break;
    }
  }
  if (records_left_ > 0) cut_to_records(block);
  block.bytes = block.text.size();
  block.text.append(kLineBlockPadding, '\0');
  return block;
}

void LineBlockReader::cut_to_records(LineBlock& block) {
  std::size_t end = 0;
  for_each_line(block.text, [&](std::string_view line) {
    end += line.size() + 1;
    if (!trimmed(line).empty()) --records_left_;
    return records_left_ > 0;
  });
  if (records_left_ > 0 || end >= block.text.size()) return;
  block.text.resize(end);
  block.ends_file = false;
}

}  // namespace shardpack
