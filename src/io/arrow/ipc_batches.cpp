#include "io/arrow/ipc_batches.h"

#include <arrow/ipc/message.h>
#include <arrow/ipc/options.h>
#include <arrow/ipc/reader.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "base/units.h"
#include "io/arrow/arrow_file.h"
#include "io/arrow/stored_bytes.h"
#include "io/formats/arrow_content.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::int64_t kMaxMetadataBytes = std::int64_t{1} << 28;
constexpr std::int64_t kFileMagicBytes = 8;     // "ARROW1" and padding
constexpr std::int64_t kFileTrailerBytes = 10;  // the footer's size and "ARROW1"

/// Where field `number` of the FlatBuffers table at the head of a message lies; null when it is left out. The message has been
/// verified.
const std::uint8_t* header_field(const arrow::ipc::Message& message, int number) {
  const auto* const table = static_cast<const std::uint8_t*>(message.header());
  std::int32_t to_vtable = 0;
  std::memcpy(&to_vtable, table, sizeof to_vtable);
  const std::uint8_t* const vtable = table - to_vtable;
  const int entry = 4 + 2 * number;
  std::uint16_t vtable_bytes = 0, place = 0;
  std::memcpy(&vtable_bytes, vtable, sizeof vtable_bytes);
  if (vtable_bytes >= entry + 2) std::memcpy(&place, vtable + entry, sizeof place);
  return place == 0 ? nullptr : table + place;
}

// Of the table RecordBatch: field 0 is the number of rows, 3 says how buffers are compressed.
std::int64_t rows_of(const arrow::ipc::Message& message) {
  std::int64_t rows = 0;
  if (const std::uint8_t* const field = header_field(message, 0)) std::memcpy(&rows, field, sizeof rows);
  return rows;
}
bool is_compressed(const arrow::ipc::Message& message) {
  const auto& custom = message.custom_metadata();
  return header_field(message, 3) != nullptr ||
         (custom && custom->Contains("ARROW:experimental_compression"));  // as written in 2020
}

}  // namespace

struct IpcBatches::Message {
  std::unique_ptr<arrow::ipc::Message> head;  // none: the end
  std::int64_t begin = 0;                     // in the file, as are the others
  std::int64_t body_begin = 0, body_bytes = 0;
};

void IpcBatches::fail(const std::string& message, std::int64_t at) const {
  throw Error(ErrorCode::bad_data, message, file_->shown(), fmt::format("byte {}", with_commas(at)));
}

IpcBatches::IpcBatches(std::shared_ptr<const File> file) : file_(std::move(file)), end_(file_->size()) {
  std::string magic(kArrowFileMagic.size(), '\0');
  magic.resize(file_->read_some_at(0, std::as_writable_bytes(std::span(magic))));
  if (magic == kArrowFileMagic) {
    std::array<std::byte, static_cast<std::size_t>(kFileTrailerBytes)> trailer{};
    if (end_ < kFileMagicBytes + kFileTrailerBytes) fail("cut short: an Arrow file has a footer", end_);
    file_->read_at(end_ - kFileTrailerBytes, trailer);
    std::int32_t footer_bytes = 0;
    std::memcpy(&footer_bytes, trailer.data(), sizeof footer_bytes);
    if (std::memcmp(trailer.data() + 4, kArrowFileMagic.data(), kArrowFileMagic.size()) != 0 || footer_bytes < 0 ||
        footer_bytes > end_ - kFileTrailerBytes - kFileMagicBytes) {
      fail("cut short or damaged: an Arrow file ends with its footer and ARROW1", end_);
    }
    is_file_ = true;
    at_ = kFileMagicBytes;
    end_ -= kFileTrailerBytes + footer_bytes;
  }

  const Message first = next_message();
  if (!first.head || first.head->type() != arrow::ipc::MessageType::SCHEMA) {
    fail("not an Arrow stream or file: it does not begin with a schema", first.begin);
  }
  schema_ = take_arrow(arrow::ipc::ReadSchema(*first.head, &dictionaries_), file_->shown());
  if (!schema_->is_native_endian()) {
    fail("its numbers are big-endian; write it anew on a usual machine (pyarrow reads and writes it)", first.begin);
  }
}

IpcBatches::Message IpcBatches::next_message() {
  Message message;
  message.begin = at_;
  if (is_file_ && at_ == end_) return message;  // before Arrow 0.15 files had no end marker
  const auto word = [&]() -> std::int64_t {
    std::uint32_t value = 0;
    if (end_ - at_ < static_cast<std::int64_t>(sizeof value)) {
      fail("cut short: the end of the stream is missing; if nothing is missing, pyarrow reads and writes it anew", end_);
    }
    file_->read_at(at_, std::as_writable_bytes(std::span(&value, 1)));
    at_ += static_cast<std::int64_t>(sizeof value);
    return value;
  };
  std::int64_t bytes = word();
  if (bytes == 0xFFFFFFFF) bytes = word();  // the continuation word, which came with Arrow 0.15
  if (bytes == 0) {
    if (!is_file_ && at_ != end_) {
      fail(fmt::format("{} more bytes follow the end of the stream: several of them in one file? Give each a file of its own",
                       with_commas(end_ - at_)),
           at_);
    }
    return message;
  }
  if (bytes > kMaxMetadataBytes) fail("damaged: no Arrow message begins here", message.begin);
  if (bytes > end_ - at_) fail("cut short: the message that begins here is not complete", message.begin);

  std::shared_ptr<arrow::Buffer> metadata = take_arrow(arrow::AllocateBuffer(bytes, arrow_pool()), file_->shown());
  file_->read_at(at_, std::as_writable_bytes(std::span(metadata->mutable_data(), static_cast<std::size_t>(bytes))));
  message.head = take_arrow(arrow::ipc::Message::Open(std::move(metadata), nullptr), file_->shown(),
                            fmt::format("byte {}", with_commas(message.begin)));
  message.body_begin = at_ + bytes;
  message.body_bytes = message.head->body_length();
  if (message.body_bytes < 0 || message.body_bytes > end_ - message.body_begin) {
    fail(fmt::format("cut short: the record batch that begins here has {} bytes, and {} are left",
                     with_commas(message.body_bytes), with_commas(end_ - message.body_begin)),
         message.begin);
  }
  at_ = message.body_begin + message.body_bytes;
  return message;
}

std::optional<IpcBatch> IpcBatches::next() {
  while (!ended_) {
    const Message message = next_message();
    if (!message.head) {
      ended_ = true;
      break;
    }
    switch (message.head->type()) {
      case arrow::ipc::MessageType::RECORD_BATCH:
        return batch_of(message);
      case arrow::ipc::MessageType::DICTIONARY_BATCH:
        continue;  // of columns that are not read
      default:
        fail("expected a record batch, found another kind of Arrow message", message.begin);
    }
  }
  return std::nullopt;
}

IpcBatch IpcBatches::batch_of(const Message& message) {
  if (message.head->header() == nullptr) fail("damaged: a record batch without a description", message.begin);
  IpcBatch batch;
  batch.number = batches_++;
  batch.rows = rows_of(*message.head);
  if (batch.rows < 0) fail(fmt::format("damaged: a record batch of {} rows", batch.rows), message.begin);
  batch.metadata = message.head->metadata();
  batch.body_begin = message.body_begin;
  batch.body_bytes = message.body_bytes;
  batch.compressed = is_compressed(*message.head);
  return batch;
}

std::shared_ptr<arrow::RecordBatch> IpcBatches::read(const IpcBatch& batch, const std::vector<int>& fields,
                                                     arrow::MemoryPool* pool) const {
  arrow::ipc::IpcReadOptions options = arrow::ipc::IpcReadOptions::Defaults();
  options.memory_pool = pool;
  options.use_threads = false;
  options.included_fields = fields;
  const auto body = batch_body(file_, batch.body_begin, batch.body_bytes, batch.compressed);
  return take_arrow(arrow::ipc::ReadRecordBatch(*batch.metadata, schema_, &dictionaries_, options, body.get()), file_->shown(),
                    fmt::format("record batch {}", with_commas(batch.number)));
}

}  // namespace shardpack
