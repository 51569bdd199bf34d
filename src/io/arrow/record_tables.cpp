// Records as an Arrow IPC stream or a Parquet file: a list of ids and every column, a row of the table a record. Workers make the
// batches out of the spool.
#include <arrow/array/data.h>
#include <arrow/type.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/units.h"
#include "exec/ordered_map.h"
#include "io/arrow/batch_file.h"
#include "io/arrow/owned_buffer.h"
#include "io/record_blocks.h"
#include "io/record_sinks.h"
#include "shardpack/byte_buffer.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

std::shared_ptr<arrow::DataType> arrow_type(ValueType type) {
  switch (type) {
    case ValueType::u8:
      return arrow::uint8();
    case ValueType::i32:
      return arrow::int32();
    case ValueType::i64:
      return arrow::int64();
    case ValueType::f32:
      return arrow::float32();
    case ValueType::f64:
      return arrow::float64();
    default:
      ensure(false, "a type that packed rows hold");
  }
  return nullptr;
}

std::shared_ptr<arrow::DataType> arrow_type(const Column& column) {
  if (column.kind == ColumnKind::text) return arrow::utf8();
  return column.kind == ColumnKind::sequence ? arrow_type(column.type) : arrow::list(arrow_type(column.type));
}

/// Signed, as trainers take ids.
ValueType id_type_of(const RecordSinkSettings& settings) {
  return settings.id_max > std::numeric_limits<std::int32_t>::max() ? ValueType::i64 : ValueType::i32;
}

std::shared_ptr<arrow::Schema> schema_of(const RecordSinkSettings& settings) {
  arrow::FieldVector fields{arrow::field(settings.ids_column, arrow::list(arrow_type(id_type_of(settings))))};
  for (const Column& column : settings.columns) fields.push_back(arrow::field(column.name, arrow_type(column)));
  return arrow::schema(std::move(fields));
}

/// The records of one block as a batch.
class BatchMaker {
 public:
  BatchMaker(const RecordSinkSettings& settings, const std::shared_ptr<arrow::Schema>& schema, const RecordSpool& spool)
      : settings_(settings), schema_(schema), spool_(spool) {}

  std::shared_ptr<arrow::RecordBatch> make(RecordBlock block) const {
    std::vector<std::shared_ptr<arrow::ArrayData>> arrays{ids_of(block)};
    for (const RecordSpool::Values& values : spool_.columns) arrays.push_back(column_of(values, block));
    return arrow::RecordBatch::Make(schema_, block.last - block.first, std::move(arrays));
  }

 private:
  static ByteBuffer read(const File& file, std::int64_t first, std::int64_t count, int width) {
    ByteBuffer bytes(static_cast<std::size_t>(count * width));
    file.read_at(first * width, bytes);
    return bytes;
  }

  /// Where each record's values begin in the batch, and their end. begin(record) counts in the spool.
  template <class Begin>
  static std::vector<std::int32_t> offsets(RecordBlock block, Begin begin) {
    std::vector<std::int32_t> result;
    for (std::int64_t record = block.first; record <= block.last; ++record) {
      const std::int64_t offset = begin(record) - begin(block.first);
      if (offset > std::numeric_limits<std::int32_t>::max())
        throw Error(ErrorCode::limit, "a record has 2^31 values or more, which a list of Arrow cannot hold; --as npy");
      result.push_back(static_cast<std::int32_t>(offset));
    }
    return result;
  }

  template <class Out, class In>
  static ByteBuffer widened(const ByteBuffer& bytes) {
    const std::size_t count = bytes.size() / sizeof(In);
    ByteBuffer out(count * sizeof(Out));
    const auto* const from = reinterpret_cast<const In*>(bytes.data());
    auto* const to = reinterpret_cast<Out*>(out.data());
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<Out>(from[i]);
    return out;
  }

  std::shared_ptr<arrow::ArrayData> ids_of(RecordBlock block) const {
    const auto begin = [&](std::int64_t record) { return spool_.begin[static_cast<std::size_t>(record)]; };
    std::vector<std::int32_t> at = offsets(block, begin);
    const std::int64_t count = at.back();
    ByteBuffer bytes = read(spool_.ids, begin(block.first), count, info(spool_.id_type).bytes);
    const ValueType type = id_type_of(settings_);
    if (spool_.id_type == IdType::u16) {
      bytes = widened<std::int32_t, std::uint16_t>(bytes);
    } else if (type == ValueType::i64) {
      bytes = widened<std::int64_t, std::uint32_t>(bytes);
    }
    return list_of(arrow_type(type), count, std::move(at), std::move(bytes));
  }

  std::shared_ptr<arrow::ArrayData> column_of(const RecordSpool::Values& values, RecordBlock block) const {
    const Column& column = values.column;
    const auto begin = [&](std::int64_t record) { return spool_.value_begin(values, record); };
    const std::int64_t rows = block.last - block.first;
    if (column.kind == ColumnKind::sequence) {
      ByteBuffer bytes = read(values.file, begin(block.first), rows, info(column.type).bytes);
      return arrow::ArrayData::Make(arrow_type(column), rows, {nullptr, owned_buffer(std::move(bytes))}, 0);
    }
    std::vector<std::int32_t> at = offsets(block, begin);
    const std::int64_t count = at.back();
    ByteBuffer bytes = read(values.file, begin(block.first), count, info(column.type).bytes);
    if (column.kind != ColumnKind::text) return list_of(arrow_type(column.type), count, std::move(at), std::move(bytes));
    return arrow::ArrayData::Make(arrow_type(column), rows,
                                  {nullptr, owned_buffer(std::move(at)), owned_buffer(std::move(bytes))}, 0);
  }

  static std::shared_ptr<arrow::ArrayData> list_of(const std::shared_ptr<arrow::DataType>& type, std::int64_t count,
                                                   std::vector<std::int32_t> at, ByteBuffer bytes) {
    const auto rows = static_cast<std::int64_t>(at.size()) - 1;
    auto child = arrow::ArrayData::Make(type, count, {nullptr, owned_buffer(std::move(bytes))}, 0);
    return arrow::ArrayData::Make(arrow::list(type), rows, {nullptr, owned_buffer(std::move(at))}, {std::move(child)}, 0);
  }

  const RecordSinkSettings& settings_;
  const std::shared_ptr<arrow::Schema>& schema_;
  const RecordSpool& spool_;
};

class TableSink final : public RecordSink {
 public:
  TableSink(const RecordSinkSettings& settings, const std::string& folder, const std::string& stem, const RunContext& context)
      : settings_(settings), context_(context), schema_(schema_of(settings)) {
    const std::string name = record_files(settings, stem).front();
    if (settings.format == UnpackFormat::arrow) {
      file_ = make_ipc_file(schema_, folder, name);
    } else {
      file_ = make_parquet_batches(
          schema_,
          {.group_rows = std::int64_t{1} << 20, .group_bytes = std::int64_t{16} << 20, .distinct_values = {settings.ids_column}},
          folder, name);
    }
  }

  void add(const RecordSpool& spool, std::int64_t first, std::int64_t last) override {
    const BatchMaker maker(settings_, schema_, spool);
    RecordBlocks blocks(spool, first, last);
    const auto produce = [&] { return blocks.next(); };
    ordered_map(
        context_.pool, default_in_flight(context_.pool), context_.stop, produce,
        [&](RecordBlock block) { return file_->encode(maker.make(block)); },
        [&](std::unique_ptr<EncodedRows>&& rows) { file_->write(*rows); });
  }

  std::vector<ManifestFile> finish() override { return {file_->finish()}; }

 private:
  const RecordSinkSettings& settings_;
  const RunContext& context_;
  const std::shared_ptr<arrow::Schema> schema_;
  std::unique_ptr<BatchFile> file_;
};

}  // namespace

std::unique_ptr<RecordSink> make_table_sink(const RecordSinkSettings& settings, const std::string& folder,
                                            const std::string& stem, const RunContext& context) {
  return std::make_unique<TableSink>(settings, folder, stem, context);
}

}  // namespace shardpack
