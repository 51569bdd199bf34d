// Random-LTD, the selection: which tokens of a row a middle layer keeps. A pure function of (seed, step, layer, row), so that any
// rank, framework or restart finds the same ones; docs/ltd.md has the definition and ports of it.
//
// Every token slot has a 64-bit key: Philox 4x32-10, key = (low, high 32 bits of the seed), counter = (slot >> 1, row, layer,
// step); an even slot's key is word1 << 32 | word0, an odd one's word3 << 32 | word2. Smaller keys are kept first.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "shardpack/ltd_row_table.h"
#include "shardpack/types.h"

namespace shardpack {

enum class KeptMode : std::uint8_t {
  uniform,     ///< the paper's: any tokens of the row
  quota,       ///< each segment its share, rounded so that every token is kept with the same probability
  quota_min1,  ///< the same after one token for each segment: none is lost, short ones are favoured
};
inline constexpr std::string_view kKeptModes[] = {"uniform", "quota", "quota-min1"};

struct KeptPlace {
  std::int64_t step = 0;   ///< optimizer step, from 0
  std::int64_t layer = 0;  ///< id in the model, from 0
  std::int64_t row = 0;    ///< in the step's global batch, never in a rank's
};

/// Kept tokens of each part, min(kept, tokens of the row) in all. The same for every layer of a step (its random number does not
/// know the layer). `mode` is not uniform.
/// \throws Error{usage} for quota_min1 with fewer kept tokens than parts
void part_quotas(KeptMode mode, std::uint64_t seed, const KeptPlace& place, std::span<const RowPart> parts, std::int64_t kept,
                 std::vector<Length>& quotas);

/// The kept slots, ascending: min(kept, width) of them. Padding is taken only where the row has fewer tokens than are kept, from
/// the row's end on.
void select_kept(KeptMode mode, std::uint64_t seed, const KeptPlace& place, Length width, std::span<const RowPart> parts,
                 std::int64_t kept, std::vector<std::uint32_t>& slots);

/// Where segments begin and end among the kept slots of a row: 0, ..., min(kept, width). A part without a kept token is left out;
/// each run of padding is a segment of its own. For the quota modes one list serves every layer of a step.
void kept_boundaries(KeptMode mode, std::uint64_t seed, const KeptPlace& place, Length width, std::span<const RowPart> parts,
                     std::int64_t kept, std::vector<std::uint32_t>& boundaries);

}  // namespace shardpack
