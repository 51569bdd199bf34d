// The table of input formats: adding one = one file in this folder and one row in format_table.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "io/token_table.h"
#include "shardpack/formats.h"
#include "shardpack/progress.h"
#include "shardpack/thread_pool.h"

namespace shardpack {

/// A column of a data file in an NPY file of its own: labels in X.labels.npy beside X.npy.
struct SideColumn {
  std::string column;
  std::string path, name;  ///< as of InputFile
};

/// An input file: where it is, and how messages and manifests name it (relative to the inputs' common root).
struct InputFile {
  std::string path;
  std::string name;
  std::vector<SideColumn>
      columns{};  ///< ascending by column, whether or not they are carried; the group column is not among them
};

/// What opening a shard may use.
struct OpenContext {
  ThreadPool& pool;
  std::stop_token stop;
  ProgressSink& progress;
  std::string temp_dir;           ///< for the spool of formats without random access
  bool spool = true;              ///< false: lengths and facts are enough, no token is kept
  std::int64_t memory_bytes = 0;  ///< budget for blocks in flight
  std::int64_t first_record = 0;  ///< ordinal of the shard's first record (for the fingerprint of decoded tokens)
};

/// What detection sees: the first bytes, and which files lie beside.
struct FormatProbe {
  const InputFile& file;
  std::string_view head;  ///< the first min(4096, size) bytes
  std::int64_t bytes = 0;
  bool beside(std::string_view suffix) const;                         ///< does path + suffix exist?
  bool replaced(std::string_view suffix, std::string_view by) const;  ///< ... with `suffix` replaced by `by`?
};

struct Format {
  FormatSummary summary;
  /// Is this file of the format? Asked in table order: content first, then sidecars, then suffixes.
  bool (*matches)(const FormatProbe& probe);
  OpenedShard (*open)(const InputFile& file, const ReadOptions& options, const OpenContext& context);
  bool named_columns = false;  ///< records have columns by name, the group column among them
};

std::span<const Format> input_formats();

/// The format of `file` by --format or by detection. \throws Error{usage} for an unknown name or a raw file that nothing
/// identifies (with the flags that would), Error{bad_data} for a file that is recognised as something else (refused by name).
const Format& detect_format(const InputFile& file, const ReadOptions& options);

}  // namespace shardpack
