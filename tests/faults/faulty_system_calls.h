// Stands in for src/io/system_calls.cpp in the test program of this folder: the N-th call fails, or the process or the machine
// ends there. Syncs are noted, not made, so that thousands of runs take seconds.
#pragma once

#include <cstdint>
#include <string>

namespace shardpack::faults {

enum class Kind : std::uint8_t {
  none,
  error,      ///< the N-th call fails with EIO, whatever it is, and those after it work
  disk_full,  ///< from the N-th call on nothing can be written or made: the first write is cut in half, then ENOSPC
  read_only,  ///< from the N-th call on nothing can be changed: EROFS
  kill,       ///< SIGKILL before the N-th call
  power_cut,  ///< the same, and what was not synced is lost: bytes, and names in folders; renames are not
  power_cut_before_renames,  ///< the same, and renames are lost too that no sync of their folder followed
  short_transfers,           ///< never more than a few bytes at once, and every other call is interrupted by a signal (EINTR)
};

struct Plan {
  Kind kind = Kind::none;
  std::int64_t at = 0;       ///< N, from 0
  bool can_exchange = true;  ///< false: a file system without RENAME_EXCHANGE
  bool has_unnamed = true;   ///< false: a file system without O_TMPFILE
  std::string root;          ///< of everything that a power cut may take
};

/// From now on, in this process.
void begin(const Plan& plan);

struct Counts {
  std::int64_t calls = 0;          ///< that may fail
  std::int64_t shard_folders = 0;  ///< made
};
Counts counts();

}  // namespace shardpack::faults
