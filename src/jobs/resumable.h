// What runs that can be resumed have in common: which inputs they are of, and that finished shards outlive an error.
#pragma once

#include <fmt/format.h>

#include <new>
#include <optional>
#include <string>
#include <vector>

#include "io/journal.h"
#include "io/staged_output.h"
#include "shardpack/error.h"
#include "shardpack/manifest.h"

namespace shardpack {

/// The inputs, one by one, as part of what decides the bytes. Without a hash: it is not known yet.
void add_inputs(RunIdentity& identity, const std::vector<ManifestSource>& sources);

/// work(), with `staged` as the output. What is finished outlives whatever is no fault of the data: a full disk, a signal, a
/// machine that goes down.
template <class Work>
auto keeping_finished_shards(std::optional<StagedOutput>& staged, Diagnostics& diagnostics, Work work) {
  try {
    return work();
  } catch (const Error& error) {
    const bool may_go_on =
        error.code() == ErrorCode::io || error.code() == ErrorCode::limit || error.code() == ErrorCode::cancelled;
    const std::string kept = staged && may_go_on ? staged->keep_finished_shards() : "";
    if (kept.empty()) throw;
    throw Error(error.code(), fmt::format("{}; {}", error.message(), kept), error.path(), error.position());
  } catch (const std::bad_alloc&) {
    if (const std::string kept = staged ? staged->keep_finished_shards() : ""; !kept.empty()) diagnostics.warn(kept);
    throw;
  }
}

}  // namespace shardpack
