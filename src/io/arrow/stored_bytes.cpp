#include "io/arrow/stored_bytes.h"

#include <arrow/result.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "io/arrow/arrow_file.h"

namespace shardpack {

namespace {

class BatchBody final : public arrow::io::RandomAccessFile {
 public:
  BatchBody(std::shared_ptr<const File> file, std::int64_t begin_bytes, std::int64_t bytes, bool in_memory)
      : file_(std::move(file)), begin_bytes_(begin_bytes), bytes_(bytes), in_memory_(in_memory) {}

  arrow::Result<std::int64_t> GetSize() override { return bytes_; }

  arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t bytes, void* out) override {
    if (!contains(position, bytes)) return outside(position, bytes);
    file_->read_at(begin_bytes_ + position, std::span(static_cast<std::byte*>(out), static_cast<std::size_t>(bytes)));
    return bytes;
  }

  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(std::int64_t position, std::int64_t bytes) override {
    if (!contains(position, bytes)) return outside(position, bytes);
    if (!in_memory_) return std::make_shared<FileRegion>(file_, begin_bytes_ + position, bytes);
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> buffer, arrow::AllocateBuffer(bytes, arrow_pool()));
    ARROW_RETURN_NOT_OK(ReadAt(position, bytes, buffer->mutable_data()));
    return buffer;
  }

  arrow::Result<std::int64_t> Read(std::int64_t bytes, void* out) override {
    bytes = std::min(bytes, bytes_ - position_);
    ARROW_RETURN_NOT_OK(ReadAt(position_, bytes, out));
    position_ += bytes;
    return bytes;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(std::int64_t bytes) override {
    bytes = std::min(bytes, bytes_ - position_);
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> buffer, ReadAt(position_, bytes));
    position_ += bytes;
    return buffer;
  }
  arrow::Status Seek(std::int64_t position) override {
    if (!contains(position, 0)) return outside(position, 0);
    position_ = position;
    return arrow::Status::OK();
  }
  arrow::Result<std::int64_t> Tell() const override { return position_; }
  arrow::Status Close() override { return arrow::Status::OK(); }
  bool closed() const override { return false; }

 private:
  bool contains(std::int64_t position, std::int64_t bytes) const {
    return position >= 0 && bytes >= 0 && position <= bytes_ && bytes <= bytes_ - position;
  }
  arrow::Status outside(std::int64_t position, std::int64_t bytes) const {
    return arrow::Status::Invalid("a buffer of ", bytes, " bytes from byte ", position, " on lies outside its record batch of ",
                                  bytes_, " bytes");
  }

  const std::shared_ptr<const File> file_;
  const std::int64_t begin_bytes_, bytes_;
  const bool in_memory_;
  std::int64_t position_ = 0;
};

}  // namespace

StoredBytes::StoredBytes(const std::shared_ptr<arrow::Buffer>& buffer) {
  if (buffer == nullptr) return;
  bytes = buffer->size();
  if (const auto* region = dynamic_cast<const FileRegion*>(buffer.get())) {
    file = region->file();
    begin_bytes = region->begin_bytes();
  } else {
    ensure(bytes == 0 || buffer->data() != nullptr, "a buffer lies in memory or in the file");
    memory = buffer;
  }
}

void StoredBytes::read(std::int64_t at, std::span<std::byte> out) const {
  ensure(at >= 0 && at + static_cast<std::int64_t>(out.size()) <= bytes, "the bytes are in the buffer");
  if (out.empty()) return;
  if (file) return file->read_at(begin_bytes + at, out);
  std::copy_n(reinterpret_cast<const std::byte*>(memory->data()) + at, out.size(), out.begin());
}

std::vector<std::uint8_t> StoredBytes::bits(std::int64_t first, std::int64_t count) const {
  if (count == 0) return {};
  const std::int64_t first_byte = first / 8, end_byte = (first + count + 7) / 8;
  const std::vector<std::uint8_t> stored = array<std::uint8_t>(first_byte, end_byte - first_byte);
  std::vector<std::uint8_t> result(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t bit = first - first_byte * 8 + i;
    result[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(stored[static_cast<std::size_t>(bit / 8)] >> (bit % 8) & 1);
  }
  return result;
}

std::unique_ptr<arrow::io::RandomAccessFile> batch_body(std::shared_ptr<const File> file, std::int64_t begin_bytes,
                                                        std::int64_t bytes, bool in_memory) {
  return std::make_unique<BatchBody>(std::move(file), begin_bytes, bytes, in_memory);
}

}  // namespace shardpack
