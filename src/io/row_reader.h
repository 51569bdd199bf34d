// Rows of one shard as the files that a trainer reads hold them, whatever the container.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/trainer_rows.h"
#include "io/packed_dataset.h"

namespace shardpack {

class RowReader {
 public:
  virtual ~RowReader() = default;

  virtual std::int64_t rows() const = 0;

  /// One past the last row that is decoded together with row `row`: blocks that end there decode nothing twice.
  virtual std::int64_t end_of_run(std::int64_t) const { return rows(); }

  /// Rows [first, first + count), column by column as in `rules`, in the types that are stored. Thread-safe.
  /// \throws Error{bad_data} for rows that are not there and for what is damaged, naming the file
  virtual std::vector<ListValues> read(std::int64_t first, std::int64_t count) const = 0;
};

/// How a dataset's columns became its preset's, by its manifest. \throws Error{bad_data} for a preset or container that is not
/// known
OutputRules rules_of(const Manifest& manifest, const std::string& shown);

/// Opens the trainer's files of a shard (its input_ids in the native layout) and compares their columns with `rules`, which must
/// outlive the reader. \throws Error{bad_data} for other columns than those, Error{limit} for a container that this program was
/// built without, Error{io}.
std::unique_ptr<RowReader> open_rows(const PackedDataset& dataset, const ManifestShard& shard, const OutputRules& rules);

std::unique_ptr<RowReader> open_arrow_rows(const OutputRules& rules, const std::string& path);
std::unique_ptr<RowReader> open_parquet_rows(const OutputRules& rules, const std::string& path);

/// \throws Error{bad_data} when there are not all of the rows [first, first + count)
void check_row_range(std::int64_t first, std::int64_t count, std::int64_t rows, const std::string& shown);

}  // namespace shardpack
