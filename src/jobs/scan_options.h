// What a saved scan was made with, and whether pack is asked for the same.
#pragma once

#include "io/saved_scan.h"
#include "jobs/pack_options.h"

namespace shardpack {

/// How the inputs were read and are cut, as a saved scan records it.
std::vector<RecordedOption> recorded_scan_options(const ReadOptions& read, const PartitionCut& cut);

/// Fill in what the scan says and `options` leave at their defaults. \throws Error{usage} naming what is asked for otherwise, or
/// what the scan would have to know and does not
void adopt(PackOptions& options, const SavedScan& scan);

/// Does the scan know what this policy asks of the sequences? \throws Error{usage}
void check_scan_serves(const SavedScan& scan, const LengthPolicy& policy);

}  // namespace shardpack
