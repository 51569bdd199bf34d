// The rest of the pass over the tokens, in passing: while rows are made in the order of the input, as a rule, what a block of
// them asks for lies mostly where the pass has come to, so that one read serves both.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

#include "io/close_reads.h"
#include "io/scan_pass.h"

namespace shardpack {

/// What is wanted of a file's tokens, ascending.
struct FileRanges {
  std::int32_t file = 0;
  std::vector<TableRange> ranges;
};

/// Thread-safe: one caller at a time reads on, others wait. Memory: a piece of 1 MiB.
class PassingScan {
 public:
  /// \param pass  over `files`, left before its end
  PassingScan(std::vector<OpenedFile> files, ScanPass pass) : files_(std::move(files)), pass_(std::move(pass)) {}

  /// Read on by as many tokens as are wanted, put those of them that are read into `ids`, and take them off `wanted`, files of
  /// which nothing is left too. \throws what the pass throws, now and from then on
  void read_on(std::vector<FileRanges>& wanted, std::uint32_t* ids);

  /// Read on until this range of a file's tokens is read. \throws the same
  void read_past(std::int32_t file, const TableRange& range);

  /// To the end, in parallel. \throws the same, and Error{cancelled}
  void finish(const RunContext& context);

  /// Of a pass that is finished; once.
  ScanPassResult take_result();

 private:
  template <class Read>
  void go_on(Read read);

  std::mutex mutex_;
  std::vector<OpenedFile> files_;
  ScanPass pass_;
  std::int64_t wanted_ = 0;  // tokens of all blocks so far: where the pass is to be
  std::exception_ptr failure_;
};

}  // namespace shardpack
