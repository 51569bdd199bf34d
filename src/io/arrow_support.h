// Whether this program was built with Apache Arrow, for those that need none of its headers.
#pragma once

namespace shardpack {

bool has_arrow();

}  // namespace shardpack
