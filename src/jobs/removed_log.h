// What policies took out, written down as it goes (removed.csv) and fingerprinted by reading it once more: source = packed +
// removed is then a statement about two separate readings.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "core/fingerprint_keys.h"
#include "io/file.h"
#include "shardpack/item.h"
#include "shardpack/jobs.h"
#include "shardpack/sequence_source.h"

namespace shardpack {

class RemovedLog {
 public:
  /// `folder` receives removed.csv when there is something to write.
  /// `single_segments`: counts_whole_sequence() (core/row_block.h).
  RemovedLog(const SequenceSource& source, const DatasetKeys& keys, bool single_segments, std::string folder,
             const RunContext& context);

  void add(const std::vector<RemovedRange>& ranges);
  /// Take ranges into the sums alone.
  void sum(const std::vector<RemovedRange>& ranges);

  const Fingerprint& fingerprint() const { return fingerprint_; }
  /// By cause; 0 where no column tells them.
  const std::array<std::int64_t, kRemovalCauses.size()>& loss_tokens() const { return loss_tokens_; }
  /// Sync and close the file. \return its manifest entry, none when nothing was removed
  std::vector<ManifestFile> finish();

 private:
  void append(std::string_view text);

  const SequenceSource& source_;
  const DatasetKeys& keys_;
  const bool single_segments_;
  std::string folder_;
  const RunContext& context_;
  std::unique_ptr<File> file_;
  std::int64_t bytes_ = 0;
  StreamHash hash_;
  Fingerprint fingerprint_;
  std::array<std::int64_t, kRemovalCauses.size()> loss_tokens_{};
};

}  // namespace shardpack
