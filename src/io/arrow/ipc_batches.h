// The messages of an Arrow IPC stream or file, one after the other: schema, then record batches. Nothing of a batch's body is
// read.
#pragma once

#include <arrow/buffer.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/file.h"

namespace shardpack {

/// A record batch that was found, not decoded.
struct IpcBatch {
  std::int64_t number = 0;
  std::int64_t rows = 0;
  std::shared_ptr<arrow::Buffer> metadata;
  std::int64_t body_begin = 0, body_bytes = 0;  ///< in the file
  bool compressed = false;
};

class IpcBatches {
 public:
  /// Reads the schema. \throws Error{bad_data} for what is no Arrow stream or file, or is one of big-endian numbers.
  explicit IpcBatches(std::shared_ptr<const File> file);

  const arrow::Schema& schema() const { return *schema_; }

  /// None at the end and ever after. The stream must say its end itself: a file that was cut short between two batches has lost
  /// some. \throws Error{bad_data} with the byte where a message is damaged or goes on behind the end of the file.
  std::optional<IpcBatch> next();

  /// The arrays of the fields with these numbers (ascending), in this order. Uncompressed buffers stay in the file as
  /// FileRegions, others are decoded into memory from `pool`. Thread-safe.
  std::shared_ptr<arrow::RecordBatch> read(const IpcBatch& batch, const std::vector<int>& fields, arrow::MemoryPool* pool) const;

 private:
  struct Message;
  Message next_message();
  IpcBatch batch_of(const Message& message);
  [[noreturn]] void fail(const std::string& message, std::int64_t at) const;

  std::shared_ptr<const File> file_;
  bool is_file_ = false;           // "ARROW1": messages, then a footer
  std::int64_t at_ = 0, end_ = 0;  // of the messages, in bytes
  std::int64_t batches_ = 0;
  bool ended_ = false;
  arrow::ipc::DictionaryMemo dictionaries_;  // which fields are encoded; their values are never read
  std::shared_ptr<arrow::Schema> schema_;
};

}  // namespace shardpack
