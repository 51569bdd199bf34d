// Source files made again from records: one implementation per format.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/record_spool.h"
#include "shardpack/formats.h"
#include "shardpack/manifest.h"
#include "shardpack/run_context.h"

namespace shardpack {

struct RecordSinkSettings {
  UnpackFormat format = UnpackFormat::jsonl;
  int zstd_level = 0;      ///< 0 = not compressed; JSON lines alone
  std::string ids_column;  ///< the key of the ids in JSON lines
  IdType id_type = IdType::u16;
  std::int64_t id_max = -1;
  std::vector<Column> columns;
};

/// \throws Error{usage} when the format cannot hold the ids or a column, saying which can
void check_record_format(const RecordSinkSettings& settings);

/// Names of the files that a source called `stem` without its suffix becomes, the data file first.
std::vector<std::string> record_files(const RecordSinkSettings& settings, const std::string& stem);

class RecordSink {
 public:
  virtual ~RecordSink() = default;
  /// The records [first, last) of `spool` come next.
  virtual void add(const RecordSpool& spool, std::int64_t first, std::int64_t last) = 0;
  /// \return name, bytes and hash of every file
  virtual std::vector<ManifestFile> finish() = 0;
};

/// One source file; creates record_files(settings, stem) in `folder`. Memory: a few blocks, and the text of the longest record.
std::unique_ptr<RecordSink> make_record_sink(const RecordSinkSettings& settings, const std::string& folder,
                                             const std::string& stem, const RunContext& context);

}  // namespace shardpack
