#include "shardpack/ltd_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "base/rng.h"
#include "base/wide.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::uint32_t kNoToken = 0xFFFFFFFF, kNoLayer = 0xFFFFFFFF;  // the counter of a row's quota offset

struct KeyedSlot {
  std::uint64_t key;
  std::uint32_t slot;
  friend bool operator<(const KeyedSlot& a, const KeyedSlot& b) { return a.key != b.key ? a.key < b.key : a.slot < b.slot; }
};

std::array<std::uint32_t, 2> philox_key(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
}

/// The slots of [begin, end) with their keys, behind what `keyed` holds.
void append_keys(std::uint64_t seed, const KeptPlace& place, std::int64_t begin, std::int64_t end,
                 std::vector<KeyedSlot>& keyed) {
  const std::array<std::uint32_t, 2> key = philox_key(seed);
  PhiloxBlock words{};
  for (std::int64_t slot = begin; slot < end; ++slot) {
    const auto token = static_cast<std::uint32_t>(slot);
    if (slot == begin || (token & 1) == 0) {
      words = philox({token >> 1, static_cast<std::uint32_t>(place.row), static_cast<std::uint32_t>(place.layer),
                      static_cast<std::uint32_t>(place.step)},
                     key);
    }
    const std::size_t low = (token & 1) == 0 ? 0 : 2;
    keyed.push_back({std::uint64_t{words[low + 1]} << 32 | words[low], token});
  }
}

/// The `count` slots of `keyed` with the smallest keys, behind what `slots` holds.
void append_smallest(std::vector<KeyedSlot>& keyed, std::int64_t count, std::vector<std::uint32_t>& slots) {
  const auto end = keyed.begin() + static_cast<std::ptrdiff_t>(count);
  if (end != keyed.end()) std::nth_element(keyed.begin(), end, keyed.end());
  for (auto kept = keyed.begin(); kept != end; ++kept) slots.push_back(kept->slot);
}

std::int64_t tokens_of(std::span<const RowPart> parts) {
  std::int64_t tokens = 0;
  for (const RowPart& part : parts) tokens += part.tokens;
  return tokens;
}

/// Padding slots of the row from its end on, `count` of them, behind what `slots` holds.
void append_last_padding(Length width, std::span<const RowPart> parts, std::int64_t count, std::vector<std::uint32_t>& slots) {
  std::int64_t end = width;
  for (std::size_t p = parts.size() + 1; p-- > 0 && count > 0;) {
    const std::int64_t begin = p == 0 ? 0 : parts[p - 1].begin + parts[p - 1].tokens;
    for (; end > begin && count > 0; --count) slots.push_back(static_cast<std::uint32_t>(--end));
    if (p > 0) end = parts[p - 1].begin;
  }
}

}  // namespace

void part_quotas(KeptMode mode, std::uint64_t seed, const KeptPlace& place, std::span<const RowPart> parts, std::int64_t kept,
                 std::vector<Length>& quotas) {
  ensure(mode != KeptMode::uniform, "uniform selection has no quotas");
  quotas.clear();
  const std::int64_t tokens = tokens_of(parts);
  if (kept >= tokens) {
    for (const RowPart& part : parts) quotas.push_back(part.tokens);
    return;
  }
  const auto count = static_cast<std::int64_t>(parts.size());
  const std::int64_t each = mode == KeptMode::quota_min1 ? 1 : 0;
  if (each * count > kept) {
    throw Error(ErrorCode::usage, fmt::format("quota-min1 keeps a token of each segment, but row {} has {} segments and keeps {} "
                                              "tokens; use --selection quota",
                                              place.row, count, kept));
  }
  // Systematic rounding: the ends of the parts, scaled by shared / room and moved by one random offset, rounded down. Every token
  // of a part lies in exactly shared of the room offsets' kept sets.
  const std::int64_t shared = kept - each * count, room = tokens - each * count;
  const PhiloxBlock words = philox(
      {kNoToken, static_cast<std::uint32_t>(place.row), kNoLayer, static_cast<std::uint32_t>(place.step)}, philox_key(seed));
  const std::uint64_t random = std::uint64_t{words[1]} << 32 | words[0];
  const auto offset = static_cast<std::int64_t>(static_cast<Uint128>(random) * static_cast<std::uint64_t>(room) >> 64);
  std::int64_t prefix = 0, before = 0;
  for (const RowPart& part : parts) {
    prefix += part.tokens - each;
    const std::int64_t end = room == 0 ? 0 : (shared * prefix + offset) / room;
    quotas.push_back(static_cast<Length>(end - before + each));
    before = end;
  }
}

void select_kept(KeptMode mode, std::uint64_t seed, const KeptPlace& place, Length width, std::span<const RowPart> parts,
                 std::int64_t kept, std::vector<std::uint32_t>& slots) {
  slots.clear();
  const std::int64_t tokens = tokens_of(parts);
  if (kept >= tokens) {
    for (const RowPart& part : parts) {
      for (Length t = 0; t < part.tokens; ++t) slots.push_back(static_cast<std::uint32_t>(part.begin + t));
    }
    append_last_padding(width, parts, std::min<std::int64_t>(kept, width) - tokens, slots);
  } else {
    static thread_local std::vector<KeyedSlot> keyed;  // millions of calls in a row
    static thread_local std::vector<Length> quotas;
    keyed.clear();
    if (mode == KeptMode::uniform) {
      for (const RowPart& part : parts) append_keys(seed, place, part.begin, part.begin + part.tokens, keyed);
      append_smallest(keyed, kept, slots);
    } else {
      part_quotas(mode, seed, place, parts, kept, quotas);
      for (std::size_t p = 0; p < parts.size(); ++p) {
        keyed.clear();
        append_keys(seed, place, parts[p].begin, parts[p].begin + parts[p].tokens, keyed);
        append_smallest(keyed, quotas[p], slots);
      }
    }
  }
  std::sort(slots.begin(), slots.end());
}

void kept_boundaries(KeptMode mode, std::uint64_t seed, const KeptPlace& place, Length width, std::span<const RowPart> parts,
                     std::int64_t kept, std::vector<std::uint32_t>& boundaries) {
  static thread_local std::vector<Length> quotas;
  part_quotas(mode, seed, place, parts, kept, quotas);
  std::int64_t padding = std::max<std::int64_t>(0, std::min<std::int64_t>(kept, width) - tokens_of(parts));
  // Runs from the row's end on, then turned round.
  static thread_local std::vector<std::int64_t> runs;
  runs.clear();
  std::int64_t end = width;
  for (std::size_t p = parts.size() + 1; p-- > 0;) {
    const std::int64_t begin = p == 0 ? 0 : parts[p - 1].begin + parts[p - 1].tokens;
    const std::int64_t run = std::min(padding, end - begin);
    if (run > 0) runs.push_back(run);
    padding -= run;
    if (p == 0) break;
    if (quotas[p - 1] > 0) runs.push_back(quotas[p - 1]);
    end = parts[p - 1].begin;
  }
  boundaries.assign(1, 0);
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    boundaries.push_back(boundaries.back() + static_cast<std::uint32_t>(*run));
  }
}

}  // namespace shardpack
