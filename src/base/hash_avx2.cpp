// XXH3 for processors with AVX2. CMakeLists.txt compiles this file alone for them, so it uses nothing inline of other headers.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/hash_forms.h"

#if defined(__x86_64__)

namespace shardpack {

void hash_update_avx2(void* state, const void* bytes, std::size_t count) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state), bytes, count);
}

}  // namespace shardpack

#endif
