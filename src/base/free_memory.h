// What the allocator keeps for later, back to the system.
#pragma once

namespace shardpack {

/// To be called between stages of a run that hold memory in different threads, as a rule of tens of megabytes: what one stage has
/// freed is kept for its thread, and the next one would ask for more. Takes milliseconds; does nothing without glibc.
/// Thread-safe.
void release_free_memory();

}  // namespace shardpack
