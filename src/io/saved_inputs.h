// Inputs of which a saved scan tells everything but the tokens: only the files that are needed are opened.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/saved_scan.h"
#include "io/shard_source.h"
#include "shardpack/sequence_ranges.h"

namespace shardpack {

/// What is asked of inputs after their scan.
enum class LaterReading : std::uint8_t {
  tokens,  ///< and columns
  places,  ///< where tokens lie in their files: no token is read
};

class SavedInputs {
 public:
  /// \throws Error{bad_data} when the inputs are not, by number, names and sizes, those that were scanned
  SavedInputs(const std::vector<std::string>& inputs, const ReadOptions& options, SavedScan scan);

  /// As open_source() would return it, but that no file is open.
  ScannedSource take_source();

  /// Open the files that hold any of `sequences`: what formats without random access have to decode is decoded here, where tokens
  /// are asked for. A file whose modification time is not that of the scan is read once more and compared by its hash. The source
  /// must be alive still.
  /// \throws Error{bad_data} when a file is not the one that was scanned, Error{io}
  void open(const std::vector<SequenceRanges>& sequences, LaterReading reading, const RunContext& context);

 private:
  void open_file_number(std::size_t number, const RunContext& context);
  void check_decoded_file(std::size_t number);

  ReadOptions options_;
  std::vector<InputFile> inputs_;  // by file of the index
  std::vector<std::vector<FileStamp>> stamps_;
  std::vector<Column> columns_;
  ScannedSource scanned_;  // until it is taken
  ShardSource* source_ = nullptr;
};

}  // namespace shardpack
