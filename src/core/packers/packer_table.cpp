// All packers, and the one way to run one: whatever it returns is canonical, bounded and checked.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/nearest.h"
#include "base/units.h"
#include "core/packers/packer_list.h"
#include "shardpack/bounds.h"
#include "shardpack/certificate.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {
constexpr std::array<PackerInfo, 11> kPackers{{
    {"auto", "the best packer for this histogram, by a rule on counts", 0, false, plan_auto},
    {"optimal", "linear programming: the fewest rows there can be, or close to it, and a certificate of the bound", 0, false,
     plan_optimal},
    {"nnlshp",
     "non-negative least squares histogram packing, as published by Krell et al. 2021; depth 3 unless -K says otherwise", 3,
     false, plan_nnlshp},
    {"spfhp", "shortest-pack-first histogram packing, as published by Krell et al. 2021", 0, false, plan_spfhp},
    {"lpfhp", "longest-pack-first histogram packing: best fit decreasing on counts", 0, false, plan_lpfhp},
    {"bfd", "best fit decreasing, earliest row first (baseline)", 0, false, plan_bfd},
    {"ffd", "first fit decreasing (baseline)", 0, false, plan_ffd},
    {"sorted-greedy", "next fit on sorted lengths (baseline)", 0, false, plan_sorted_greedy},
    {"none", "one sequence a row (baseline)", 0, false, plan_none},
    {"sequential", "next fit in input order, nothing reordered (baseline)", 0, true, nullptr},
    {"concat", "one long stream cut at row ends, no padding, sequences cut (baseline)", 0, true, nullptr},
}};

/// The items without the empty ones, which need no place.
LengthHistogram placeable(const LengthHistogram& items, Length row_tokens) {
  LengthHistogram result;
  std::int64_t too_long = 0;
  for (const LengthCount& entry : items.counts()) {
    if (entry.length > row_tokens) too_long += entry.count;
    if (entry.length > 0) result.add(entry.length, entry.count);
  }
  if (too_long > 0) {
    throw Error(ErrorCode::usage, with_commas(too_long) + (too_long == 1 ? " sequence is" : " sequences are") +
                                      " longer than a row of " + with_commas(row_tokens) + " tokens (the longest takes " +
                                      with_commas(items.max_length()) +
                                      "); give longer rows, or --overlong truncate, split or drop");
  }
  return result;
}
}  // namespace

std::span<const PackerInfo> packers() { return kPackers; }

const PackerInfo& find_packer(std::string_view name) {
  std::vector<std::string> names;
  std::string list;
  for (const PackerInfo& packer : kPackers) {
    if (packer.name == name) return packer;
    names.emplace_back(packer.name);
    list.append(list.empty() ? "" : ", ").append(packer.name);
  }
  const std::string near = nearest(name, names);
  throw Error(ErrorCode::usage, "there is no packer '" + std::string(name) + "'" +
                                    (near.empty() ? "" : "; did you mean '" + near + "'?") + " (packers: " + list + ")");
}

PackingPlan plan_packs(const LengthHistogram& items, std::string_view packer, const PackerOptions& options,
                       std::stop_token stop) {
  const PackerInfo& info = find_packer(packer);
  if (info.input_order) {
    throw Error(ErrorCode::usage,
                "packer '" + std::string(packer) + "' keeps the input order, so a histogram is not enough for it");
  }
  if (options.row_tokens < 1) {
    throw Error(ErrorCode::usage, "a row has at least 1 token, not " + std::to_string(options.row_tokens));
  }
  if (options.max_segments < 0) {
    throw Error(ErrorCode::usage, "--max-segments is 0 (no limit) or more, not " + std::to_string(options.max_segments));
  }
  const LengthHistogram placed = placeable(items, options.row_tokens);

  PackingPlan plan = info.plan(placed, options, std::move(stop));
  plan.row_tokens = options.row_tokens;
  plan.max_segments = segment_limit(info, options.max_segments);
  if (plan.packer.empty()) plan.packer = info.name;
  plan.canonicalize();
  plan.bound = lower_bound(placed, options.row_tokens, plan.max_segments);
  const std::int64_t proven = bound_of(plan.certificate, placed);
  if (proven > plan.bound.rows) {
    plan.bound = {proven, BoundKind::lp};
  } else {
    plan.certificate = {};
  }

  std::vector<Issue> issues = check_exact_cover(plan, placed);
  if (issues.empty()) issues = check_certificate(plan, placed);
  ensure(issues.empty(),
         "packer " + plan.packer + " made a plan that does not hold" + (issues.empty() ? "" : ": " + issues.front().message));
  ensure(plan.gap() >= 0, "packer " + plan.packer + " needs fewer rows than the lower bound");
  return plan;
}

}  // namespace shardpack
