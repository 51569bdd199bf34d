#include "io/arrow/arrow_file.h"

#include <arrow/buffer.h>

#include <algorithm>
#include <atomic>
#include <span>
#include <utility>

#include "io/arrow_support.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

class FileInput final : public arrow::io::RandomAccessFile {
 public:
  explicit FileInput(std::shared_ptr<const File> file) : file_(std::move(file)), bytes_(file_->size()) {}

  arrow::Result<std::int64_t> GetSize() override { return bytes_; }

  arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t bytes, void* out) override {
    if (position < 0 || bytes < 0) return arrow::Status::Invalid("a negative place or size");
    const std::int64_t there = bytes_from(position, bytes);
    file_->read_at(position, std::span(static_cast<std::byte*>(out), static_cast<std::size_t>(there)));
    return there;
  }

  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(std::int64_t position, std::int64_t bytes) override {
    if (position < 0 || bytes < 0) return arrow::Status::Invalid("a negative place or size");
    // A size that the file claims is believed as far as the file goes.
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> buffer,
                          arrow::AllocateBuffer(bytes_from(position, bytes), arrow_pool()));
    ARROW_RETURN_NOT_OK(ReadAt(position, buffer->size(), buffer->mutable_data()));
    return buffer;
  }

  arrow::Result<std::int64_t> Read(std::int64_t bytes, void* out) override {
    ARROW_ASSIGN_OR_RAISE(const std::int64_t read, ReadAt(position_, bytes, out));
    position_ += read;
    return read;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(std::int64_t bytes) override {
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> buffer, ReadAt(position_, bytes));
    position_ += buffer->size();
    return buffer;
  }
  arrow::Status Seek(std::int64_t position) override {
    position_ = position;
    return arrow::Status::OK();
  }
  arrow::Result<std::int64_t> Tell() const override { return position_; }

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }

 private:
  std::int64_t bytes_from(std::int64_t position, std::int64_t wanted) const {
    return std::min(wanted, std::max<std::int64_t>(bytes_ - position, 0));
  }

  const std::shared_ptr<const File> file_;
  const std::int64_t bytes_;
  std::int64_t position_ = 0;  // Read and Seek are for one thread, ReadAt for any
  std::atomic<bool> closed_ = false;
};

}  // namespace

bool has_arrow() { return true; }

void fail_arrow(const arrow::Status& status, const std::string& shown, const std::string& position) {
  if (status.IsOutOfMemory()) {
    throw Error(ErrorCode::limit, "decoding it needs more memory than the budget allows; raise --memory", shown, position);
  }
  std::string message = status.message();
  for (char& c : message) {  // errors are one line
    if (c == '\n') c = ' ';
  }
  throw Error(ErrorCode::bad_data, "damaged or cut short: " + message, shown, position);
}

std::unique_ptr<arrow::MemoryPool> limited_pool(const OpenContext& context) {
  constexpr std::int64_t kWithoutBudget = std::int64_t{16} << 30;
  return std::make_unique<arrow::CappedMemoryPool>(arrow_pool(),
                                                   context.memory_bytes > 0 ? context.memory_bytes : kWithoutBudget);
}

std::shared_ptr<arrow::io::RandomAccessFile> arrow_input(std::shared_ptr<const File> file) {
  return std::make_shared<FileInput>(std::move(file));
}

}  // namespace shardpack
