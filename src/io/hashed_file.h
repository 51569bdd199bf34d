// A file that grows at its end and is hashed on the way.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/hash.h"
#include "base/prefetch.h"
#include "io/file.h"
#include "shardpack/manifest.h"

namespace shardpack {

class HashedFile {
 public:
  /// \param expected_bytes  0: not known. \throws Error{io}, also when it is there
  explicit HashedFile(const std::string& path, std::int64_t expected_bytes = 0)
      : file_(std::make_unique<File>(path, File::Mode::create_exclusive)) {
    // Where there is room already, writing does not wait for that which the write-back is finding.
    if (expected_bytes < kWritebackBytes) return;
    file_->reserve(expected_bytes);
    reserved_ = expected_bytes;
  }

  void append(std::span<const std::byte> bytes) {
    // What is hashed is still in the second-level cache when it is written. Not more at once: the page cache then takes larger
    // pages, and a virtual machine that returns such ones to its host when they are free gets them back slowly.
    constexpr std::size_t kStepBytes = 256 << 10;
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), kStepBytes)))
      append_step(bytes.first(std::min(bytes.size(), kStepBytes)));
  }

  std::int64_t bytes() const { return end_; }

  ManifestFile finish(std::string name) {
    if (writeback_.valid()) writeback_.wait();
    if (reserved_ > end_) file_->truncate(end_);
    file_->sync();
    file_->close();
    return {std::move(name), end_, hash_.hex()};
  }

 private:
  static constexpr std::int64_t kWritebackBytes = 8 << 20;

  /// They come from another core, as a rule.
  void hash(std::span<const std::byte> bytes) {
    constexpr std::size_t kChunkBytes = 1024, kAheadBytes = 4096;
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), kChunkBytes))) {
      prefetch_to_read(reinterpret_cast<std::uintptr_t>(bytes.data()) + kAheadBytes, kChunkBytes);
      hash_.update(bytes.first(std::min(bytes.size(), kChunkBytes)));
    }
  }

  void append_step(std::span<const std::byte> bytes) {
    hash(bytes);
    file_->write_at(end_, bytes);
    end_ += static_cast<std::int64_t>(bytes.size());
    // The disk works while later rows are made, so that the sync at the end has little left to do. A failure comes up there.
    // In a thread of its own, for the call takes as long as the disk has its queue full; later, where there can be none.
    const bool busy = writeback_.valid() && writeback_.wait_for(std::chrono::seconds(0)) == std::future_status::timeout;
    if (end_ - written_back_ < kWritebackBytes || busy) return;
    if (writeback_.valid()) writeback_.wait();
    writeback_ =
        std::async(std::launch::async | std::launch::deferred,
                   [&file = *file_, from = written_back_, bytes = end_ - written_back_] { file.start_writeback(from, bytes); });
    written_back_ = end_;
  }

  std::unique_ptr<File> file_;
  StreamHash hash_;
  std::int64_t reserved_ = 0, end_ = 0, written_back_ = 0;  // bytes
  std::future<void> writeback_;                             // waits for it on destruction
};

}  // namespace shardpack
