// Files of record batches that we write: one implementation for Arrow IPC, one for Parquet, whatever the columns are.
#pragma once

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/trainer_files.h"
#include "shardpack/manifest.h"
#include "shardpack/row_sink.h"

namespace shardpack {

/// encode() is thread-safe and does the work; write() takes the batches in their order, from one thread.
class BatchFile {
 public:
  virtual ~BatchFile() = default;
  virtual std::unique_ptr<EncodedRows> encode(const std::shared_ptr<arrow::RecordBatch>& batch) const = 0;
  virtual void write(EncodedRows& rows) = 0;
  virtual ManifestFile finish() = 0;
};

/// An IPC stream. \param expected_bytes  0: not known
std::unique_ptr<BatchFile> make_ipc_file(std::shared_ptr<arrow::Schema> schema, const std::string& folder,
                                         const std::string& name, std::int64_t expected_bytes = 0);

/// How a Parquet file is cut and coded; always with zstd.
struct ParquetLayout {
  std::int64_t group_rows = 0;               ///< of a row group, at most
  std::int64_t group_bytes = 0;              ///< of a row group before compression, about; 0 = no limit
  std::vector<std::string> distinct_values;  ///< columns of which as good as every value is another one: no dictionary is tried
};
std::unique_ptr<BatchFile> make_parquet_batches(std::shared_ptr<arrow::Schema> schema, const ParquetLayout& layout,
                                                const std::string& folder, const std::string& name);

/// A trainer's file of them.
std::unique_ptr<TrainerFiles> make_trainer_batches(std::shared_ptr<arrow::Schema> schema, std::unique_ptr<BatchFile> file);

}  // namespace shardpack
