// What the formats have in common. The sinks themselves are in record_lines.cpp, record_arrays.cpp and arrow/record_tables.cpp.
#include "io/record_sink.h"

#include <fmt/format.h>

#include "base/units.h"
#include "io/record_sinks.h"
#include "io/trainer_files.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

bool is_table(UnpackFormat format) { return format == UnpackFormat::arrow || format == UnpackFormat::parquet; }

/// Why the column cannot lie in X.NAME.npy; "" when it can.
std::string array_obstacle(const Column& column) {
  if (column.kind == ColumnKind::list || column.kind == ColumnKind::text) {
    return fmt::format("an array holds a value for each token or sequence, and it is of kind {}",
                       kColumnKinds[static_cast<std::size_t>(column.kind)]);
  }
  const bool number = column.name.find_first_not_of("0123456789") == std::string::npos;
  if (number || column.name.find('.') != std::string::npos || column.name == "lengths" || column.name == "offsets") {
    return fmt::format("X.{}.npy would not be known as a column of X", column.name);
  }
  return "";
}

}  // namespace

void check_record_format(const RecordSinkSettings& settings) {
  if (settings.format == UnpackFormat::jsonl) return;
  const std::string_view name = kUnpackFormats[static_cast<std::size_t>(settings.format)];
  if (settings.zstd_level > 0) {
    throw Error(ErrorCode::usage, fmt::format("--compress is for --as jsonl: {} files are {}", name,
                                              settings.format == UnpackFormat::parquet ? "compressed in any case"
                                                                                       : "read at random, uncompressed"));
  }
  if (is_table(settings.format))
    return check_container(settings.format == UnpackFormat::arrow ? Container::arrow : Container::parquet);
  for (const Column& column : settings.columns) {
    if (const std::string obstacle = array_obstacle(column); !obstacle.empty()) {
      throw Error(ErrorCode::usage, fmt::format("--as {}: the column '{}' cannot be written: {}; --as jsonl holds every column",
                                                name, column.name, obstacle));
    }
  }
  constexpr std::int64_t kMaxI32 = 0x7fffffff;
  if (settings.format == UnpackFormat::megatron && settings.id_max > kMaxI32) {
    throw Error(ErrorCode::usage,
                fmt::format("--as megatron: the largest id is {}, and Megatron's files end at {}; --as jsonl or "
                            "npy",
                            with_commas(settings.id_max), with_commas(kMaxI32)));
  }
}

std::vector<std::string> record_files(const RecordSinkSettings& settings, const std::string& stem) {
  if (settings.format == UnpackFormat::jsonl) return {stem + (settings.zstd_level > 0 ? ".jsonl.zst" : ".jsonl")};
  if (is_table(settings.format)) return {stem + (settings.format == UnpackFormat::arrow ? ".arrow" : ".parquet")};
  const bool megatron = settings.format == UnpackFormat::megatron;
  std::vector<std::string> files{stem + (megatron ? ".bin" : ".npy"), stem + (megatron ? ".idx" : ".lengths.npy")};
  for (const Column& column : settings.columns) files.push_back(fmt::format("{}.{}.npy", stem, column.name));
  return files;
}

std::unique_ptr<RecordSink> make_record_sink(const RecordSinkSettings& settings, const std::string& folder,
                                             const std::string& stem, const RunContext& context) {
  if (settings.format == UnpackFormat::jsonl) return make_line_sink(settings, folder, stem, context);
  if (is_table(settings.format)) return make_table_sink(settings, folder, stem, context);
  return make_array_sink(settings, folder, stem, context);
}

}  // namespace shardpack
