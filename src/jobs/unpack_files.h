// The source files that unpack makes: what each is called, and one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/record_sink.h"
#include "shardpack/manifest.h"
#include "shardpack/run_context.h"

namespace shardpack {

/// What each source is called, without a suffix; no two have a file in common.
std::vector<std::string> unpacked_stems(const std::vector<ManifestSource>& sources, const RecordSinkSettings& settings);

/// Makes the source files one after the other; those without records too.
class SourceFiles {
 public:
  SourceFiles(const RecordSinkSettings& settings, std::vector<std::string> stems, const std::string& folder,
              const RunContext& context);

  /// The records [first, last) of `spool` come next, and belong to file number `file`.
  void add(const RecordSpool& spool, std::size_t file, std::int64_t first, std::int64_t last);
  /// \return name, bytes and hash of every file
  std::vector<ManifestFile> finish();

 private:
  void open(std::size_t file);
  void close();

  const RecordSinkSettings& settings_;
  const std::vector<std::string> stems_;
  const std::string folder_;
  const RunContext& context_;
  std::unique_ptr<RecordSink> sink_;  // of stems_[opened_ - 1]
  std::size_t opened_ = 0;
  std::vector<ManifestFile> files_;
};

}  // namespace shardpack
