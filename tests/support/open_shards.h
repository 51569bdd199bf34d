// Open shards as the jobs do and read their sequences back, or tell how that fails.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/source.h"
#include "shardpack/error.h"
#include "shardpack/progress.h"
#include "shardpack/thread_pool.h"

namespace shardpack {

using Sequences = std::vector<std::vector<std::uint32_t>>;

/// Keeps the lines that were told to the user.
class KeptDiagnostics final : public Diagnostics {
 public:
  void warn(std::string_view line) override { warnings.emplace_back(line); }
  void info(std::string_view) override {}
  void debug(std::string_view) override {}
  std::vector<std::string> warnings;
};

class ShardOpener {
 public:
  explicit ShardOpener(int threads = 2) : pool_(threads) {}

  ScannedSource open(const std::vector<std::string>& inputs, const ReadOptions& options = {}, const ScanNeeds& needs = {}) {
    diagnostics_.warnings.clear();
    return open_source(
        inputs, options, needs,
        {.pool = pool_, .stop = {}, .progress = progress_, .diagnostics = diagnostics_, .memory_bytes = 0, .temp_dir = {}});
  }

  /// All sequences, empty ones included.
  Sequences sequences(const std::vector<std::string>& inputs, const ReadOptions& options = {}) {
    return sequences_of(*open(inputs, options).source);
  }

  static Sequences sequences_of(const SequenceSource& source) {
    Sequences all;
    for (SequenceId id = 0; id < source.index().sequences(); ++id) {
      const std::int64_t tokens = source.index().place(id).tokens;
      std::vector<std::uint32_t> ids(static_cast<std::size_t>(tokens));
      std::vector<TokenRequest> requests{{.sequence = id, .first_token = 0, .tokens = tokens, .destination = 0}};
      source.read_block(requests, IdType::u32, ids.data());
      all.push_back(ids);
    }
    return all;
  }

  const std::vector<std::string>& warnings() const { return diagnostics_.warnings; }

  struct Failure {
    bool failed = false;
    ErrorCode code = ErrorCode::internal;
    std::string what;
    bool has_place = false;  // names a file
  };
  Failure failure(const std::vector<std::string>& inputs, const ReadOptions& options = {}) {
    try {
      open(inputs, options);
    } catch (const Error& error) {
      return {true, error.code(), error.what(), !error.path().empty()};
    }
    return {};
  }

 private:
  ThreadPool pool_;
  NoProgress progress_;
  KeptDiagnostics diagnostics_;
};

}  // namespace shardpack
