// Compiled in place of src/io/arrow/ where there is no Apache Arrow: its formats are recognised, and say what they need.
#include "base/checked.h"
#include "io/arrow_support.h"
#include "io/formats/readers.h"
#include "io/record_sinks.h"
#include "io/row_reader.h"
#include "io/trainer_files.h"
#include "shardpack/error.h"

namespace shardpack {

bool has_arrow() { return false; }

namespace {
[[noreturn]] void fail_without_arrow(const InputFile& file) {
  throw Error(ErrorCode::limit,
              "this shardpack was built without Apache Arrow, which reads it: ./dev build takes Arrow from the system "
              "(libarrow-dev and libparquet-dev, 24 or newer) or from the Python package pyarrow, and says why when it cannot",
              file.name);
}
}  // namespace

OpenedShard open_hf(const InputFile& file, const ReadOptions&, const OpenContext&) { fail_without_arrow(file); }
OpenedShard open_arrow(const InputFile& file, const ReadOptions&, const OpenContext&) { fail_without_arrow(file); }
OpenedShard open_parquet(const InputFile& file, const ReadOptions&, const OpenContext&) { fail_without_arrow(file); }

// check_container() has refused what leads here.
std::unique_ptr<TrainerFiles> make_arrow_file(const OutputRules&, const std::string&, const std::string&, std::int64_t) {
  ensure(false, "no Arrow file without Arrow");
  return nullptr;
}
std::unique_ptr<TrainerFiles> make_parquet_file(const OutputRules&, const std::string&, const std::string&) {
  ensure(false, "no Parquet file without Arrow");
  return nullptr;
}
std::unique_ptr<RecordSink> make_table_sink(const RecordSinkSettings&, const std::string&, const std::string&,
                                            const RunContext&) {
  ensure(false, "no table without Arrow");
  return nullptr;
}
std::unique_ptr<RowReader> open_arrow_rows(const OutputRules&, const std::string&) {
  ensure(false, "no Arrow file without Arrow");
  return nullptr;
}
std::unique_ptr<RowReader> open_parquet_rows(const OutputRules&, const std::string&) {
  ensure(false, "no Parquet file without Arrow");
  return nullptr;
}

}  // namespace shardpack
