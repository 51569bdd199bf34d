// Arrow and Parquet files made by Arrow itself: read in place or decoded, cut short at every byte, and damaged anywhere.
#include <arrow/array/builder_nested.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/writer.h>
#include <arrow/table.h>
#include <arrow/util/compression.h>
#include <parquet/api/writer.h>
#include <parquet/arrow/writer.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/arrow/arrow_file.h"
#include "io/formats/arrow_content.h"
#include "support/catch.h"
#include "support/open_shards.h"
#include "support/temp_folder.h"

using namespace shardpack;

namespace {

const Sequences kFive{{1, 2, 3, 4}, {}, {5}, {70'000, 6}, {7, 8, 9}};

/// Rows of the values with every second one in a batch of its own.
std::shared_ptr<arrow::Table> table_of(const Sequences& rows, bool mask = false) {
  arrow::ListBuilder ids(arrow_pool(), std::make_shared<arrow::Int32Builder>(arrow_pool()));
  arrow::ListBuilder masks(arrow_pool(), std::make_shared<arrow::Int8Builder>(arrow_pool()));
  for (const std::vector<std::uint32_t>& row : rows) {
    REQUIRE(ids.Append().ok());
    REQUIRE(masks.Append().ok());
    for (const std::uint32_t id : row) {
      REQUIRE(static_cast<arrow::Int32Builder*>(ids.value_builder())->Append(static_cast<std::int32_t>(id)).ok());
      REQUIRE(static_cast<arrow::Int8Builder*>(masks.value_builder())->Append(1).ok());
    }
  }
  std::vector<std::shared_ptr<arrow::Field>> fields{arrow::field("input_ids", arrow::list(arrow::int32()))};
  std::vector<std::shared_ptr<arrow::Array>> arrays{ids.Finish().ValueOrDie()};
  if (mask) {
    fields.push_back(arrow::field("attention_mask", arrow::list(arrow::int8())));
    arrays.push_back(masks.Finish().ValueOrDie());
  }
  return arrow::Table::Make(arrow::schema(fields), arrays);
}

enum class Container { stream, file, legacy_stream };

std::string ipc_bytes(const arrow::Table& table, Container container,
                      arrow::Compression::type codec = arrow::Compression::UNCOMPRESSED) {
  auto sink = arrow::io::BufferOutputStream::Create().ValueOrDie();
  arrow::ipc::IpcWriteOptions options;
  options.write_legacy_ipc_format = container == Container::legacy_stream;
  if (codec != arrow::Compression::UNCOMPRESSED) options.codec = arrow::util::Codec::Create(codec).ValueOrDie();
  options.use_threads = false;
  auto writer = (container == Container::file ? arrow::ipc::MakeFileWriter(sink, table.schema(), options)
                                              : arrow::ipc::MakeStreamWriter(sink, table.schema(), options))
                    .ValueOrDie();
  REQUIRE(writer->WriteTable(table, 2).ok());
  REQUIRE(writer->Close().ok());
  return sink->Finish().ValueOrDie()->ToString();
}

std::string parquet_bytes(const arrow::Table& table) {
  auto sink = arrow::io::BufferOutputStream::Create().ValueOrDie();
  REQUIRE(parquet::arrow::WriteTable(table, arrow_pool(), sink, 2).ok());
  return sink->Finish().ValueOrDie()->ToString();
}

/// A column of repeated int32 without any list around it, as some writers leave it.
std::string bare_repeated_parquet(const Sequences& rows) {
  const auto ids = parquet::schema::PrimitiveNode::Make("input_ids", parquet::Repetition::REPEATED, parquet::Type::INT32);
  const auto root = std::static_pointer_cast<parquet::schema::GroupNode>(
      parquet::schema::GroupNode::Make("schema", parquet::Repetition::REQUIRED, {ids}));
  auto sink = arrow::io::BufferOutputStream::Create().ValueOrDie();
  const auto file = parquet::ParquetFileWriter::Open(sink, root);
  auto* const column = static_cast<parquet::Int32Writer*>(file->AppendRowGroup()->NextColumn());
  for (const std::vector<std::uint32_t>& row : rows) {
    const std::vector<std::int32_t> values(row.begin(), row.end());
    std::vector<std::int16_t> defined(std::max<std::size_t>(values.size(), 1), values.empty() ? 0 : 1);
    std::vector<std::int16_t> repeated(defined.size(), 1);
    repeated[0] = 0;
    column->WriteBatch(static_cast<std::int64_t>(defined.size()), defined.data(), repeated.data(), values.data());
  }
  column->Close();
  file->Close();
  return sink->Finish().ValueOrDie()->ToString();
}

struct Sample {
  std::string name, bytes;
};
std::vector<Sample> samples() {
  const auto table = table_of(kFive);
  const auto masked = table_of(kFive, true);
  return {{"a.arrow", ipc_bytes(*table, Container::stream)},
          {"b.arrow", ipc_bytes(*masked, Container::file)},
          {"c.arrow", ipc_bytes(*table, Container::legacy_stream)},
          {"d.arrow", ipc_bytes(*masked, Container::stream, arrow::Compression::ZSTD)},
          {"e.feather", ipc_bytes(*table, Container::file, arrow::Compression::LZ4_FRAME)},
          {"f.parquet", parquet_bytes(*masked)},
          {"g.parquet", bare_repeated_parquet(kFive)}};
}

}  // namespace

TEST_CASE("Arrow and Parquet files are read as they were written") {
  const TempFolder folder;
  ShardOpener opener;
  for (const Sample& sample : samples()) {
    CAPTURE(sample.name);
    const ScannedSource scanned = opener.open({folder.write(sample.name, sample.bytes)});
    CHECK(ShardOpener::sequences_of(*scanned.source) == kFive);
    CHECK(scanned.totals.id_min == 1);
    CHECK(scanned.totals.id_max == 70'000);
    CHECK(scanned.totals.fingerprint == opener
                                            .open({folder.write("rows.jsonl",
                                                                "{\"input_ids\": [1,2,3,4]}\n{\"input_ids\": []}\n"
                                                                "{\"input_ids\": [5]}\n{\"input_ids\": [70000,6]}\n"
                                                                "{\"input_ids\": [7,8,9]}\n")})
                                            .totals.fingerprint);
    const Sequences three(kFive.begin(), kFive.begin() + 3);
    ReadOptions limited;
    limited.limit = 3;
    CHECK(opener.sequences({folder.path(sample.name)}, limited) == three);
  }
}

TEST_CASE("content tells Arrow streams of either framing") {
  const auto table = table_of(kFive);
  CHECK(begins_arrow_stream(ipc_bytes(*table, Container::stream)));
  CHECK(begins_arrow_stream(ipc_bytes(*table, Container::legacy_stream)));
  CHECK_FALSE(begins_arrow_stream(ipc_bytes(*table, Container::file)));
  CHECK_FALSE(begins_arrow_stream(std::string(4096, '\0')));
  CHECK_FALSE(begins_arrow_stream(std::string(4096, '\xFF')));
  CHECK_FALSE(begins_arrow_stream(""));
}

TEST_CASE("an Arrow or Parquet file that is cut short anywhere is bad data") {
  const TempFolder folder;
  ShardOpener opener(1);
  for (const Sample& sample : samples()) {
    CAPTURE(sample.name);
    std::size_t taken = 0;
    for (std::size_t size = 0; size < sample.bytes.size(); ++size) {
      const ShardOpener::Failure failure = opener.failure({folder.write(sample.name, sample.bytes.substr(0, size))});
      if (!failure.failed || failure.code != ErrorCode::bad_data || !failure.has_place) ++taken;
    }
    CHECK(taken == 0);
  }
}

TEST_CASE("a damaged Arrow or Parquet file is read or refused, never worse") {
  const TempFolder folder;
  ShardOpener opener(1);
  for (const Sample& sample : samples()) {
    CAPTURE(sample.name);
    for (std::size_t at = 0; at < sample.bytes.size(); ++at) {
      for (const int value : {0x00, 0x7F, 0xFF}) {
        std::string bytes = sample.bytes;
        bytes[at] = static_cast<char>(value);
        const std::string path = folder.write(sample.name, bytes);
        const ShardOpener::Failure failure = opener.failure({path});
        const bool told = !failure.failed || failure.code == ErrorCode::bad_data || failure.code == ErrorCode::usage ||
                          failure.code == ErrorCode::limit;
        if (!told) FAIL("byte " << at << " = " << value << ": " << failure.what);
      }
    }
  }
}

TEST_CASE("a file that shrinks while it is in use is an error") {
  const TempFolder folder;
  ShardOpener opener;
  const std::string path = folder.write("a.arrow", ipc_bytes(*table_of(kFive), Container::stream));
  const ScannedSource scanned = opener.open({path});
  std::filesystem::resize_file(path, 100);
  CHECK_THROWS_AS(ShardOpener::sequences_of(*scanned.source), Error);
}
