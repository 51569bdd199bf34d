#include "io/arrow/arrow_rows.h"

#include <arrow/array/data.h>
#include <arrow/buffer.h>
#include <arrow/util/key_value_metadata.h>

#include <utility>
#include <vector>

#include "base/checked.h"
#include "io/hf_json.h"

namespace shardpack {

namespace {

/// Bytes of ours that Arrow keeps alive as long as it needs them.
template <class Owned>
class OwnedBuffer final : public arrow::Buffer {
 public:
  explicit OwnedBuffer(Owned&& owned) : arrow::Buffer(nullptr, 0), owned_(std::move(owned)) {
    data_ = reinterpret_cast<const std::uint8_t*>(owned_.data());
    size_ = capacity_ = static_cast<std::int64_t>(owned_.size() * sizeof(owned_[0]));
  }

 private:
  Owned owned_;
};

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
    auto child = arrow::ArrayData::Make(type->field(0)->type(), values,
                                        {nullptr, std::make_shared<OwnedBuffer<ByteBuffer>>(std::move(list.values))}, 0);
    auto begin = std::make_shared<OwnedBuffer<std::vector<std::int32_t>>>(std::move(list.begin));
    arrays.push_back(arrow::ArrayData::Make(type, rows.rows, {nullptr, std::move(begin)}, {std::move(child)}, 0));
  }
  return arrow::RecordBatch::Make(schema, rows.rows, std::move(arrays));
}

}  // namespace shardpack
