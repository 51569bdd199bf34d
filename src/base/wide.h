// 128-bit integers, for sums and products that 64 bits cannot hold. A compiler extension that g++ and clang share.
#pragma once

namespace shardpack {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

}  // namespace shardpack
