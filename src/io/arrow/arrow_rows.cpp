#include "io/arrow/arrow_rows.h"

#include <arrow/array/data.h>
#include <arrow/util/key_value_metadata.h>

#include <utility>
#include <vector>

#include "base/checked.h"
#include "io/arrow/batch_file.h"
#include "io/arrow/owned_buffer.h"
#include "io/hf_json.h"

namespace shardpack {

namespace {

std::shared_ptr<arrow::DataType> arrow_type(ValueType type) {
  switch (type) {
    case ValueType::i8:
      return arrow::int8();
    case ValueType::i32:
      return arrow::int32();
    case ValueType::i64:
      return arrow::int64();
    default:
      ensure(false, "a type that output columns of lists have");
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<arrow::Schema> arrow_schema(std::span<const OutputColumn> columns) {
  arrow::FieldVector fields;
  for (const OutputColumn& column : columns)
    fields.push_back(arrow::field(std::string(column.name), arrow::list(arrow_type(column.type))));
  return arrow::schema(std::move(fields), arrow::key_value_metadata({"huggingface"}, {hf_metadata(columns)}));
}

std::shared_ptr<arrow::RecordBatch> arrow_batch(TrainerRows&& rows, const std::shared_ptr<arrow::Schema>& schema) {
  std::vector<std::shared_ptr<arrow::ArrayData>> arrays;
  for (std::size_t c = 0; c < rows.columns.size(); ++c) {
    const std::shared_ptr<arrow::DataType>& type = schema->field(static_cast<int>(c))->type();
    ListValues& list = rows.columns[c];
    const std::int64_t values = list.begin.back();
    auto child = arrow::ArrayData::Make(type->field(0)->type(), values, {nullptr, owned_buffer(std::move(list.values))}, 0);
    auto begin = owned_buffer(std::move(list.begin));
    arrays.push_back(arrow::ArrayData::Make(type, rows.rows, {nullptr, std::move(begin)}, {std::move(child)}, 0));
  }
  return arrow::RecordBatch::Make(schema, rows.rows, std::move(arrays));
}

namespace {

class TrainerBatches final : public TrainerFiles {
 public:
  TrainerBatches(std::shared_ptr<arrow::Schema> schema, std::unique_ptr<BatchFile> file)
      : schema_(std::move(schema)), file_(std::move(file)) {}

  std::unique_ptr<EncodedRows> encode(TrainerRows&& rows) const override {
    return file_->encode(arrow_batch(std::move(rows), schema_));
  }
  void write(EncodedRows& rows) override { file_->write(rows); }
  std::vector<ManifestFile> finish() override { return {file_->finish()}; }

 private:
  const std::shared_ptr<arrow::Schema> schema_;
  const std::unique_ptr<BatchFile> file_;
};

}  // namespace

std::unique_ptr<TrainerFiles> make_trainer_batches(std::shared_ptr<arrow::Schema> schema, std::unique_ptr<BatchFile> file) {
  return std::make_unique<TrainerBatches>(std::move(schema), std::move(file));
}

}  // namespace shardpack
