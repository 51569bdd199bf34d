// What the processor can do beyond what every build may use: loops that have several forms choose by it, once, at run time.
#pragma once

namespace shardpack {

#if defined(__x86_64__)

inline bool has_avx2() { return __builtin_cpu_supports("avx2") != 0; }

/// AVX-512 with F, VL, BW and DQ, from Ice Lake and Zen 4 on, which VBMI2 tells from the older ones: those lower their clock
/// for 512-bit multiplications, and everything else that runs there pays for it.
inline bool has_avx512() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
         __builtin_cpu_supports("avx512vbmi2") != 0;
}

#endif

}  // namespace shardpack
