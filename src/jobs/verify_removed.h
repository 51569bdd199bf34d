// Reads removed.csv as the partitions are checked: a few lines in memory, whatever its size.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "io/file.h"
#include "jobs/verify_issues.h"
#include "shardpack/item.h"
#include "shardpack/manifest.h"

namespace shardpack {

class RemovedReader {
 public:
  static constexpr std::string_view kFileName = "removed.csv";

  /// Without a file there are no lines.
  RemovedReader(std::optional<File> file, const std::vector<ManifestSource>& sources, IssueList& issues);

  /// Calls visit(range) for the lines of the records [first, end); lines follow the order of the partitions.
  void read_until(const SequenceRanges& sequences, const std::function<void(const RemovedRange&)>& visit);

  /// Read what is left, which should be nothing, and compare the hash.
  void finish(const std::string& expected_hash);

 private:
  /// Fields of the next line (RFC 4180); false at the end.
  bool next_line(std::vector<std::string>& fields);
  bool next_character(char& character);
  std::optional<RemovedRange> parse(const std::vector<std::string>& fields, const SequenceRanges& sequences);
  void fault(const std::string& message);

  std::optional<File> file_;
  const std::vector<ManifestSource>& sources_;
  std::vector<SequenceId> first_sequence_;
  std::multimap<std::string_view, std::size_t> files_by_name_;
  IssueList& issues_;
  StreamHash hash_;
  std::string buffer_;
  std::size_t at_ = 0;       // in the buffer
  std::int64_t offset_ = 0;  // of the buffer's end in the file
  std::int64_t line_ = 0;
  bool broken_ = false;               // after a fault the rest is only hashed
  std::vector<std::string> pending_;  // a line read that belongs to a later partition
  SequenceId last_ = -1;              // record of the line before
};

}  // namespace shardpack
