#include "base/free_memory.h"

#include <features.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace shardpack {

void release_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace shardpack
