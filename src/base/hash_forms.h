// The loop of XXH3 in several forms, all of the same hash. Each is xxhash.h compiled for its processors in a file of its own, so
// that the header is all that a build needs; libxxhash chooses at run time too, but not everywhere was it built to.
#pragma once

#include <cstddef>
#include <vector>

namespace shardpack {

struct HashForm {
  const char* name;
  void (*update)(void* state, const void* bytes, std::size_t count);  ///< `state` as XXH3_createState makes it
};

/// Those that this processor runs, the fastest first; the last one runs on every processor.
std::vector<HashForm> hash_forms();

#if defined(__x86_64__)
void hash_update_avx2(void* state, const void* bytes, std::size_t count);
#endif

}  // namespace shardpack
