// What all parts of a distributed pack have in common, written once by whichever comes first: join() begins with it.
#pragma once

#include <string>

#include "io/journal.h"
#include "shardpack/jobs.h"

namespace shardpack {

/// Its file among the parts' notes: one for each list of what decides the bytes.
std::string part_run_name(const RunIdentity& identity);

/// `planned`: the manifest without partitions, and the figures that only who scanned can tell. Equal runs give equal bytes.
std::string part_run_text(const PackResult& planned);
/// \throws Error{bad_data}
PackResult part_run_from_text(const std::string& text, const std::string& path);

}  // namespace shardpack
