// What scan --save keeps: all that pack needs to know of the inputs before it reads their tokens, so that many machines can share
// one pass over them. docs/formats.md has the layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/file_stamp.h"
#include "io/source.h"

namespace shardpack {

/// The first bytes of every saved scan.
inline constexpr std::string_view kSavedScanMagic = "SHPKSCAN";

/// What a saved scan has beside what was found.
struct SavedScanOptions {
  std::vector<std::pair<std::string, std::string>> recorded;  ///< how inputs were read and are cut: name and JSON value
  bool ends = false;
  LossSide loss_side = LossSide::none;
};

/// The exact bytes of the file: nothing of the machine but the files' modification times.
std::string saved_scan_bytes(const ScannedSource& scanned, const SavedScanOptions& options);

struct SavedScan {
  std::vector<std::pair<std::string, std::string>> options;  ///< how inputs were read and are cut: name and JSON value
  ScannedSource facts;                                       ///< without a source
  SequenceIndex index;
  std::vector<Column> columns;
  bool has_ends = false;                       ///< the index knows which sequences begin with BOS and end with EOS
  LossSide loss_side = LossSide::none;         ///< of the index's loss places
  std::vector<std::vector<FileStamp>> stamps;  ///< by source file: the data file and its sidecars; their paths are empty
  std::string hash;                            ///< of the file, once it is one: 32 hex digits
};

/// Every size in it is checked against the file's before anything is allocated. Memory: the index.
/// \throws Error{bad_data} for anything else than a whole saved scan of this version, naming `path`; Error{io}
SavedScan read_saved_scan(const std::string& path);

}  // namespace shardpack
