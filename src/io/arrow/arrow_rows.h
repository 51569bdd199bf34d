// Rows for a trainer as Arrow's record batches, over our own buffers: nothing is copied.
#pragma once

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include <memory>
#include <span>

#include "core/trainer_rows.h"
#include "shardpack/presets.h"

namespace shardpack {

/// A list column each, and the features that `datasets` looks for in the metadata.
std::shared_ptr<arrow::Schema> arrow_schema(std::span<const OutputColumn> columns);

std::shared_ptr<arrow::RecordBatch> arrow_batch(TrainerRows&& rows, const std::shared_ptr<arrow::Schema>& schema);

}  // namespace shardpack
