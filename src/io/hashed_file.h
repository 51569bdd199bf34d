// A file that grows at its end and is hashed on the way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/hash.h"
#include "io/file.h"
#include "shardpack/manifest.h"

namespace shardpack {

class HashedFile {
 public:
  /// \throws Error{io}, also when it is there
  explicit HashedFile(const std::string& path) : file_(path, File::Mode::create_exclusive) {}

  void append(std::span<const std::byte> bytes) {
    constexpr std::size_t kStepBytes = 256 << 10;  // what is hashed is still in the second-level cache when it is written
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), kStepBytes)))
      append_step(bytes.first(std::min(bytes.size(), kStepBytes)));
  }

  std::int64_t bytes() const { return end_; }

  ManifestFile finish(std::string name) {
    file_.sync();
    file_.close();
    return {std::move(name), end_, hash_.hex()};
  }

 private:
  void append_step(std::span<const std::byte> bytes) {
    hash_.update(bytes);
    file_.write_at(end_, bytes);
    end_ += static_cast<std::int64_t>(bytes.size());
    // The disk works while later rows are made, so that the sync at the end has little left to do. A failure comes up there.
    constexpr std::int64_t kWritebackBytes = 8 << 20;
    if (end_ - written_back_ >= kWritebackBytes) {
      file_.start_writeback(written_back_, end_ - written_back_);
      written_back_ = end_;
    }
  }

  File file_;
  StreamHash hash_;
  std::int64_t end_ = 0, written_back_ = 0;  // bytes
};

}  // namespace shardpack
