// Record batches as an Arrow IPC stream, as save_to_disk of `datasets` writes its files. Workers make the messages; their buffers
// are ours, so that ids are hashed and written from where they were widened.
#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/options.h>
#include <arrow/ipc/writer.h>

#include <utility>
#include <vector>

#include "base/checked.h"
#include "io/arrow/arrow_file.h"
#include "io/arrow/arrow_rows.h"
#include "io/arrow/batch_file.h"
#include "io/hashed_file.h"
#include "io/trainer_files.h"

namespace shardpack {

namespace {

/// Keeps what is written to it: buffers as they are.
class Pieces final : public arrow::io::OutputStream {
 public:
  Pieces() { set_mode(arrow::io::FileMode::WRITE); }

  arrow::Status Write(const void* data, std::int64_t bytes) override {
    return Write(arrow::Buffer::FromString(std::string(static_cast<const char*>(data), static_cast<std::size_t>(bytes))));
  }
  arrow::Status Write(const std::shared_ptr<arrow::Buffer>& buffer) override {
    bytes_ += buffer->size();
    pieces_.push_back(buffer);
    return arrow::Status::OK();
  }
  arrow::Result<std::int64_t> Tell() const override { return bytes_; }
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }

  arrow::BufferVector take() { return std::move(pieces_); }

 private:
  arrow::BufferVector pieces_;
  std::int64_t bytes_ = 0;
  bool closed_ = false;
};

struct IpcRows final : EncodedRows {
  arrow::BufferVector pieces;
};

std::span<const std::byte> bytes_of(const arrow::Buffer& buffer) {
  return std::as_bytes(std::span(buffer.data(), static_cast<std::size_t>(buffer.size())));
}

class ArrowFile final : public BatchFile {
 public:
  ArrowFile(std::shared_ptr<arrow::Schema> schema, const std::string& folder, const std::string& name,
            std::int64_t expected_bytes)
      : shown_(name),
        schema_(std::move(schema)),
        options_(arrow::ipc::IpcWriteOptions::Defaults()),
        file_(folder + "/" + name, expected_bytes) {
    options_.memory_pool = arrow_pool();
    options_.use_threads = false;
    const auto head = take_arrow(arrow::ipc::SerializeSchema(*schema_, arrow_pool()), shown_);
    file_.append(bytes_of(*head));
  }

  std::unique_ptr<EncodedRows> encode(const std::shared_ptr<arrow::RecordBatch>& batch) const override {
    arrow::ipc::IpcPayload payload;
    check_arrow(arrow::ipc::GetRecordBatchPayload(*batch, options_, &payload), shown_);
    Pieces pieces;
    std::int32_t metadata_bytes = 0;
    check_arrow(arrow::ipc::WriteIpcPayload(payload, options_, &pieces, &metadata_bytes), shown_);
    auto encoded = std::make_unique<IpcRows>();
    encoded->pieces = pieces.take();
    return encoded;
  }

  void write(EncodedRows& rows) override {
    for (const std::shared_ptr<arrow::Buffer>& piece : static_cast<IpcRows&>(rows).pieces) file_.append(bytes_of(*piece));
  }

  ManifestFile finish() override {
    constexpr std::uint32_t kEndOfStream[]{0xFFFFFFFF, 0};
    file_.append(std::as_bytes(std::span(kEndOfStream)));
    return file_.finish(shown_);
  }

 private:
  const std::string shown_;
  const std::shared_ptr<arrow::Schema> schema_;
  arrow::ipc::IpcWriteOptions options_;
  HashedFile file_;
};

}  // namespace

std::unique_ptr<BatchFile> make_ipc_file(std::shared_ptr<arrow::Schema> schema, const std::string& folder,
                                         const std::string& name, std::int64_t expected_bytes) {
  return std::make_unique<ArrowFile>(std::move(schema), folder, name, expected_bytes);
}

std::unique_ptr<TrainerFiles> make_arrow_file(const OutputRules& rules, const std::string& folder, const std::string& name,
                                              std::int64_t rows) {
  const std::shared_ptr<arrow::Schema> schema = arrow_schema(rules.columns);
  return make_trainer_batches(schema, make_ipc_file(schema, folder, name, rows * rules.row_bytes()));
}

}  // namespace shardpack
