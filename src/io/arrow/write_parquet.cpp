// Record batches as a Parquet file with zstd. Workers make the columns; pages are encoded and compressed by the writing thread,
// for they follow one another in the file.
#include <arrow/array/data.h>
#include <arrow/io/interfaces.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include <algorithm>
#include <utility>

#include "io/arrow/arrow_file.h"
#include "io/arrow/arrow_rows.h"
#include "io/arrow/batch_file.h"
#include "io/hashed_file.h"
#include "io/trainer_files.h"

namespace shardpack {

namespace {

/// Our file as Arrow writes to it. Small writes are put together.
class HashedStream final : public arrow::io::OutputStream {
 public:
  explicit HashedStream(const std::string& path) : file_(path) { set_mode(arrow::io::FileMode::WRITE); }

  arrow::Status Write(const void* data, std::int64_t bytes) override {
    constexpr std::size_t kWriteBytes = 4 << 20;
    const auto* const begin = static_cast<const std::byte*>(data);
    pending_.insert(pending_.end(), begin, begin + bytes);
    if (pending_.size() >= kWriteBytes) flush();
    return arrow::Status::OK();
  }
  arrow::Result<std::int64_t> Tell() const override { return file_.bytes() + static_cast<std::int64_t>(pending_.size()); }
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }

  ManifestFile finish(const std::string& name) {
    flush();
    return file_.finish(name);
  }

 private:
  void flush() {
    file_.append(pending_);
    pending_.clear();
  }

  HashedFile file_;
  ByteBuffer pending_;
  bool closed_ = false;
};

struct ParquetRows final : EncodedRows {
  std::shared_ptr<arrow::RecordBatch> batch;
};

std::shared_ptr<parquet::WriterProperties> writer_properties(const ParquetLayout& layout) {
  constexpr int kZstdLevel = 1;  // 3 and above take longer than everything else together, for a few percent
  parquet::WriterProperties::Builder builder;
  builder.memory_pool(arrow_pool())
      ->compression(parquet::Compression::ZSTD)
      ->compression_level(kZstdLevel)
      ->max_row_group_length(layout.group_rows);
  for (const std::string& column : layout.distinct_values) builder.disable_dictionary(column + ".list.element");
  return builder.build();
}

std::int64_t bytes_of(const arrow::ArrayData& data) {
  std::int64_t bytes = 0;
  for (const std::shared_ptr<arrow::Buffer>& buffer : data.buffers) bytes += buffer ? buffer->size() : 0;
  for (const std::shared_ptr<arrow::ArrayData>& child : data.child_data) bytes += bytes_of(*child);
  return bytes;
}

class ParquetFile final : public BatchFile {
 public:
  ParquetFile(std::shared_ptr<arrow::Schema> schema, const ParquetLayout& layout, const std::string& folder,
              const std::string& name)
      : shown_(name), group_bytes_(layout.group_bytes), stream_(std::make_shared<HashedStream>(folder + "/" + name)) {
    parquet::ArrowWriterProperties::Builder arrow_properties;
    arrow_properties.set_use_threads(false);
    writer_ = take_arrow(
        parquet::arrow::FileWriter::Open(*schema, arrow_pool(), stream_, writer_properties(layout), arrow_properties.build()),
        shown_);
  }

  std::unique_ptr<EncodedRows> encode(const std::shared_ptr<arrow::RecordBatch>& batch) const override {
    auto encoded = std::make_unique<ParquetRows>();
    encoded->batch = batch;
    return encoded;
  }

  void write(EncodedRows& rows) override {
    const arrow::RecordBatch& batch = *static_cast<ParquetRows&>(rows).batch;
    check_arrow(writer_->WriteRecordBatch(batch), shown_);
    if (group_bytes_ == 0) return;
    for (int c = 0; c < batch.num_columns(); ++c) bytes_in_group_ += bytes_of(*batch.column_data(c));
    if (bytes_in_group_ < group_bytes_) return;
    check_arrow(writer_->NewBufferedRowGroup(), shown_);
    bytes_in_group_ = 0;
  }

  ManifestFile finish() override {
    check_arrow(writer_->Close(), shown_);
    return stream_->finish(shown_);
  }

 private:
  const std::string shown_;
  const std::int64_t group_bytes_;
  std::int64_t bytes_in_group_ = 0;
  const std::shared_ptr<HashedStream> stream_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
};

}  // namespace

std::unique_ptr<BatchFile> make_parquet_batches(std::shared_ptr<arrow::Schema> schema, const ParquetLayout& layout,
                                                const std::string& folder, const std::string& name) {
  return std::make_unique<ParquetFile>(std::move(schema), layout, folder, name);
}

std::unique_ptr<TrainerFiles> make_parquet_file(const OutputRules& rules, const std::string& folder, const std::string& name) {
  constexpr std::int64_t kGroupTokens = 4 << 20;  // long rows come in smaller groups: a reader takes a whole one into memory
  ParquetLayout layout;
  layout.group_rows = std::clamp<std::int64_t>(kGroupTokens / rules.row_tokens, 1, rules.preset->group_rows);
  for (const OutputColumn& column : rules.columns) {
    const bool ids =
        column.source == OutputSource::ids || column.source == OutputSource::labels || column.source == OutputSource::targets;
    if (ids) layout.distinct_values.emplace_back(column.name);
  }
  const std::shared_ptr<arrow::Schema> schema = arrow_schema(rules.columns);
  return make_trainer_batches(schema, make_parquet_batches(schema, layout, folder, name));
}

}  // namespace shardpack
