// Compiled in place of src/io/arrow/ where there is no Apache Arrow.
#include "io/arrow_support.h"

namespace shardpack {

bool has_arrow() { return false; }

}  // namespace shardpack
