// Files opened as open_source() opens them, with their boundaries in an index, for tests of what reads them afterwards.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/open_file.h"
#include "io/scan_pass.h"
#include "io/shard_source.h"
#include "shardpack/progress.h"
#include "shardpack/run_context.h"
#include "shardpack/thread_pool.h"

namespace shardpack {

/// What a pass runs in, with nobody to tell.
class QuietRun {
 public:
  explicit QuietRun(int threads) : pool_(threads) {}
  RunContext context() { return {.pool = pool_, .stop = {}, .progress = progress_, .diagnostics = diagnostics_, .temp_dir = {}}; }

 private:
  ThreadPool pool_;
  NoProgress progress_;
  NoDiagnostics diagnostics_;
};

/// It is named by the last component of its path; what has to be decoded is spooled beside it.
inline OpenedFile open_one(const std::string& path, SequenceId first_sequence, const ReadOptions& options) {
  ThreadPool pool(1);
  NoProgress progress;
  const std::size_t folder = path.rfind('/');
  return open_file({path, path.substr(folder + 1)}, options,
                   {.pool = pool,
                    .stop = {},
                    .progress = progress,
                    .temp_dir = path.substr(0, folder),
                    .spool = true,
                    .memory_bytes = 0,
                    .first_record = first_sequence});
}

inline std::vector<OpenedFile> open_files(const std::vector<std::string>& paths, const ReadOptions& options = {}) {
  std::vector<OpenedFile> files;
  SequenceId sequences = 0;
  for (const std::string& path : paths) {
    files.push_back(open_one(path, sequences, options));
    sequences += files.back().records();
  }
  return files;
}

inline SequenceIndex index_of(const std::vector<OpenedFile>& files) {
  std::vector<SourceFile> sources;
  for (const OpenedFile& file : files) {
    SourceFile& source = sources.emplace_back();
    source.name = file.input.name;
    source.record_begin = file.record_begin();
  }
  return SequenceIndex(std::move(sources));
}

/// A source of these files without columns, and without a pass over them.
inline ShardSource source_of(const std::vector<OpenedFile>& files) {
  std::vector<FileTables> tables;
  std::vector<FileStamp> stamps;
  for (const OpenedFile& file : files) {
    tables.push_back({file.shard.ids, {}});
    stamps.insert(stamps.end(), file.stamps.begin(), file.stamps.end());
  }
  return ShardSource(index_of(files), std::move(tables), {}, std::move(stamps));
}

}  // namespace shardpack
