// What policies took out, written down as it goes (removed.csv) and fingerprinted by reading it once more: source = packed +
// removed is then a statement about two separate readings.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "core/fingerprint_keys.h"
#include "io/file.h"
#include "jobs/partition_record.h"
#include "shardpack/item.h"
#include "shardpack/jobs.h"
#include "shardpack/sequence_source.h"

namespace shardpack {

class RemovedLog {
 public:
  /// `folder` receives removed.csv when there is something to write; or, of a part, a file of another name with its lines alone.
  /// `single_segments`: counts_whole_sequence() (core/row_block.h). Without `keys` it is written down, and no token read.
  RemovedLog(const SequenceSource& source, const DatasetKeys* keys, bool single_segments, std::string folder,
             const RunContext& context, std::string name = std::string(kFileName));

  static constexpr std::string_view kFileName = "removed.csv", kHeader = "source,record,first_token,tokens,cause\n";

  void add(const std::vector<RemovedRange>& ranges);
  /// Take ranges into the sums alone.
  void sum(const std::vector<RemovedRange>& ranges);

  const RemovedTotals& totals() const { return totals_; }
  /// Sync and close the file.
  RemovedTotals finish();

 private:
  void append(std::string_view text);

  const SequenceSource& source_;
  const DatasetKeys* keys_;
  const bool single_segments_;
  std::string folder_, name_;
  const RunContext& context_;
  std::unique_ptr<File> file_;
  std::int64_t bytes_ = 0;
  StreamHash hash_;
  RemovedTotals totals_;
};

}  // namespace shardpack
