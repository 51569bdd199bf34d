// A shard as a Parquet file with zstd. Workers make the columns; pages are encoded and compressed by the writing thread, for they
// follow one another in the file.
#include <arrow/io/interfaces.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include <algorithm>
#include <utility>

#include "io/arrow/arrow_file.h"
#include "io/arrow/arrow_rows.h"
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

std::shared_ptr<parquet::WriterProperties> writer_properties(const OutputRules& rules) {
  constexpr std::int64_t kGroupTokens = 4 << 20;  // long rows come in smaller groups: a reader takes a whole one into memory
  constexpr int kZstdLevel = 1;                   // 3 and above take longer than everything else together, for a few percent
  parquet::WriterProperties::Builder builder;
  builder.memory_pool(arrow_pool())
      ->compression(parquet::Compression::ZSTD)
      ->compression_level(kZstdLevel)
      ->max_row_group_length(std::clamp<std::int64_t>(kGroupTokens / rules.row_tokens, 1, rules.preset->group_rows));
  for (const OutputColumn& column : rules.columns) {
    // As good as every value of these is another one: a dictionary would be given up anyway.
    const bool ids =
        column.source == OutputSource::ids || column.source == OutputSource::labels || column.source == OutputSource::targets;
    if (ids) builder.disable_dictionary(std::string(column.name) + ".list.element");
  }
  return builder.build();
}

class ParquetFile final : public TrainerFiles {
 public:
  ParquetFile(const OutputRules& rules, const std::string& folder, const std::string& name)
      : shown_(name), schema_(arrow_schema(rules.columns)), stream_(std::make_shared<HashedStream>(folder + "/" + name)) {
    parquet::ArrowWriterProperties::Builder arrow_properties;
    arrow_properties.set_use_threads(false);
    writer_ = take_arrow(
        parquet::arrow::FileWriter::Open(*schema_, arrow_pool(), stream_, writer_properties(rules), arrow_properties.build()),
        shown_);
  }

  std::unique_ptr<EncodedRows> encode(TrainerRows&& rows) const override {
    auto encoded = std::make_unique<ParquetRows>();
    encoded->batch = arrow_batch(std::move(rows), schema_);
    return encoded;
  }

  void write(EncodedRows& rows) override {
    check_arrow(writer_->WriteRecordBatch(*static_cast<ParquetRows&>(rows).batch), shown_);
  }

  std::vector<ManifestFile> finish() override {
    check_arrow(writer_->Close(), shown_);
    return {stream_->finish(shown_)};
  }

 private:
  const std::string shown_;
  const std::shared_ptr<arrow::Schema> schema_;
  const std::shared_ptr<HashedStream> stream_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
};

}  // namespace

std::unique_ptr<TrainerFiles> make_parquet_file(const OutputRules& rules, const std::string& folder, const std::string& name) {
  return std::make_unique<ParquetFile>(rules, folder, name);
}

}  // namespace shardpack
